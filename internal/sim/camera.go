package sim

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// reportPeriod is the time between RTCP sender reports.
const reportPeriod = time.Second

// camera is one stream: a clip that loops while somebody watches.
type camera struct {
	Camera
	clip   *ClipData
	fault  Fault
	log    *slog.Logger
	media  *description.Media
	encode packetizer // nil: the camera has nothing to play
	stream *gortsplib.ServerStream

	epoch  time.Time // the camera's clock starts here
	base   uint32    // RTP time of epoch
	ssrc   uint32
	pos    int // next sample
	random *rand.Rand

	// of a camera in good health
	shared   *packetised
	pacer    *pacer
	wait     time.Duration // before it begins to play
	sequence uint16        // of the next packet; owned by the pacer while it plays

	octets, packets uint32 // sent, for reports

	changed chan struct{} // cap 1: viewers came or went

	mu      sync.Mutex
	viewers map[*gortsplib.ServerSession]*viewer
}

// viewer is one playing session.
type viewer struct {
	conn   *gortsplib.ServerConn
	frames int // sent to it
}

func newCamera(c Camera, clip *ClipData, fault Fault, index, of int, log *slog.Logger) (*camera, error) {
	media, encode, err := describe(clip, fault)
	if err != nil {
		return nil, err
	}
	return &camera{
		Camera: c, clip: clip, fault: fault, log: log.With("path", c.Path), media: media, encode: encode,
		epoch: time.Now(), base: rand.Uint32(),
		pos:     startAt(clip, index, of),
		random:  rand.New(rand.NewPCG(uint64(index), 0)), // the same packets get lost each time
		changed: make(chan struct{}, 1), viewers: map[*gortsplib.ServerSession]*viewer{},
	}, nil
}

// startAt spreads the cameras over the clip, so that they do not look alike.
func startAt(clip *ClipData, index, of int) int {
	var starts []int
	for i, s := range clip.Samples {
		if s.RandomAccess {
			starts = append(starts, i)
		}
	}
	return starts[index*len(starts)/max(of, 1)%len(starts)]
}

// open makes the stream known to a server that runs.
func (c *camera) open(server *gortsplib.Server) error {
	c.stream = &gortsplib.ServerStream{
		Server: server,
		Desc:   &description.Session{Title: "edgecam sim", Medias: []*description.Media{c.media}},
	}
	if err := c.stream.Initialize(); err != nil {
		return err
	}
	for _, f := range c.stream.Stats().Medias[c.media].Formats {
		c.ssrc = f.LocalSSRC
	}
	return nil
}

func (c *camera) join(session *gortsplib.ServerSession, conn *gortsplib.ServerConn) {
	c.mu.Lock()
	c.viewers[session] = &viewer{conn: conn}
	c.mu.Unlock()
	c.signal()
}

func (c *camera) leave(session *gortsplib.ServerSession) {
	c.mu.Lock()
	delete(c.viewers, session)
	c.mu.Unlock()
	c.signal()
}

func (c *camera) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *camera) watched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.viewers) > 0
}

// run plays whenever there is a viewer, until ctx ends.
func (c *camera) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		switch {
		case !c.watched():
		case c.shared != nil:
			c.playShared(ctx)
		case c.encode != nil:
			c.play(ctx)
		}
	}
}

// playShared has the pacer play until nobody watches.
func (c *camera) playShared(ctx context.Context) {
	r := c.pacer.add(c)
	defer c.pacer.remove(r)
	for c.watched() {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
	}
}

// play sends the clip in real time from the next random access point on, until
// nobody watches.
func (c *camera) play(ctx context.Context) {
	for !c.clip.Samples[c.pos].RandomAccess {
		c.pos = (c.pos + 1) % len(c.clip.Samples)
	}
	start := time.Now()
	from := c.clip.Samples[c.pos].DTS
	loop := time.Duration(0) // clip time that whole loops have taken
	frame, report := time.NewTimer(0), time.NewTicker(reportPeriod)
	defer frame.Stop()
	defer report.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			if !c.watched() {
				return
			}
		case <-report.C:
			c.report()
		case <-frame.C:
			s := &c.clip.Samples[c.pos]
			at := start.Sub(c.epoch) + loop - from
			c.send(s, at+s.PTS)
			if c.pos++; c.pos == len(c.clip.Samples) {
				c.pos = 0
				loop += c.clip.Duration
			}
			due := start.Add(loop - from + c.clip.Samples[c.pos].DTS)
			frame.Reset(time.Until(due))
		}
	}
}

// send sends one picture; clock is its time since epoch.
func (c *camera) send(s *Sample, clock time.Duration) {
	if !c.count() {
		return
	}
	packets, err := c.encode(c.clip.nalus(c.pos))
	if err != nil {
		c.log.Warn("sim cannot packetise a picture", "err", err)
		return
	}
	for _, p := range packets {
		p.Timestamp = c.base + ticks(clock)
		c.write(p)
	}
}

func (c *camera) write(p *rtp.Packet) {
	if c.fault.Loss > 0 && c.random.Float64() < c.fault.Loss {
		return
	}
	c.packets++
	c.octets += uint32(len(p.Payload)) // wraps, as RTCP says
	if err := c.stream.WritePacketRTP(c.media, p); err != nil {
		c.log.Debug("sim cannot send", "err", err)
	}
}

// count takes note of a picture for each viewer and lets the faults happen;
// false when it is not to be sent.
func (c *camera) count() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stalled := c.fault.StallAfter > 0
	for session, v := range c.viewers {
		if v.frames++; c.fault.CloseAfter > 0 && v.frames > c.fault.CloseAfter {
			session.Close()
			v.conn.Close()
		}
		stalled = stalled && v.frames > c.fault.StallAfter
	}
	return !stalled
}

// report sends a sender report that maps the RTP clock to now. gortsplib's own
// come every ten seconds, too late for a stall to be told from a dead line.
func (c *camera) report() {
	now := time.Now()
	err := c.stream.WritePacketRTCP(c.media, &rtcp.SenderReport{
		SSRC: c.ssrc, NTPTime: ntp(now), RTPTime: c.base + ticks(now.Sub(c.epoch)),
		PacketCount: c.packets, OctetCount: c.octets,
	})
	if err != nil {
		c.log.Debug("sim cannot report", "err", err)
	}
}

// ntp is the 64 bit NTP time: seconds since 1900 and a binary fraction.
func ntp(t time.Time) uint64 {
	const from1900To1970 = 2208988800
	return uint64(t.Unix()+from1900To1970)<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second)
}
