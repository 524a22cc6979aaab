package rtsp

import (
	"slices"
	"time"

	"github.com/pion/rtp"
)

// packet is what is kept of an RTP packet. Its bytes are nobody else's.
type packet struct {
	ssrc     uint32
	rtpTime  uint32
	seq      uint16
	marker   bool
	payload  []byte
	from     *rtp.Packet
	received time.Time
}

const (
	// How long a packet waits for one before it that is missing. Networks that
	// reorder do so within milliseconds; what comes later than this is lost for
	// live video. Over TCP only a relay or the camera itself can swap packets.
	holdUDP = 100 * time.Millisecond
	holdTCP = 40 * time.Millisecond

	maxHeld = 2048 // packets; some 3 MB, a fifth of a second at 100 Mb/s

	// maxGap is the largest step of sequence numbers that is taken as a loss.
	// After a larger one the camera has begun to count anew.
	maxGap = 3000

	// recentPackets are remembered to tell a repeated packet, and one that is
	// late, from a camera that counts anew.
	recentPackets = 1024

	// silence is how long after the last packet in order others are taken for
	// what they seem to be: repeated, late, or of the stream that was left. Two
	// streams on one channel must not take turns; but if nothing else comes, a
	// camera may repeat its numbers.
	silence = 2 * time.Second
)

// sequencer brings packets into their order, drops repeated ones, and notices
// what is missing. How long it waits for a missing packet is a matter of time,
// never of the number of packets behind it.
//
// A camera that begins a new stream (another SSRC, or other sequence numbers) is
// followed at its second packet, and loses none.
type sequencer struct {
	hold  time.Duration
	tcp   bool                       // packets come in the order that they were sent in
	out   func(p *packet, lost bool) // lost: packets before this one are missing, or another stream began
	anew  func()                     // a stream has begun in place of another
	blind func()                     // over UDP: the numbers do not count packets, and nothing else tells their order; may be nil

	numbers numbering
	astray  bool // the numbers do not count packets: those are taken as they come
	gap     bool // what came before that may be torn

	started  bool
	ssrc     uint32
	next     uint16    // sequence number that is due
	last     uint32    // RTP time of the packet before
	heard    time.Time // arrival of the packet before
	held     []packet  // behind a gap, in order
	waiting  time.Time // since when for the packet that is due; zero = nothing is held
	recent   [recentPackets]recentPacket
	leaving  packet
	strange  packet // may be the first of a new stream
	strangeN int
	left     uint32 // SSRC of the stream before
	hasLeft  bool

	misplaced uint64 // packets that came out behind a gap, or not at all

	missing  uint64 // packets that never came, or too late
	late     uint64
	repeated uint64
	begun    uint64 // streams after the first
}

type recentPacket struct {
	rtpTime uint32
	seq     uint16
	came    bool
}

// push takes a packet as it comes from the network.
func (s *sequencer) push(p packet) {
	if s.started && p.ssrc == s.ssrc && s.numbers.note(p) && !s.astray {
		s.disbelieve()
	}
	if s.astray {
		s.follow(p)
		return
	}
	before := s.misplaced
	s.place(p)
	s.expire(p.received)
	if p.ssrc == s.ssrc && s.numbers.outcome(s.misplaced != before) && s.tcp {
		s.disbelieve()
	}
}

// disbelieve takes packets as they come from now on, for the numbers do not
// count them. Over UDP nothing else would tell their order, or a loss.
func (s *sequencer) disbelieve() {
	if !s.tcp {
		if s.blind != nil {
			s.blind()
		}
		return
	}
	for len(s.held) > 0 {
		s.giveUp()
	}
	s.astray, s.begun, s.numbers = true, s.begun+1, numbering{}
	s.gap = true
}

// follow takes a packet of a stream whose numbers mean nothing.
func (s *sequencer) follow(p packet) {
	switch {
	case p.ssrc != s.ssrc:
		s.stranger(p)
	case s.numbers.sane():
		s.astray, s.numbers = false, numbering{}
		s.recent = [recentPackets]recentPacket{}
		s.deliver(p, false)
	default:
		s.strangeN = 0
		p.seq = s.next
		if p.from != nil {
			p.from.SequenceNumber = p.seq // it is ours by now
		}
		s.deliver(p, s.gap)
		s.gap = false
	}
}

