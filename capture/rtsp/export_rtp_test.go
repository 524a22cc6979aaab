package rtsp

import (
	"strconv"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// Arrival and Assembler let tests hand NAL units in as a camera would.
type (
	Arrival   = arrival
	Assembler = assembler
	Timeline  = timeline
)

// NewArrival makes the facts of one packet.
func NewArrival(rtpTime uint32, marker bool, received time.Time) Arrival {
	return Arrival{rtpTime: rtpTime, marker: marker, received: received}
}

// NewAssembler makes one that hands its units to emit.
func NewAssembler(codec capture.Codec, emit func(*capture.AccessUnit)) *Assembler {
	return &Assembler{codec: codec, emit: emit}
}

// Packet hands a packet's NAL units in.
func (a *Assembler) Packet(at Arrival, lost bool, nalus ...[]byte) {
	a.packet(at, yield{nalus: nalus}, lost)
}

// Part hands a packet in; open says that a slice of it goes on in the next.
func (a *Assembler) Part(at Arrival, open bool, nalus ...[]byte) {
	a.packet(at, yield{nalus: nalus, open: open}, false)
}

// Expire says what time it is.
func (a *Assembler) Expire(now time.Time) { a.expire(now) }

// At maps the RTP time of a picture that came at a time.
func (t *Timeline) At(rtpTime uint32, received time.Time) time.Duration {
	return t.at(rtpTime, received)
}

// ReadNAL is the classification of one unit.
func ReadNAL(codec capture.Codec, nalu []byte) (random bool) { return readNAL(codec, nalu).random }

// Clock is what the camera's sender reports make of its times.
type Clock = cameraClock

// Report takes a sender report.
func (c *Clock) Report(ntp uint64, rtp, rtpTime uint32, now time.Time) {
	c.report(ntp, rtp, rtpTime, now)
}

// At is when a picture was taken.
func (c *Clock) At(rtpTime uint32, now time.Time) time.Time { return c.at(rtpTime, now) }

// Sequencer orders packets; those that it gives are written into Out.
type Sequencer struct {
	s   sequencer
	Out []string
}

// NewSequencer waits for a missing packet as over UDP.
func NewSequencer() *Sequencer {
	s := &Sequencer{}
	s.s.hold = holdUDP
	s.s.anew = func() { s.Out = append(s.Out, "new") }
	s.s.out = func(p *packet, lost bool) {
		text := strconv.Itoa(int(p.seq))
		if lost {
			text = "!" + text
		}
		s.Out = append(s.Out, text)
	}
	return s
}

// Push hands in a packet without a payload.
func (s *Sequencer) Push(ssrc uint32, seq uint16, rtpTime uint32, now time.Time) {
	s.s.push(packet{ssrc: ssrc, seq: seq, rtpTime: rtpTime, received: now})
}

// Expire says what time it is.
func (s *Sequencer) Expire(now time.Time) { s.s.expire(now) }

// Held is how many packets wait.
func (s *Sequencer) Held() int { return len(s.s.held) }

// Depacketizer takes payloads apart.
type Depacketizer struct {
	d   depacketizer
	seq uint16
}

// NewDepacketizer makes one; donl says that H.265 packets carry decoding order
// numbers.
func NewDepacketizer(codec capture.Codec, donl bool) *Depacketizer {
	t := &track{codec: codec}
	if donl {
		t.maxDON = 1
	}
	return &Depacketizer{d: newDepacketizer(t)}
}

// Take hands in a payload; before is a unit of the packets before.
func (d *Depacketizer) Take(payload []byte, rtpTime uint32, marker, lost bool) (before []byte, nalus [][]byte, hurt, large bool) {
	d.seq++
	pkt := &rtp.Packet{Payload: payload}
	pkt.Marker, pkt.Timestamp, pkt.SequenceNumber = marker, rtpTime, d.seq
	y := d.d.take(&packet{rtpTime: rtpTime, seq: d.seq, marker: marker, payload: payload, from: pkt}, lost)
	return y.before, y.nalus, y.hurt, y.large
}

// Framer finds what belongs into a connection.
type Framer struct{ f framer }

// Feed hands bytes in and gives those that are good.
func (f *Framer) Feed(b []byte) (good []byte) {
	var out [4096]byte
	for len(b) > 0 {
		n := copy(f.f.space(), b)
		f.f.filled(n)
		b = b[n:]
		for {
			n := f.f.read(out[:])
			if n == 0 {
				break
			}
			good = append(good, out[:n]...)
		}
	}
	return good
}

// Receiver makes access units of packets.
type Receiver struct{ r receiver }

// NewReceiver hands access units to emit; now is its clock.
func NewReceiver(codec capture.Codec, transport Transport, now func() time.Time, emit func(*capture.AccessUnit)) *Receiver {
	r := &Receiver{receiver{now: now}}
	r.r.start(&track{codec: codec}, transport, emit, func(error) {})
	return r
}

// Packet hands in a packet.
func (r *Receiver) Packet(pkt *rtp.Packet) { r.r.packet(pkt) }

// Report hands in a report.
func (r *Receiver) Report(pkt rtcp.Packet) { r.r.report(pkt) }

// Expire ends what has waited for long enough.
func (r *Receiver) Expire() { r.r.expire() }

// Stop ends all calls of emit.
func (r *Receiver) Stop() { r.r.stop() }
