package ort

import (
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/infertest"
	"edgecam/internal/testkit"
)

// referenceInputs are the model inputs of the frames that the references describe.
func referenceInputs(tb testing.TB, spec infer.InputSpec) map[int][]float32 {
	tb.Helper()
	inputs := make(map[int][]float32)
	for i, bgr := range testkit.ClipFrames(tb, "eq(n,0)+eq(n,100)") {
		inputs[100*i] = infertest.Letterbox(bgr, testkit.ClipWidth, testkit.ClipHeight, spec)
	}
	return inputs
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
				compare(t, reference.Frames[frame], infertest.ToPicture(out[0], testkit.ClipWidth, testkit.ClipHeight, spec), 0.9, 0.1, reference.ScoreThreshold)
			}
		})
	}
}
