package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// player plays one session of an odd camera. One goroutine owns it once it
// runs.
type player struct {
	t       *talk
	id      string
	out     outlet
	clip    *ClipData
	encode  packetizer
	payload uint8
	random  *rand.Rand
	started bool
	lost    atomic.Bool // the camera has forgotten the session

	begin     time.Time     // of PLAY
	pos       int           // next sample
	origin    time.Time     // when the sample at from was due, or would have been
	from      time.Duration // clip time
	loop      time.Duration // clip time that whole loops have taken
	frames    int           // pictures that were due
	keyless   bool          // no-key has begun
	small     bool          // the clip of the other size plays
	requests  int           // of our own
	nextRenew renewals

	stamp    uint32 // RTP time of begin
	jumped   uint32 // added to timestamps by ts-jump
	seq      uint16
	ssrc     uint32
	packets  uint32
	octets   uint32
	held     []held
	lastSent uint32 // RTP time
}

// renewals count what happens again and again in a session.
type renewals struct{ ssrc, seq, jump int }

// held is a packet that comes late.
type held struct {
	packet *rtp.Packet
	behind int // packets that go before it
}

var errReset = errors.New("reset by a fault")

func newPlayer(t *talk) (*player, error) {
	n := t.cam.sessions.Add(1)
	random := t.cam.random(n)
	if t.plan.clip == nil {
		return nil, errors.New("no description")
	}
	return &player{
		t: t, id: strconv.FormatUint(random.Uint64()|1, 16), clip: t.plan.clip, encode: t.plan.encode, payload: t.plan.payload,
		random: random, stamp: random.Uint32(), seq: uint16(random.Uint32()), ssrc: random.Uint32(), //nolint:gosec // any 16 bits
	}, nil
}

func (p *player) close() { p.out.close() }

func (p *player) forgotten() bool { return p.lost.Load() }

// run plays until ctx ends, or a fault ends the session.
func (p *player) run(ctx context.Context) error {
	if slow := p.t.cam.now().find(faultSlowStart); slow != nil && !p.t.wait(slow.span) {
		return ctx.Err()
	}
	p.begin = time.Now()
	p.start(p.clip, p.t.cam.pos)
	frame, tick := time.NewTimer(0), time.NewTicker(reportPeriod)
	defer frame.Stop()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.t.frozen:
			<-ctx.Done() // the reading side notices a client that hangs up
			return nil
		case <-tick.C:
			if err := p.second(); err != nil {
				return err
			}
		case <-frame.C:
			if err := p.picture(); err != nil {
				return err
			}
			frame.Reset(time.Until(p.due()))
		}
	}
}

// start plays a clip from its first random access point at or behind pos on.
func (p *player) start(clip *ClipData, pos int) {
	pos %= len(clip.Samples)
	for !clip.Samples[pos].RandomAccess {
		pos = (pos + 1) % len(clip.Samples)
	}
	p.clip, p.pos, p.origin, p.loop = clip, pos, time.Now(), 0
	p.from = clip.Samples[pos].DTS
}

// due is when the next picture is to be sent.
func (p *player) due() time.Time {
	now := p.t.cam.now()
	nominal := p.loop - p.from + p.clip.Samples[p.pos].DTS
	if drift := now.find(faultDrift); drift != nil {
		nominal = time.Duration(float64(nominal) / (1 + drift.share))
	}
	at := p.origin.Add(nominal)
	if burst := now.find(faultBurst); burst != nil {
		// every other span is a freeze, of which the end brings everything
		if in := at.Sub(p.begin) % (2 * burst.span); in >= burst.span {
			at = at.Add(2*burst.span - in)
		}
	}
	return at
}

// clock is the RTP time of a sample.
func (p *player) clock(s *Sample) uint32 {
	return p.stamp + ticks(p.origin.Sub(p.begin)+p.loop-p.from+s.PTS)
}

