package rtsp

import (
	"time"

	"edgecam/capture"
)

const (
	maxUnitBytes = 8 << 20 // of one access unit; a 4K intra picture at high quality has 2 to 4 MB
	maxUnitNALs  = 16384   // one for each macroblock of 1080p, and some

	// confirmMarkers is how many markers in a row must end a picture before
	// they are believed.
	confirmMarkers = 3

	// Where markers are not to be believed, a picture that has as many slices as
	// all those before, and after which nothing comes for a while, is complete: the
	// next one may be a second away. A camera that goes on with it after all is
	// given twice the time from then on.
	steadyAfter = 8 // pictures
	quietMin    = 200 * time.Millisecond
	quietMax    = 2 * time.Second
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
// therefore cut where a new picture is seen to begin, or after a silence, until
// a few markers have proved true; from then on the marker ends the unit, unless
// one is seen to lie.
//
// A unit is flagged when packets were lost in it, or between it and the unit
// before. One that is not whole itself is no place to start decoding at. Not
// safe for concurrent use.
type assembler struct {
	codec capture.Codec
	emit  func(*capture.AccessUnit)

	cur         *capture.AccessUnit // being filled; nil = none
	bytes       int
	picture     bool     // cur holds a slice
	slices      int      // in cur
	usual       int      // slices of the picture before
	steady      int      // pictures in a row that had as many
	unfinished  bool     // a slice has begun and not ended
	torn        bool     // a part of cur is missing
	marked      bool     // the last packet of cur had the marker
	ahead       [][]byte // what came behind cur's picture and seems to belong to the next one
	aheadRandom bool
	oversized   bool // drop the rest of the unit at overTime
	overTime    uint32

	truth     int  // markers in a row that ended a picture
	liar      bool // a marker came in the middle of a picture
	quiet     time.Duration
	bySilence bool // the unit before was ended by silence
	lossNext  bool // flag the next unit
	tornNext  bool // a part of the unit at tornTime, which has not begun, is missing
	tornTime  uint32
	last      uint32
	emitted   bool // last is valid

	clock timeline
	drops uint64 // units that were too large
	hurt  uint64 // units that were flagged
}

// unit is an access unit with room for the parts that most have.
type unit struct {
	capture.AccessUnit
	room [6][]byte
}

// packet takes what a packet gave. lost says that packets went missing just
// before it.
func (a *assembler) packet(at arrival, y yield, lost bool) {
	a.border(at, lost)
	if y.hurt {
		a.tear(at.rtpTime)
	}
	if y.large {
		a.drop(at.rtpTime)
	}
	for _, nalu := range y.nalus {
		a.add(at, nalu)
	}
	a.unfinished = y.open
	if a.cur == nil || a.cur.RTPTime != at.rtpTime {
		return
	}
	a.cur.Received, a.cur.CapturedAt = at.received, at.capturedAt
	a.marked = at.marker
	if at.marker && a.picture && a.truth >= confirmMarkers && !a.liar {
		a.learn()
		a.flush()
	}
}

// whole takes a picture that the depacketizer gives in one piece.
func (a *assembler) whole(at arrival, picture []byte, lost bool) {
	a.cur = a.begin(at, lost || a.lossNext)
	a.cur.NALUs, a.cur.RandomAccess = append(a.cur.NALUs, picture), true
	a.cur.Received, a.cur.CapturedAt = at.received, at.capturedAt
	a.flush()
}

// restart ends the unit that is being filled, as another stream begins: its
// times are on another clock.
func (a *assembler) restart() {
	if a.cur != nil && a.picture {
		a.torn = a.torn || !a.marked || a.liar
		a.flush()
	}
	a.cur, a.oversized, a.emitted, a.lossNext, a.tornNext = nil, false, false, true, false
	a.ahead, a.aheadRandom = a.ahead[:0], false
	a.clock.jumped = true
}

// due is when expire has something to do; zero = never.
func (a *assembler) due() time.Time {
	if a.cur == nil || !a.seemsWhole() {
		return time.Time{}
	}
	return a.cur.Received.Add(max(a.quiet, quietMin))
}

// seemsWhole says whether cur may be a whole picture. Where markers are believed
// they tell: if one is missing the next picture ends this one.
func (a *assembler) seemsWhole() bool {
	switch {
	case !a.picture || a.unfinished:
		return false
	case a.liar || !a.marked && a.truth < confirmMarkers:
		return a.slices == a.usual && a.steady >= steadyAfter
	default:
		return a.marked
	}
}

// expire ends a picture after which nothing came.
func (a *assembler) expire(now time.Time) {
	if due := a.due(); due.IsZero() || now.Before(due) {
		return
	}
	a.learn()
	a.flush()
	a.bySilence = true
}

// border ends the unit before when a packet of another time comes, and says
// whom a loss concerns: both sides of the gap.
func (a *assembler) border(at arrival, lost bool) {
	switch {
	case a.cur == nil || a.cur.RTPTime == at.rtpTime:
	case a.picture:
		a.torn = a.torn || lost
		a.learn()
		a.flush()
	default:
		// Parameter sets or SEI that were sent ahead with their own time: they
		// belong to the picture that comes.
		a.cur.RTPTime = at.rtpTime
	}
	switch {
	case !lost:
	case a.cur == nil:
		a.lossNext = true
	case a.picture:
		a.torn = true
	default:
		a.cur.LossBefore = true
	}
}

// tear notes that a part of the picture of a time is missing.
func (a *assembler) tear(rtpTime uint32) {
	if a.cur != nil && a.cur.RTPTime == rtpTime {
		a.torn = true
		return
	}
	a.lossNext, a.tornNext, a.tornTime = true, true, rtpTime
}

// drop gives up a unit that is too large, with all that is to come of it.
func (a *assembler) drop(rtpTime uint32) {
	if a.oversized && a.overTime == rtpTime {
		return
	}
	a.cur, a.picture, a.ahead, a.aheadRandom = nil, false, a.ahead[:0], false
	a.oversized, a.overTime, a.lossNext = true, rtpTime, true
	a.drops++
}

// begin makes the next unit.
func (a *assembler) begin(at arrival, lost bool) *capture.AccessUnit {
	u := &unit{AccessUnit: capture.AccessUnit{RTPTime: at.rtpTime, LossBefore: lost}}
	u.NALUs = u.room[:0]
	a.torn = a.tornNext && a.tornTime == at.rtpTime
	a.bytes, a.slices, a.picture, a.marked, a.lossNext, a.tornNext = 0, 0, false, false, false, false
	return &u.AccessUnit
}

// add puts one NAL unit where it belongs.
func (a *assembler) add(at arrival, nalu []byte) {
	u := readNAL(a.codec, nalu)
	if a.oversized {
		if a.oversized = at.rtpTime == a.overTime && u.role != rolePicture; a.oversized {
			return
		}
	}
	switch {
	case u.role == roleNone, u.role == roleTrailing && a.cur == nil:
		return
	case a.picture && (u.role == rolePicture || u.role == roleBorder):
		a.learn()
		a.flush()
	case a.picture && u.role == rolePrefix:
		// Of the next picture; or a camera puts it between slices of this one.
		a.ahead = append(a.ahead, nalu)
		a.aheadRandom = a.aheadRandom || u.random
		a.bytes += len(nalu)
		a.bound(at)
		return
	case a.picture && u.role == roleSlice:
		a.liar = a.liar || a.marked
		a.takeAhead()
	}
	if a.cur == nil {
		a.open(at, u)
	}
	if !a.picture && u.role == roleSlice && (a.cur.LossBefore || !a.emitted) {
		a.torn = true // its first slice is missing
	}
	a.cur.NALUs = append(a.cur.NALUs, nalu)
	a.bytes += len(nalu)
	if u.role == rolePicture || u.role == roleSlice {
		a.picture = true
		a.slices++
	}
	a.cur.RandomAccess = a.cur.RandomAccess || u.random
	a.cur.Received, a.cur.CapturedAt = at.received, at.capturedAt
	a.bound(at)
}

// open begins a unit with what was waiting for it.
func (a *assembler) open(at arrival, u nalUnit) {
	if u.role == roleSlice && a.emitted && a.last == at.rtpTime && !a.lossNext {
		// The rest of a picture whose unit has ended: too early, then.
		if a.bySilence {
			a.quiet = min(2*max(a.quiet, quietMin), quietMax)
		} else {
			a.liar = true
		}
		a.lossNext = true
	}
	a.cur = a.begin(at, a.lossNext)
	a.takeAhead()
}

// takeAhead puts into cur what came ahead of its next part.
func (a *assembler) takeAhead() {
	a.cur.NALUs = append(a.cur.NALUs, a.ahead...)
	a.cur.RandomAccess = a.cur.RandomAccess || a.aheadRandom
	clear(a.ahead)
	a.ahead, a.aheadRandom = a.ahead[:0], false
}

// bound drops a unit that has grown too large.
func (a *assembler) bound(at arrival) {
	if a.bytes > maxUnitBytes || len(a.cur.NALUs)+len(a.ahead) > maxUnitNALs {
		a.drop(at.rtpTime)
	}
}

// learn takes note of a picture that has ended: of its slices, and of the marker
// where it stood at the end.
func (a *assembler) learn() {
	if a.steady++; a.slices != a.usual {
		a.usual, a.steady = a.slices, 1
	}
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
	a.last, a.emitted, a.bySilence = au.RTPTime, true, false
	a.cur, a.picture, a.marked = nil, false, false
	if a.torn {
		au.LossBefore, au.RandomAccess = true, false
	}
	if a.torn = false; au.LossBefore {
		a.hurt++
	}
	au.PTS = a.clock.at(au.RTPTime, au.Received)
	a.emit(au)
}

// How far the RTP time of a picture may be from what its arrival lets expect,
// and from the picture before it in decoding order. A camera that goes further
// has jumped, or has begun anew.
const (
	maxTimeJump = 5 * time.Second
	maxStepBack = time.Second
)

// timeline turns 32 bit RTP times, which wrap every 13 hours at 90 kHz, into a
// time from the first one on. Where they jump, the clock of the arrivals goes on
// in their place.
type timeline struct {
	started  bool
	jumped   bool // the next time is on another clock
	last     uint32
	received time.Time
	now      time.Duration
	ticks    int64 // since the RTP times last jumped
	base     time.Duration
}

func (t *timeline) at(rtpTime uint32, received time.Time) time.Duration {
	if t.started {
		ticks := int64(int32(rtpTime - t.last)) // the shorter way around
		step, passed := ticksToTime(ticks), max(received.Sub(t.received), 0)
		if t.jumped || step < -maxStepBack || (step-passed).Abs() > maxTimeJump {
			t.base, t.ticks = t.now+passed, 0
		} else {
			t.ticks += ticks
		}
	}
	t.started, t.jumped, t.last, t.received = true, false, rtpTime, received
	t.now = t.base + ticksToTime(t.ticks)
	return t.now
}

// ticksToTime converts a number of ticks of the RTP clock; it is split, so that
// the product does not overflow after 28 hours.
func ticksToTime(ticks int64) time.Duration {
	return time.Duration(ticks/clockRate)*time.Second + time.Duration(ticks%clockRate)*time.Second/clockRate
}
