package testkit

import (
	"bytes"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
)

// The clip that ships with edgecam.
const (
	ClipWidth, ClipHeight = 768, 576
	clipFile              = "internal/sim/pets-s2l1-20s.mp4"
)

// ClipFrames decodes the frames of the clip that an ffmpeg select expression
// names, as packed BGR.
func ClipFrames(tb testing.TB, sel string) [][]byte {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "ffmpeg", "-v", "error", "-i", filepath.Join(Root(tb), clipFile),
		"-vf", "select='"+sel+"'", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "bgr24", "-")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		tb.Fatalf("ffmpeg (Debian: apt-get install ffmpeg): %v\n%s", err, strings.TrimSpace(stderr.String()))
	}
	const size = ClipWidth * ClipHeight * 3
	if len(raw) == 0 || len(raw)%size != 0 {
		tb.Fatalf("ffmpeg gave %d bytes, wanted a multiple of %d", len(raw), size)
	}
	var frames [][]byte
	for ; len(raw) > 0; raw = raw[size:] {
		frames = append(frames, raw[:size])
	}
	return frames
}

// placement is where the picture lies in the input.
func placement(spec infer.InputSpec) (scale float64, w, h, x, y int) {
	scale = min(float64(spec.Width)/ClipWidth, float64(spec.Height)/ClipHeight)
	w, h = int(math.Round(ClipWidth*scale)), int(math.Round(ClipHeight*scale))
	return scale, w, h, (spec.Width - w) / 2, (spec.Height - h) / 2
}

// Letterbox makes a model input of a BGR picture of the clip: the plainest form
// of what preprocess does, to compare with.
func Letterbox(bgr []byte, spec infer.InputSpec) []float32 {
	_, w, h, x0, y0 := placement(spec)
	plane := spec.Width * spec.Height
	dst := make([]float32, 3*plane)
	sample := func(x, y, c int) float64 {
		x, y = min(max(x, 0), ClipWidth-1), min(max(y, 0), ClipHeight-1)
		return float64(bgr[(y*ClipWidth+x)*3+c])
	}
	for c := range 3 {
		for y := range spec.Height {
			for x := range spec.Width {
				v := float64(spec.Pad)
				if u, q := x-x0, y-y0; u >= 0 && u < w && q >= 0 && q < h {
					fx, fy := (float64(u)+0.5)*ClipWidth/float64(w)-0.5, (float64(q)+0.5)*ClipHeight/float64(h)-0.5
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
func ToPicture(dets []infer.Detection, spec infer.InputSpec) []infer.Detection {
	scale, _, _, x0, y0 := placement(spec)
	s, x, y := float32(scale), float32(x0), float32(y0)
	mapped := make([]infer.Detection, len(dets))
	for i, d := range dets {
		d.X1, d.X2 = (d.X1-x)/s, (d.X2-x)/s
		d.Y1, d.Y2 = (d.Y1-y)/s, (d.Y2-y)/s
		mapped[i] = d
	}
	return mapped
}
