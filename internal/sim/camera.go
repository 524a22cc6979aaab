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
	log    *slog.Logger
	media  *description.Media
	stream *gortsplib.ServerStream

	epoch time.Time // the camera's clock starts here
	base  uint32    // RTP time of epoch
	ssrc  uint32
	pos   int // next sample

	shared   *packetised
	pacer    *pacer
	wait     time.Duration // before it begins to play
	sequence uint16        // of the next packet; owned by the pacer while it plays

	octets, packets uint32 // sent, for reports

	changed chan struct{} // cap 1: viewers came or went

	mu      sync.Mutex
	viewers map[*gortsplib.ServerSession]struct{}
}

func newCamera(c Camera, clip *ClipData, index, of int, log *slog.Logger) (*camera, error) {
	media, err := describe(clip)
	if err != nil {
		return nil, err
	}
	return &camera{
		Camera: c, clip: clip, log: log.With("path", c.Path), media: media,
		epoch: time.Now(), base: rand.Uint32(),
		pos:     startAt(clip, index, of),
		changed: make(chan struct{}, 1), viewers: map[*gortsplib.ServerSession]struct{}{},
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

func (c *camera) join(session *gortsplib.ServerSession) {
	c.mu.Lock()
	c.viewers[session] = struct{}{}
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
		if c.watched() {
			c.play(ctx)
		}
	}
}

// play has the pacer play until nobody watches.
func (c *camera) play(ctx context.Context) {
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

func (c *camera) write(p *rtp.Packet) {
	c.packets++
	c.octets += uint32(len(p.Payload)) // wraps, as RTCP says
	if err := c.stream.WritePacketRTP(c.media, p); err != nil {
		c.log.Debug("sim cannot send", "err", err)
	}
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
