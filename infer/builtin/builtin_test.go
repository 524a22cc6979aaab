package builtin_test

import (
	"errors"
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
)

func TestModel(t *testing.T) {
	sizes := map[string]int{"fp32": 7702808, "fp16": 7697914, "int8": 4011193}
	for precision, size := range sizes {
		if m, err := builtin.Model(builtin.NanoDetG, precision); err != nil || len(m) != size {
			t.Errorf("%s: %d bytes, %v; want %d", precision, len(m), err, size)
		}
	}
	tests := []struct{ name, precision, want string }{
		{"builtin:yolo", "fp32", "load model builtin:yolo: there is no such built-in model"},
		{"builtin:nanodet-g", "fp8", "load model builtin:nanodet-g: there is no fp8 version of it"},
	}
	for _, tt := range tests {
		_, err := builtin.Model(tt.name, tt.precision)
		var m *infer.ModelError
		if !errors.As(err, &m) || err.Error() != tt.want || m.Hint == "" {
			t.Errorf("%s %s: %v, want %q with a hint", tt.name, tt.precision, err, tt.want)
		}
	}
}

func TestReadReference(t *testing.T) {
	counts := map[string]map[int]int{"fp32": {0: 6, 100: 10}, "int8": {0: 5, 100: 7}}
	for precision, frames := range counts {
		r, err := builtin.ReadReference(precision)
		if err != nil || r.ScoreThreshold != 0.45 || r.IoU != 0.6 || len(r.Frames) != len(frames) {
			t.Fatalf("%s: %+v, %v", precision, r, err)
		}
		for frame, n := range frames {
			if len(r.Frames[frame]) != n {
				t.Errorf("%s frame %d: %d boxes, want %d", precision, frame, len(r.Frames[frame]), n)
			}
		}
	}
}