// place puts a packet where its number says.
func (s *sequencer) place(p packet) {
	quiet := p.received.Sub(s.heard) >= silence
	switch ahead := int(int16(p.seq - s.next)); {
	case !s.started:
		s.begin(p)
	case p.ssrc != s.ssrc && s.hasLeft && p.ssrc == s.left && !quiet:
		s.late++
	case p.ssrc != s.ssrc:
		s.stranger(p)
	case ahead == 0:
		s.strangeN = 0
		s.deliver(p, false)
		s.drain()
	case ahead > 0 && ahead <= maxGap:
		s.keep(p)
	case ahead < 0 && !quiet && s.came(p):
		s.repeated++
	case ahead < 0 && !quiet && s.tooLate(p, -ahead):
		s.late++
		s.misplaced++
	default:
		s.stranger(p)
	}
}

func (s *sequencer) begin(p packet) {
	s.started, s.ssrc, s.strangeN = true, p.ssrc, 0
	s.astray, s.gap, s.numbers = false, false, numbering{}
	s.recent = [recentPackets]recentPacket{}
	s.deliver(p, s.begun > 0)
}

func (s *sequencer) deliver(p packet, lost bool) {
	s.recent[p.seq%recentPackets] = recentPacket{rtpTime: p.rtpTime, seq: p.seq, came: true}
	s.next, s.last, s.heard = p.seq+1, p.rtpTime, p.received
	s.leaving = p // a place on the heap, for all packets
	s.out(&s.leaving, lost)
}

// keep puts a packet behind the gap before it.
func (s *sequencer) keep(p packet) {
	at, found := slices.BinarySearchFunc(s.held, p.seq, func(h packet, seq uint16) int {
		return int(int16(h.seq - seq))
	})
	if found {
		s.repeated++
		return
	}
	if len(s.held) == 0 {
		s.waiting = p.received
	}
	s.held = slices.Insert(s.held, at, p)
}

// drain lets out what is held and due now.
func (s *sequencer) drain() {
	n := 0
	for n < len(s.held) && s.held[n].seq == s.next {
		s.deliver(s.held[n], false)
		n++
	}
	s.forget(n)
}

// forget takes the first n held packets out of the queue, and finds out since
// when the others wait.
func (s *sequencer) forget(n int) {
	if n == 0 {
		return
	}
	s.held = slices.Delete(s.held, 0, n)
	s.waiting = time.Time{}
	for i := range s.held {
		if at := s.held[i].received; s.waiting.IsZero() || at.Before(s.waiting) {
			s.waiting = at
		}
	}
}

// expire gives up what was waited for long enough.
func (s *sequencer) expire(now time.Time) {
	for len(s.held) > 0 && (now.Sub(s.waiting) >= s.hold || len(s.held) > maxHeld) {
		s.giveUp()
	}
}

func (s *sequencer) giveUp() {
	first := s.held[0]
	s.missing += uint64(first.seq - s.next)
	s.misplaced++
	for seq := s.next; seq != first.seq; seq++ {
		s.recent[seq%recentPackets] = recentPacket{}
	}
	s.deliver(first, true)
	s.forget(1)
	s.drain()
}

// due is when expire has something to do; zero = never.
func (s *sequencer) due() time.Time {
	if s.waiting.IsZero() {
		return time.Time{}
	}
	return s.waiting.Add(s.hold)
}

// came says whether this very packet came before. A camera that counts anew
// uses the same sequence numbers with other times.
func (s *sequencer) came(p packet) bool {
	r := s.recent[p.seq%recentPackets]
	return r.came && r.seq == p.seq && r.rtpTime == p.rtpTime
}

// tooLate says whether the packet, which is behind by some sequence numbers,
// fills a gap that was given up, or belongs before the first packet.
func (s *sequencer) tooLate(p packet, behind int) bool {
	r := s.recent[p.seq%recentPackets]
	age := int32(s.last - p.rtpTime)
	return behind <= recentPackets && !(r.came && r.seq == p.seq) && age >= 0 && age < 10*clockRate
}

// stranger takes a packet that does not continue the stream. Two in a row are
// a new stream; one alone is nothing.
func (s *sequencer) stranger(p packet) {
	s.misplaced++
	first := s.strange
	follows := s.strangeN > 0 && p.ssrc == first.ssrc && (s.astray || p.seq == first.seq+1)
	s.strange, s.strangeN = p, 1
	if !follows {
		return
	}
	for len(s.held) > 0 {
		s.giveUp()
	}
	if first.ssrc != s.ssrc {
		s.left, s.hasLeft = s.ssrc, true
	}
	s.begun++
	s.anew()
	s.begin(first)
	s.deliver(p, false)
	s.strange = packet{}
}
