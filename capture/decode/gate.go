package decode

import (
	"time"

	"edgecam/capture"
	"edgecam/platform/avcodec"
)

// patience is how long a stream may go without a random access point and
// without a marked refresh before its pictures are taken as they are: longer
// than the usual distance of key frames, and than the refresh of a stream that
// has none.
const patience = 10 * time.Second

// lenientAfter is the number of groups of pictures in a row that must break the
// standard's rules, with no packet lost, before the checks are taken as wrong
// for this camera.
const lenientAfter = 4

// suspectAfter is the number of groups of pictures in a row that must be damaged,
// with no packet lost, before nothing that an H.265 stream has is believed.
const suspectAfter = 2

// gate decides which pictures are whole. It is open or waits for a
// random access point.
type gate struct {
	codec capture.Codec
	open  bool
	dirty bool      // libavcodec must start anew: a unit was lost
	start bool      // while waiting: the unit to start at has come, its picture has not
	soil  bool      // H.264: libavcodec may have met broken slices since it was opened
	from  int64     // while waiting: pictures of units before are as good as before
	since time.Time // when the first unit after from came

	// libavcodec is being emptied. H.264's decoder then flags nothing as
	// unrecovered: pictures from the time of waiting prove nothing.
	draining bool

	// H.264 on the GPU: libavcodec was not emptied after a loss, so it takes what
	// follows for whole. Only a random access point counts. So it is with a blind
	// engine, always.
	strict bool
	starts int // random access points so far, to 2

	// The engine gives pictures some units late, and in order: what comes behind the
	// unit to start at is built on it, though its picture is not there yet.
	late bool

	unmarked bool // opened by patience: libavcodec goes on to call the pictures unrecovered

	// H.265: group after group was damaged with no packet lost, so the bytes are not
	// to be trusted. Its decoder sees few of the wrong ones: pictures pass again
	// only after a whole group in which it sees none.
	suspect bool

	lenient bool // H.264: the camera breaks the rules, libavcodec's concealment alone decides
	groups  int  // groups of pictures in a row that were damaged with no packet lost
	hurt    bool // in this group
	lost    bool // in this group
}

// shut closes the gate for the units from key on, at time t.
func (g *gate) shut(key int64, t time.Time) {
	if g.codec == capture.MJPEG {
		return // every picture stands for itself
	}
	g.lost = true
	g.close(key, t)
}

func (g *gate) close(key int64, t time.Time) {
	if g.open {
		g.open, g.since, g.unmarked = false, t, false
	} else if !g.late {
		return
	}
	g.start, g.from = false, key
}

// arrive notes a unit before it is decoded.
func (g *gate) arrive(u *unit) {
	if g.since.IsZero() {
		g.since = u.received
	}
	u.waiting = !g.open && !(g.late && g.start)
	g.start = g.start || u.randomAccess
	g.soil = g.soil || u.waiting && !g.start && g.codec == capture.H264
	if !u.randomAccess {
		return
	}
	g.starts = min(g.starts+1, 2)
	if g.hurt && !g.lost {
		g.groups++
	} else {
		g.groups = 0
	}
	g.hurt, g.lost = false, false
	// H.264 only: its decoder still flags what it had to make up. The HEVC
	// decoder does not.
	if g.codec == capture.H264 && g.groups >= lenientAfter {
		g.lenient = true
	}
	if g.suspect = g.codec == capture.H265 && g.groups >= suspectAfter; g.suspect {
		g.close(u.key, u.received)
		u.waiting = true
	}
}

// resumes says whether e may go on without being emptied after a loss. FFmpeg's
// H.264 decoder lets go of the GPU's decoder when it is flushed, and a new one
// takes 50 ms to set up while no other camera's can be. So where the stream has
// random access points the next one is awaited instead: it clears the decoder too.
// A stream without them needs what libavcodec makes of recovery points, for
// which it must be flushed.
func (g *gate) resumes(e engine) bool {
	if e.blind() {
		// To be set up anew takes such a decoder longer still.
		g.strict = g.codec != capture.MJPEG
		return g.strict && g.starts > 1
	}
	g.strict = e.nvdec && g.codec == capture.H264 && g.starts > 1
	return g.strict
}

// damage notes that u, or its picture, is not whole.
func (g *gate) damage(u *unit) {
	if g.codec == capture.MJPEG {
		return
	}
	g.hurt = true
	g.soil = g.codec == capture.H264
	if g.open || u.randomAccess {
		g.dirty = true
	}
	g.close(u.key, u.received)
}

// judge says why the picture may not pass, "" if it may.
func (g *gate) judge(p *avcodec.Picture, u *unit) string {
	switch {
	case u.damaged:
		return DropDamaged
	case g.draining && u.waiting && !u.randomAccess:
		return DropWaiting
	case !g.open && u.key < g.from:
		return g.judgeOpen(p, u) // decoded before the loss, shown after it
	case g.open:
		return g.judgeOpen(p, u)
	case g.suspect:
		g.hurt = g.hurt || p.Damaged
		return DropWaiting
	case p.Damaged && (p.Key || u.randomAccess):
		// libavcodec takes the stream as recovered from here on. It is not.
		return DropDamaged
	case p.Damaged:
		return DropWaiting
	case !p.Corrupt && (g.codec == capture.H264 && !g.strict || p.Key && (u.randomAccess || !g.strict)):
		// H.264's decoder says itself when a refresh is complete. HEVC's skips
		// all up to a random access point and flags nothing.
		g.open = true
		return ""
	case u.received.Sub(g.since) >= patience && g.codec == capture.H264:
		g.strict = false
		g.open, g.unmarked = true, true
		return ""
	}
	return DropWaiting
}

func (g *gate) judgeOpen(p *avcodec.Picture, u *unit) string {
	switch {
	case g.strict && u.waiting && !u.randomAccess:
		return DropWaiting // libavcodec would have flagged it
	case !p.Damaged && (!p.Corrupt || g.unmarked):
		return ""
	case u.waiting && !u.randomAccess:
		// Decoded before the random access point or refresh, shown after it.
		return DropWaiting
	}
	return DropDamaged
}
