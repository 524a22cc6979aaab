package rtsp

import "encoding/binary"

const (
	// How much it takes to disbelieve sequence numbers. No network gives packets
	// of different content the same number, or makes the same step of all numbers.
	maxContradictions = 8   // in a span
	contradictionSpan = 256 // packets
	maxOddSteps       = 64  // in a row
	// Over TCP nothing is lost on the way but by a relay, and never most of it.
	maxBad  = 48 // in a span
	badSpan = 64 // packets

	// believeAgain is how many numbers in a row must be right after that.
	believeAgain = 256

	prints = 256
)

// numbering finds out whether sequence numbers count the packets: cameras were
// seen that leave them at one value, count by two, backwards, or pictures.
type numbering struct {
	begun bool
	last  uint16
	step  uint16
	run   int // steps of this size in a row

	seen           int
	contradictions int
	packets, bad   int
	prints         [prints]struct{ seq, print uint64 }
}

// note takes the next packet as it came, and says whether the numbers must be
// disbelieved.
func (n *numbering) note(p packet) (absurd bool) {
	if n.begun {
		if step := p.seq - n.last; step == n.step {
			n.run++
		} else {
			n.step, n.run = step, 1
		}
	}
	n.begun, n.last = true, p.seq
	if n.seen++; n.seen > contradictionSpan {
		n.seen, n.contradictions = 1, 0
	}
	at := &n.prints[p.seq%prints]
	mark := printOf(p)
	if at.seq == uint64(p.seq)+1 && at.print != mark { // 0 = none
		n.contradictions++
	}
	at.seq, at.print = uint64(p.seq)+1, mark
	oddSteps := n.step > 1 && n.run >= maxOddSteps
	return n.contradictions >= maxContradictions || oddSteps
}

// outcome notes whether the numbers put a packet where it belongs; absurd when
// they seldom do.
func (n *numbering) outcome(bad bool) (absurd bool) {
	if n.packets++; n.packets > badSpan {
		n.packets, n.bad = 1, 0
	}
	if bad {
		n.bad++
	}
	return n.bad >= maxBad
}

// sane says that the numbers count packets, and have for a while.
func (n *numbering) sane() bool { return n.step == 1 && n.run >= believeAgain && n.contradictions == 0 }

// printOf tells packets from one another, well enough.
func printOf(p packet) uint64 {
	var ends [16]byte
	copy(ends[:8], p.payload)
	copy(ends[8:], p.payload[max(0, len(p.payload)-8):])
	a, b := binary.LittleEndian.Uint64(ends[:8]), binary.LittleEndian.Uint64(ends[8:])
	return (a*31+b)*31 + uint64(p.rtpTime)<<16 + uint64(len(p.payload))
}
