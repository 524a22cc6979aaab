package preprocess

import (
	"math"

	"edgecam/infer"
)

// Transform is the place of a picture in the letterboxed input. PadX and PadY
// are whole input pixels left of and above it, Width and Height its size there.
// Scale is the factor that Width and Height were rounded from.
type Transform struct {
	Scale         float32
	PadX, PadY    float32
	Width, Height float32
}

// NewTransform places a picture of w×h pixels, both at least 1, in an input.
// No side becomes smaller than one pixel.
func NewTransform(w, h int, spec infer.InputSpec) Transform {
	r := min(float64(spec.Width)/float64(w), float64(spec.Height)/float64(h))
	nw := fit(float64(w)*r, spec.Width)
	nh := fit(float64(h)*r, spec.Height)
	t := Transform{Scale: float32(r), Width: float32(nw), Height: float32(nh)}
	if spec.Align == infer.Center {
		t.PadX = float32((spec.Width - nw) / 2)
		t.PadY = float32((spec.Height - nh) / 2)
	}
	return t
}

// fit rounds as Python's round and C's lrint do, which is what the tools that
// made the models used: 2.5 becomes 2.
func fit(v float64, limit int) int {
	return min(max(int(math.RoundToEven(v)), 1), limit)
}

// Inverse maps a box from input pixels to fractions of the picture, clipped to
// 0..1. It divides by the rounded size and not by Scale: the picture was
// stretched by that much, and near the far edge of a large picture the
// difference is several of its pixels. A box with a coordinate that is not a
// number becomes empty, all zero.
func (t Transform) Inverse(d infer.Detection) infer.Detection {
	x1 := (d.X1 - t.PadX) / t.Width
	y1 := (d.Y1 - t.PadY) / t.Height
	x2 := (d.X2 - t.PadX) / t.Width
	y2 := (d.Y2 - t.PadY) / t.Height
	if isNaN(x1) || isNaN(y1) || isNaN(x2) || isNaN(y2) {
		x1, y1, x2, y2 = 0, 0, 0, 0
	}
	d.X1, d.Y1, d.X2, d.Y2 = clip(x1), clip(y1), clip(x2), clip(y2)
	return d
}

func isNaN(v float32) bool { return v != v }

func clip(v float32) float32 { return min(max(v, 0), 1) }
