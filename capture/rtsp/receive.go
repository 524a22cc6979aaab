package rtsp

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// tap shows each RTP packet of a track as it comes, by means of a question that
// gortsplib asks of the track's format before anything else. What the library
// itself passes on has been through its own ordering, which waits for a number
// of packets however long they take, and lacks all packets of a camera that has
// begun a new stream.
type tap struct {
	format.Format
	packet func(*rtp.Packet)
}

// PTSEqualsDTS implements format.Format.
func (t *tap) PTSEqualsDTS(pkt *rtp.Packet) bool {
	t.packet(pkt)
	return t.Format.PTSEqualsDTS(pkt)
}

// receiver makes access units of packets. Packets and reports may come from
// several goroutines; the sink hears from one at a time, and not any more once
// stop has returned.
type receiver struct {
	now func() time.Time // in place of time.Now for tests

	mu          sync.Mutex
	codec       capture.Codec
	sequencer   sequencer
	depacketize depacketizer
	assembler   assembler
	clock       cameraClock
	before      arrival // of the packet before
	giveUp      func(error)
	timer       *time.Timer
	timing      bool // the timer runs
	stopped     bool

	damaged atomic.Uint64 // packets that were not understood
}

// start says what comes, before the first packet does. giveUp hears why the
// stream cannot be taken.
func (r *receiver) start(t *track, transport Transport, emit func(*capture.AccessUnit), giveUp func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.depacketize, r.giveUp = newDepacketizer(t), giveUp
	if r.now == nil {
		r.now = time.Now
	}
	r.codec = t.codec
	r.assembler = assembler{codec: t.codec, emit: emit}
	r.sequencer = sequencer{hold: holdTCP, tcp: true, out: r.ordered, anew: r.anew, blind: r.astray}
	if transport == UDP {
		r.sequencer.hold, r.sequencer.tcp = holdUDP, false
	}
}

// stop ends all calls of the sink.
func (r *receiver) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// summary tells what became of the packets.
func (r *receiver) summary(log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := &r.sequencer
	log.Debug("rtsp session ended", "lost", q.missing, "late", q.late, "repeated", q.repeated, "begun_anew", q.begun,
		"damaged", r.damaged.Load(), "units_flagged", r.assembler.hurt, "too_large", r.assembler.drops)
}

// packet takes a packet as it comes from the network.
func (r *receiver) packet(pkt *rtp.Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.sequencer.push(packet{
		ssrc: pkt.SSRC, rtpTime: pkt.Timestamp, seq: pkt.SequenceNumber, marker: pkt.Marker,
		payload: pkt.Payload, from: pkt, received: r.now(),
	})
	r.watch()
}

// report takes what a camera says about its stream.
func (r *receiver) report(pkt rtcp.Packet) {
	sr, ok := pkt.(*rtcp.SenderReport)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sequencer.started {
		r.clock.report(sr.NTPTime, sr.RTPTime, r.sequencer.last, r.now())
	}
}

// ordered takes the packets in order.
func (r *receiver) ordered(p *packet, lost bool) {
	at := arrival{rtpTime: p.rtpTime, marker: p.marker, received: p.received, capturedAt: r.clock.at(p.rtpTime, p.received)}
	y := r.depacketize.take(p, lost)
	if y.hurt {
		r.damaged.Add(1)
		if unsupported := new(capture.UnsupportedError); errors.As(y.err, &unsupported) {
			r.giveUp(unsupported)
		}
	}
	switch {
	case r.codec != capture.MJPEG:
		if y.before != nil {
			r.assembler.packet(r.before, yield{nalus: [][]byte{y.before}}, false)
		}
		r.assembler.packet(at, y, lost)
	case len(y.nalus) == 1:
		r.assembler.whole(at, y.nalus[0], lost)
	default:
		r.assembler.lossNext = r.assembler.lossNext || lost || y.hurt
	}
	r.before = at
}

// anew hears that a stream has begun in place of another.
func (r *receiver) anew() {
	r.assembler.restart()
	r.clock = cameraClock{}
}

// astray hears that nothing tells the order of packets.
func (r *receiver) astray() {
	r.giveUp(&capture.UnsupportedError{
		What: "transport udp",
		Hint: "the camera's packets are not numbered one by one, so that a loss would not be seen: set transport to auto or tcp",
	})
}

// watch sets the timer for what waits. It stays set when what it was set for has
// come: that costs less than to stop it for each packet.
func (r *receiver) watch() {
	if r.timing {
		return
	}
	due := r.sequencer.due()
	if other := r.assembler.due(); due.IsZero() || !other.IsZero() && other.Before(due) {
		due = other
	}
	if due.IsZero() {
		return
	}
	r.timing = true
	if wait := due.Sub(r.now()); r.timer == nil {
		r.timer = time.AfterFunc(wait, r.expire)
	} else {
		r.timer.Reset(wait)
	}
}

// expire ends what has waited for long enough.
func (r *receiver) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timing = false
	if r.stopped {
		return
	}
	now := r.now()
	r.sequencer.expire(now)
	r.assembler.expire(now)
	r.watch()
}
