package ort

import (
	"bytes"
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/internal/testkit"
)

// The clip that ships with edgecam.
const (
	clipWidth, clipHeight = 768, 576
	clipFile              = "internal/sim/pets-s2l1-20s.mp4"
)

// referenceInputs are the model inputs of the frames that the references describe.
func referenceInputs(tb testing.TB, spec infer.InputSpec) map[int][]float32 {
	tb.Helper()
	inputs := make(map[int][]float32)
	for i, bgr := range clipFrames(tb, "eq(n,0)+eq(n,100)") {
		inputs[100*i] = letterbox(bgr, spec)
	}
	return inputs
}

// clipFrames decodes the frames of the clip that an ffmpeg select expression names.
func clipFrames(tb testing.TB, sel string) [][]byte {
	tb.Helper()
	cmd := exec.CommandContext(context.Background(), "ffmpeg", "-v", "error", "-i", filepath.Join(testkit.Root(tb), clipFile),
		"-vf", "select='"+sel+"'", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "bgr24", "-")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		tb.Fatalf("ffmpeg (Debian: apt-get install ffmpeg): %v\n%s", err, strings.TrimSpace(stderr.String()))
	}
	const size = clipWidth * clipHeight * 3
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
	scale = min(float64(spec.Width)/clipWidth, float64(spec.Height)/clipHeight)
	w, h = int(math.Round(clipWidth*scale)), int(math.Round(clipHeight*scale))
	return scale, w, h, (spec.Width - w) / 2, (spec.Height - h) / 2
}

// letterbox is the plainest form of what preprocess does.
func letterbox(bgr []byte, spec infer.InputSpec) []float32 {
	_, w, h, x0, y0 := placement(spec)
	plane := spec.Width * spec.Height
	dst := make([]float32, 3*plane)
	sample := func(x, y, c int) float64 {
		x, y = min(max(x, 0), clipWidth-1), min(max(y, 0), clipHeight-1)
		return float64(bgr[(y*clipWidth+x)*3+c])
	}
	for c := range 3 {
		for y := range spec.Height {
			for x := range spec.Width {
				v := float64(spec.Pad)
				if u, q := x-x0, y-y0; u >= 0 && u < w && q >= 0 && q < h {
					fx, fy := (float64(u)+0.5)*clipWidth/float64(w)-0.5, (float64(q)+0.5)*clipHeight/float64(h)-0.5
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

// toPicture maps detections from input pixels to pixels of the picture.
func toPicture(dets []infer.Detection, spec infer.InputSpec) []infer.Detection {
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

// compare wants every box of one list in the other at an overlap of iou with a
// score within delta. Boxes within delta of the threshold may come and go.
func compare(t *testing.T, want, got []infer.Detection, iou, delta, threshold float32) {
	t.Helper()
	missing := func(a, b []infer.Detection, what string) {
		for i := range a {
			if a[i].Score < threshold+delta {
				continue
			}
			best, score := float32(0), float32(0)
			for k := range b {
				if o := infer.IoU(&a[i], &b[k]); b[k].Class == a[i].Class && o > best {
					best, score = o, b[k].Score
				}
			}
			if best < iou || score-a[i].Score > delta || a[i].Score-score > delta {
				t.Errorf("%s %+v: best overlap %.3f with a score of %.3f", what, a[i], best, score)
			}
		}
	}
	missing(want, got, "missing")
	missing(got, want, "unexpected")
}

// TestReferenceBoxes runs the two frames that the references describe.
func TestReferenceBoxes(t *testing.T) {
	for _, precision := range []string{"fp32", "int8"} {
		t.Run(precision, func(t *testing.T) {
			if fast, _ := fastInt8(); precision == "int8" && !fast {
				t.Log("this CPU has no int8 dot product: x86 saturates here, so scores may differ more")
			}
			reference, err := builtin.ReadReference(precision)
			if err != nil {
				t.Fatal(err)
			}
			e := engine(t, Options{Precision: precision, Concurrency: 1})
			s := acquire(t, e)
			defer s.Release()
			spec := e.Info().Input
			for frame, input := range referenceInputs(t, spec) {
				copy(s.Input(0), input)
				out := make([][]infer.Detection, 1)
				if err := s.Run(1, func(int) float32 { return reference.ScoreThreshold }, out); err != nil {
					t.Fatal(err)
				}
				if len(out[0]) < 4 {
					t.Errorf("frame %d: %d boxes", frame, len(out[0]))
				}
				compare(t, reference.Frames[frame], toPicture(out[0], spec), 0.9, 0.1, reference.ScoreThreshold)
			}
		})
	}
}
