package infertest_test

import (
	"bytes"
	"testing"

	"edgecam/infer"
	"edgecam/infer/infertest"
)

// TestLetterbox puts a plain 8×4 picture into a 16×16 input: 16×8 samples with
// four rows of padding above and below.
func TestLetterbox(t *testing.T) {
	spec := infer.InputSpec{Width: 16, Height: 16, Order: infer.BGR, Mean: [3]float32{10, 20, 30}, Std: [3]float32{2, 4, 5}, Pad: 110}
	in := infertest.Letterbox(bytes.Repeat([]byte{50, 60, 80}, 32), 8, 4, spec)
	for i, v := range in {
		c, y := i/256, i%256/16
		want := []float32{20, 10, 10}[c]
		if y < 4 || y >= 12 {
			want = []float32{50, 22.5, 16}[c]
		}
		if v != want {
			t.Fatalf("channel %d, row %d: %v, want %v", c, y, v, want)
		}
	}
	got := infertest.ToPicture([]infer.Detection{{X1: 2, Y1: 4, X2: 16, Y2: 12}}, 8, 4, spec)
	if want := (infer.Detection{X1: 1, Y1: 0, X2: 8, Y2: 4}); got[0] != want {
		t.Errorf("box %v, want %v", got[0], want)
	}
}