// picture sends the next picture, or what the faults make of it.
func (p *player) picture() error {
	now, session := p.t.cam.now(), time.Since(p.begin)
	if err := p.change(now, session); err != nil {
		return err
	}
	s := &p.clip.Samples[p.pos]
	p.advance()
	p.frames++
	if now.standing() != p.t.faults {
		return errReset // the camera begins anew with other settings
	}
	if err := p.ends(now, session); err != nil {
		return err
	}
	if p.silent(now, session) {
		return nil
	}
	p.renew(now, session)
	if no := now.find(faultNoKey); no.reached(p.frames, session) {
		if s.RandomAccess || !p.keyless {
			p.keyless = true
			p.seq++ // what is left out was a packet
			return nil
		}
	} else {
		p.keyless = false
	}
	packets, err := p.packetise(s, now)
	if err != nil {
		return err
	}
	for _, packet := range packets {
		if err := p.mangle(packet, now); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) advance() {
	if p.pos++; p.pos == len(p.clip.Samples) {
		p.pos = 0
		p.loop += p.clip.Duration
	}
}

// ends says whether a fault ends the session now.
func (p *player) ends(now Faults, session time.Duration) error {
	if f := now.find(faultHalfOpen); f.reached(p.frames, session) {
		p.t.freeze.Do(func() { close(p.t.frozen) })
	}
	if f := now.find(faultClose); f != nil && p.frames > f.count {
		return errors.New("closed by a fault")
	}
	if f := now.find(faultReset); f != nil && session >= f.span {
		return errReset
	}
	return nil
}

// silent says whether no video comes now.
func (p *player) silent(now Faults, session time.Duration) bool {
	if f := now.find(faultLost); f.reached(p.frames, session) {
		p.lost.Store(true)
	}
	stall := now.find(faultStall)
	// stall=N lets N frames pass
	stalled := stall != nil && (stall.count > 0 && p.frames > stall.count || stall.count == 0 && session >= stall.span)
	return p.lost.Load() || stalled || p.t.isFrozen() || now.has(faultRTCPOnly)
}

// change plays the clip of the other size, in turn with the camera's own.
func (p *player) change(now Faults, session time.Duration) error {
	f := now.find(faultResChange)
	if f == nil || p.t.plan.clip.Codec != p.t.cam.clip.Codec {
		return nil
	}
	small := session/f.span%2 == 1
	if small == p.small {
		return nil
	}
	other := p.t.plan.clip
	if small {
		var err error
		if other, err = p.t.cam.spare.get(faultResChange); err != nil {
			return err
		}
	}
	encode, _, err := encoder(other)
	if err != nil {
		return err
	}
	p.small, p.encode = small, encode
	p.start(other, 0)
	return nil
}

// renew does what is to be done again and again.
func (p *player) renew(now Faults, session time.Duration) {
	if n := now.find(faultSSRC).round(session); n > p.nextRenew.ssrc {
		p.nextRenew.ssrc, p.ssrc = n, p.random.Uint32()
	}
	if n := now.find(faultSeq).round(session); n > p.nextRenew.seq {
		p.nextRenew.seq, p.seq = n, uint16(p.random.Uint32()) //nolint:gosec // any 16 bits
	}
	if n := now.find(faultJump).round(session); n > p.nextRenew.jump {
		p.nextRenew.jump = n
		p.jumped += p.random.Uint32()
	}
}

// round counts the spans of a session that have passed.
func (f *fault) round(session time.Duration) int {
	if f == nil {
		return 0
	}
	return int(session / f.span)
}

// packetise cuts a picture into packets as the camera numbers them.
func (p *player) packetise(s *Sample, now Faults) ([]*rtp.Packet, error) {
	nalus := s.NALUs
	if s.RandomAccess && !now.has(faultNoParams) {
		nalus = append(p.clip.ParameterSets(), nalus...)
	}
	var packets []*rtp.Packet
	groups := [][][]byte{nalus}
	if now.has(faultMarkers) && len(nalus) > 1 {
		groups = nil
		for _, n := range nalus {
			groups = append(groups, [][]byte{n})
		}
	}
	for _, g := range groups {
		cut, err := p.encode(g)
		if err != nil {
			return nil, fmt.Errorf("packetise a picture: %w", err)
		}
		packets = append(packets, cut...)
	}
	stamp := p.clock(s) + p.jumped
	if now.has(faultSame) {
		stamp = p.stamp
	}
	p.lastSent = stamp
	for _, packet := range packets {
		packet.PayloadType, packet.SSRC, packet.Timestamp, packet.SequenceNumber = p.payload, p.ssrc, stamp, p.seq
		p.seq++
		if now.has(faultNoMarker) {
			packet.Marker = false
		}
		if now.has(faultMetadata) {
			packet.PayloadType, packet.Payload = metadataType, []byte("<metadata/>")
		}
	}
	return packets, nil
}

// metadataType is the payload type that cameras with ONVIF analytics use.
const metadataType = 107

// mangle sends a packet as a bad network would deliver it.
func (p *player) mangle(packet *rtp.Packet, now Faults) error {
	hit := func(name string) bool {
		f := now.find(name)
		return f != nil && p.random.Float64() < f.share
	}
	if hit(faultLoss) {
		return nil
	}
	if hit(faultCorrupt) && len(packet.Payload) > 2 {
		payload := append([]byte(nil), packet.Payload...) // the clip's bytes are shared
		payload[2+p.random.IntN(len(payload)-2)] ^= 1 << p.random.IntN(8)
		packet.Payload = payload
	}
	if hit(faultGarbage) {
		junk := make([]byte, 1+p.random.IntN(64))
		for i := range junk {
			junk[i] = byte(p.random.IntN(32)) // neither '$' nor a letter
		}
		if err := p.out.junk(junk); err != nil {
			return err
		}
	}
	if f := now.find(faultReorder); f != nil && p.random.IntN(20) == 0 {
		p.held = append(p.held, held{packet: packet, behind: 1 + p.random.IntN(f.count)})
		return nil
	}
	if err := p.send(packet); err != nil {
		return err
	}
	if hit(faultDup) {
		if err := p.send(packet); err != nil {
			return err
		}
	}
	return p.release()
}

// release sends the packets that have been late for long enough.
func (p *player) release() error {
	kept := p.held[:0]
	for _, h := range p.held {
		if h.behind--; h.behind > 0 {
			kept = append(kept, h)
			continue
		}
		if err := p.send(h.packet); err != nil {
			return err
		}
	}
	p.held = kept
	return nil
}

func (p *player) send(packet *rtp.Packet) error {
	b, err := packet.Marshal()
	if err != nil {
		return fmt.Errorf("marshal a packet: %w", err)
	}
	p.packets++
	p.octets += uint32(len(packet.Payload)) //nolint:gosec // wraps, as RTCP says
	return p.out.rtp(b)
}

// second does what comes once a second, with video or without.
func (p *player) second() error {
	now := p.t.cam.now()
	if p.t.isFrozen() {
		return nil
	}
	if now.standing() != p.t.faults {
		return errReset
	}
	if now.has(faultRequests) {
		if err := p.request(); err != nil {
			return err
		}
	}
	if now.has(faultNoSR) || p.lost.Load() {
		return nil
	}
	at := time.Now()
	report := rtcp.SenderReport{
		SSRC: p.ssrc, NTPTime: ntp(at), RTPTime: p.stamp + p.jumped + ticks(at.Sub(p.begin)),
		PacketCount: p.packets, OctetCount: p.octets,
	}
	if now.has(faultBadNTP) {
		report.NTPTime = ntp(at.AddDate(-60+40*p.random.IntN(4), 0, 0))
	}
	b, err := report.Marshal()
	if err != nil {
		return fmt.Errorf("marshal a report: %w", err)
	}
	return p.out.rtcp(b)
}

// request asks the client for something, as some cameras do.
func (p *player) request() error {
	p.requests++
	method := []base.Method{base.Options, base.SetParameter, base.GetParameter}[p.requests%3]
	u, err := base.ParseURL("rtsp://" + p.t.conn.LocalAddr().String() + "/" + p.t.cam.Path)
	if err != nil {
		return err
	}
	b, err := base.Request{
		Method: method, URL: u,
		Header: base.Header{"CSeq": {strconv.Itoa(p.requests)}, "Session": {p.id}},
	}.Marshal()
	if err != nil {
		return err
	}
	return p.t.write(b)
}
