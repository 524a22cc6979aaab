// Package infertest helps tests of engines and trackers to get from pictures to
// detections without the stages in front: slowly, in the plainest arithmetic.
package infertest

import (
	"math"

	"edgecam/infer"
)

// placement is where the picture lies in the input.
func placement(width, height int, spec infer.InputSpec) (scale float64, w, h, x, y int) {
	scale = min(float64(spec.Width)/float64(width), float64(spec.Height)/float64(height))
	w, h = int(math.Round(float64(width)*scale)), int(math.Round(float64(height)*scale))
	return scale, w, h, (spec.Width - w) / 2, (spec.Height - h) / 2
}

// Letterbox makes a model input of a packed BGR picture: the plainest form of
// what preprocess does, centred, to compare with.
func Letterbox(bgr []byte, width, height int, spec infer.InputSpec) []float32 {
	_, w, h, x0, y0 := placement(width, height, spec)
	plane := spec.Width * spec.Height
	dst := make([]float32, 3*plane)
	sample := func(x, y, c int) float64 {
		x, y = min(max(x, 0), width-1), min(max(y, 0), height-1)
		return float64(bgr[(y*width+x)*3+c])
	}
	for c := range 3 {
		for y := range spec.Height {
			for x := range spec.Width {
				v := float64(spec.Pad)
				if u, q := x-x0, y-y0; u >= 0 && u < w && q >= 0 && q < h {
					fx, fy := (float64(u)+0.5)*float64(width)/float64(w)-0.5, (float64(q)+0.5)*float64(height)/float64(h)-0.5
					ix, iy := math.Floor(fx), math.Floor(fy)
					ax, ay := fx-ix, fy-iy
					v = (sample(int(ix), int(iy), c)*(1-ax)+sample(int(ix)+1, int(iy), c)*ax)*(1-ay) +
						(sample(int(ix), int(iy)+1, c)*(1-ax)+sample(int(ix)+1, int(iy)+1, c)*ax)*ay
				}
				dst[c*plane+y*spec.Width+x] = (float32(v) - spec.Mean[c]) / spec.Std[c]
			}
		}
	}
	return dst
}

// ToPicture maps detections from input pixels to pixels of the picture.
func ToPicture(dets []infer.Detection, width, height int, spec infer.InputSpec) []infer.Detection {
	scale, _, _, x0, y0 := placement(width, height, spec)
	s, x, y := float32(scale), float32(x0), float32(y0)
	mapped := make([]infer.Detection, len(dets))
	for i, d := range dets {
		d.X1, d.X2 = (d.X1-x)/s, (d.X2-x)/s
		d.Y1, d.Y2 = (d.Y1-y)/s, (d.Y2-y)/s
		mapped[i] = d
	}
	return mapped
}
