package rtsp

import (
	"time"

	"edgecam/capture"
)

const (
	maxUnitBytes = 8 << 20 // of one access unit; a 4K intra picture at high quality has 2 to 4 MB
	maxUnitNALs  = 1024

	// confirmMarkers is how many markers in a row must end a picture before
	// they are believed.
	confirmMarkers = 3
)

// arrival is what is known of one RTP packet besides its payload.
type arrival struct {
	rtpTime    uint32
	marker     bool
	received   time.Time
	capturedAt time.Time
}

// assembler joins NAL units to access units. Not every camera sets the marker
// bit as RFC 6184 demands: some set it on every slice, some never. Units are
// therefore cut where a new picture is seen to begin, which costs one frame of
// delay, until a few markers have proved true; from then on the marker ends
// the unit, unless one is seen to lie.
//
// A unit is flagged when packets were lost in it, or between it and the unit
// before. Not safe for concurrent use.
type assembler struct {
	codec capture.Codec
	emit  func(*capture.AccessUnit)

	cur       *capture.AccessUnit // being filled; nil = none
	bytes     int
	picture   bool // cur holds a slice
	marked    bool // the last packet of cur had the marker
	oversized bool // drop the rest of the unit at overTime
	overTime  uint32

	truth    int  // markers in a row that ended a picture
	liar     bool // a marker came in the middle of a picture
	lossNext bool // flag the next unit
	last     uint32
	emitted  bool // last is valid

	clock timeline
	drops uint64 // units that were too large
}

// packet takes the NAL units that a packet completed, if any. lost says that
// packets went missing just before this one, or that this one was damaged.
func (a *assembler) packet(at arrival, nalus [][]byte, lost bool) {
	a.border(at, lost)
	if a.oversized {
		if at.rtpTime == a.overTime {
			return
		}
		a.oversized = false
	}
	for _, nalu := range nalus {
		if len(nalu) > 0 && !a.add(at, nalu) {
			return
		}
	}
	if a.cur == nil || a.cur.RTPTime != at.rtpTime {
		return
	}
	a.cur.Received, a.cur.CapturedAt = at.received, at.capturedAt
	a.marked = at.marker
	if at.marker && a.picture && a.truth >= confirmMarkers && !a.liar {
		a.flush()
	}
}

// whole takes a picture that the depacketizer gives in one piece.
func (a *assembler) whole(at arrival, picture []byte, lost bool) {
	a.cur = &capture.AccessUnit{
		NALUs: [][]byte{picture}, RTPTime: at.rtpTime, RandomAccess: true,
		Received: at.received, CapturedAt: at.capturedAt, LossBefore: lost || a.lossNext,
	}
	a.lossNext = false
	a.flush()
}

// border ends the unit before when a packet of another time comes, and says
// whom a loss concerns: both sides of the gap.
func (a *assembler) border(at arrival, lost bool) {
	if a.cur != nil && a.cur.RTPTime != at.rtpTime {
		a.cur.LossBefore = a.cur.LossBefore || lost
		if a.picture {
			a.learn()
			a.flush()
		} else {
			// Parameter sets or SEI that were sent ahead with their own time:
			// they belong to the picture that comes.
			a.cur.RTPTime = at.rtpTime
		}
	}
	if !lost {
		return
	}
	if a.cur != nil {
		a.cur.LossBefore = true
	} else {
		a.lossNext = true
	}
}

// add puts one NAL unit where it belongs; false drops the rest of the packet.
func (a *assembler) add(at arrival, nalu []byte) bool {
	u := readNAL(a.codec, nalu)
	switch {
	case a.picture && (u.role == rolePicture || u.role == rolePrefix):
		a.learn()
		a.flush()
	case a.picture && u.role == roleSlice && a.marked:
		a.liar = true
	}
	if a.cur == nil && u.role == roleTrailing {
		return true
	}
	if a.cur == nil {
		if u.role == roleSlice && a.emitted && a.last == at.rtpTime && !a.lossNext {
			// The rest of a picture whose unit the marker had ended.
			a.liar, a.lossNext = true, true
		}
		a.cur = &capture.AccessUnit{RTPTime: at.rtpTime, LossBefore: a.lossNext}
		a.bytes, a.picture, a.lossNext = 0, false, false
	}
	if a.bytes+len(nalu) > maxUnitBytes || len(a.cur.NALUs) == maxUnitNALs {
		a.cur, a.picture = nil, false
		a.oversized, a.overTime, a.lossNext = true, at.rtpTime, true
		a.drops++
		return false
	}
	a.cur.NALUs = append(a.cur.NALUs, nalu)
	a.bytes += len(nalu)
	a.picture = a.picture || u.role == rolePicture || u.role == roleSlice
	a.cur.RandomAccess = a.cur.RandomAccess || u.random
	a.cur.Received, a.cur.CapturedAt = at.received, at.capturedAt
	return true
}

// learn counts the markers that stood at the end of a picture.
func (a *assembler) learn() {
	switch {
	case a.truth >= confirmMarkers:
	case a.marked:
		a.truth++
	default:
		a.truth = 0
	}
}

func (a *assembler) flush() {
	au := a.cur
	a.last, a.emitted = au.RTPTime, true
	a.cur, a.picture, a.marked = nil, false, false
	au.PTS = a.clock.at(au.RTPTime)
	a.emit(au)
}

// timeline turns 32 bit RTP times, which wrap every 13 hours at 90 kHz, into a
// time from the first one on.
type timeline struct {
	started bool
	last    uint32
	ticks   int64
}

func (t *timeline) at(rtpTime uint32) time.Duration {
	if t.started {
		t.ticks += int64(int32(rtpTime - t.last)) // the shorter way around
	}
	t.started, t.last = true, rtpTime
	// split, so that ticks × 1e9 does not overflow after 28 hours
	return time.Duration(t.ticks/clockRate)*time.Second + time.Duration(t.ticks%clockRate)*time.Second/clockRate
}
