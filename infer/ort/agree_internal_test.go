package ort

import (
	"errors"
	"math"
	"slices"
	"testing"

	"edgecam/infer"
	"edgecam/platform/onnxruntime"
)

func TestAgree(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	base := func() answer {
		return answer{
			boxes:  []float32{10, 10, 110, 210, 50, 60, 70, 80, 0, 0, 4, 4},
			scores: []float32{0.9, 0, 0, 0.5, 0.3, 0.1}, classes: 2,
		}
	}
	tests := []struct {
		name   string
		change func(*answer)
		want   string
	}{
		{"the same", func(*answer) {}, ""},
		{"just within", func(o *answer) { o.scores[0] -= 0.0199; o.boxes[0] += 0.9; o.boxes[3] -= 1.1 }, ""},
		{"a poor box elsewhere", func(o *answer) { o.boxes[8], o.boxes[10] = 2, 9 }, ""},
		{"score lower", func(o *answer) { o.scores[3] = 0.47 }, "answers differ: score of class 1 of box 1 is 0.470, wanted 0.500 ± 0.02"},
		{"score of another class", func(o *answer) { o.scores[1] = 0.4 }, "answers differ: score of class 1 of box 0 is 0.400, wanted 0.000 ± 0.02"},
		{"box moved", func(o *answer) { o.boxes[4], o.boxes[6] = 50.5, 70.5 }, "answers differ: box 1 is (50.5 60.0 70.5 80.0), wanted (50.0 60.0 70.0 80.0): overlap 0.951, wanted 0.98"},
		{"NaN box", func(o *answer) { o.boxes[11] = nan }, "read output boxes of image 0: value 11 is NaN: not finite"},
		{"infinite score", func(o *answer) { o.scores[5] = inf }, "read output scores of image 0: value 5 is -Inf: not finite"},
		{"negative score", func(o *answer) { o.scores[5] = -0.01 }, "read output scores of image 0: value 5 is -0.01: not between 0 and 1"},
		{"score over 1", func(o *answer) { o.scores[0] = 1.01 }, "read output scores of image 0: value 0 is 1.01: not between 0 and 1"},
		{"all scores 0", func(o *answer) { clear(o.scores) }, "read output scores of image 0: value 0 is 0: all scores are 0"},
		{"all boxes 0", func(o *answer) { clear(o.boxes) }, "read output boxes of image 0: value 0 is 0: all boxes are 0"},
		{"fewer", func(o *answer) { o.boxes = o.boxes[:8] }, "answers differ: 14 values, wanted 18"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := base()
			tt.change(&got)
			err := agree(base(), got)
			if text := errText(err); text != tt.want {
				t.Errorf("%q, want %q", text, tt.want)
			}
		})
	}
	t.Run("unsure picture", func(t *testing.T) {
		want := base()
		want.scores = []float32{0.2, 0, 0, 0.1, 0.05, 0.05}
		got := want
		got.boxes = slices.Clone(want.boxes)
		got.boxes[4] = 30 // scored half as high as the best: left out
		if err := agree(want, got); err != nil {
			t.Error(err)
		}
		got.boxes[0] = 30
		var differ *DisagreeError
		if err := agree(want, got); !errors.As(err, &differ) {
			t.Errorf("the best box moved: %v", err)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestHalf(t *testing.T) {
	for v, want := range map[float32]uint16{
		0: 0, 1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 65520: 0x7c00, 1e9: 0x7c00, 0.1: 0x2e66,
		float32(math.Inf(-1)): 0xfc00, 6.103515625e-05: 0x0400, 5.9604645e-08: 0x0001, 2.9802322e-08: 0, 1e-10: 0,
		1.00048828125: 0x3c00, 1.00146484375: 0x3c02, 6.0975552e-05: 0x03ff, 2047.5: 0x67ff + 1,
	} {
		if got := toHalf(v); got != want {
			t.Errorf("%v: %#04x, want %#04x", v, got, want)
		}
	}
	if h := toHalf(float32(math.NaN())); !math.IsNaN(float64(fromHalf(h))) {
		t.Errorf("NaN: %#04x", h)
	}
	for h := range 0x10000 {
		v := fromHalf(uint16(h))
		if math.IsNaN(float64(v)) {
			continue
		}
		if back := toHalf(v); back != uint16(h) {
			t.Fatalf("%#04x is %v is %#04x", h, v, back)
		}
	}
	values := []float32{1, -0.5, 100}
	for _, element := range []int32{1, 10} {
		b := encode(values, onnxruntime.ElementType(element))
		if len(b) != 3*onnxruntime.ElementType(element).Size() || !slices.Equal(decode(b, onnxruntime.ElementType(element)), values) {
			t.Errorf("type %d: % x", element, b)
		}
	}
}

// TestPicture wants people in the picture that engines are tried with.
func TestPicture(t *testing.T) {
	e := engine(t, Options{Precision: "fp32", Concurrency: 1})
	s := acquire(t, e)
	defer s.Release()
	in, err := picture(e.Info().Input)
	if err != nil {
		t.Fatal(err)
	}
	copy(s.Input(0), in)
	out := make([][]infer.Detection, 1)
	if err := s.Run(1, half, out); err != nil {
		t.Fatal(err)
	}
	people := 0
	for _, d := range out[0] {
		if d.Class == 0 && d.Score > 0.5 && d.X2-d.X1 > 90 && d.Y2-d.Y1 > 150 {
			people++
		}
	}
	if people < 2 {
		t.Errorf("%d people in %+v", people, out[0])
	}
}
