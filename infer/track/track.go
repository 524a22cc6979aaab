package track

import (
	"time"

	"edgecam/infer"
)

// Noise, in sizes of the box along the axis: what holds for a near person holds
// for a far one.
const (
	measured     = 0.12 // of a detector's edges
	unknownSpeed = 3.0  // sizes a second: somebody walking past has about 3 widths
	pushes       = 1.0  // how the centre's speed changes in a second
	growth       = 0.2  // the same of the size

	// smallest keeps a box from having no size: a fraction of the picture.
	smallest = 1e-4
)

// track is one object.
type track struct {
	id       uint64 // 0 until it is seen a second time
	class    int
	hits     int
	missed   int // pictures since it was seen
	lastSeen time.Time

	cx, cy, w, h axis
	box          infer.Detection // prediction for the current picture
	taken        bool            // paired in the current picture
}

func newTrack(d *infer.Detection, at time.Time) track {
	cx, cy, w, h := measure(d)
	t := track{class: d.Class, hits: 1, lastSeen: at, taken: true}
	t.cx, t.w = start(cx, measured*w, unknownSpeed*w), start(w, measured*w, growth*w)
	t.cy, t.h = start(cy, measured*h, unknownSpeed*h), start(h, measured*h, growth*h)
	return t
}

// measure is a box as centre and size.
func measure(d *infer.Detection) (cx, cy, w, h float64) {
	return (float64(d.X1) + float64(d.X2)) / 2, (float64(d.Y1) + float64(d.Y2)) / 2,
		float64(d.X2) - float64(d.X1), float64(d.Y2) - float64(d.Y1)
}

// predict moves the track dt seconds on.
func (t *track) predict(dt float64) {
	w, h := max(t.w.x, smallest), max(t.h.x, smallest)
	t.cx.predict(dt, square(pushes*w))
	t.cy.predict(dt, square(pushes*h))
	t.w.predict(dt, square(growth*w))
	t.h.predict(dt, square(growth*h))
	w, h = max(t.w.x, smallest), max(t.h.x, smallest)
	t.box = infer.Detection{
		Class: t.class,
		X1:    float32(t.cx.x - w/2), Y1: float32(t.cy.x - h/2),
		X2: float32(t.cx.x + w/2), Y2: float32(t.cy.x + h/2),
	}
	t.taken = false
}

// see takes a detection of the object.
func (t *track) see(d *infer.Detection, at time.Time) {
	cx, cy, w, h := measure(d)
	t.cx.correct(cx, measured*w)
	t.cy.correct(cy, measured*h)
	t.w.correct(w, measured*w)
	t.h.correct(h, measured*h)
	t.hits++
	t.missed, t.lastSeen, t.taken = 0, at, true
}

func square(v float64) float64 { return v * v }
