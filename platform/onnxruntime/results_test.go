package onnxruntime_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
	"edgecam/platform/onnxruntime"
)

// TestResultsOfAnySize runs a model that gives the places of what is not 0: each run
// has as many as it has, also none, and more or fewer than the one before.
func TestResultsOfAnySize(t *testing.T) {
	var g fixture.Graph
	g.Input("in", onnx.Float32, 4)
	g.Output("places", onnx.Int64, 1, -1)
	g.Output("same", onnx.Float32, 4)
	g.As("places", g.Node("NonZero", []string{"in"}))
	g.As("same", "in")
	l := open(t)
	s, err := l.NewSession(g.Bytes(), onnxruntime.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := l.NewTensor(4)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, err := range []error{b.Input("in", in), b.OutputAnySize("places"), b.OutputAnySize("same")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, values := range [][]float32{{0, 7, 0, 7}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 3, 0}} {
		copy(in.Data(), values)
		var want []int64
		for i, v := range values {
			if v != 0 {
				want = append(want, int64(i))
			}
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		seen := 0
		err := b.Results(func(i int, r onnxruntime.Result) error {
			seen++
			if i == 1 {
				if r.Type != onnxruntime.Float32 || len(r.Bytes) != 16 || math.Float32frombits(binary.LittleEndian.Uint32(r.Bytes[12:])) != values[3] {
					t.Errorf("%v: %v of %v, % x", values, r.Type, r.Shape, r.Bytes)
				}
				return nil
			}
			var got []int64
			for k := 0; k < len(r.Bytes); k += 8 {
				got = append(got, int64(binary.LittleEndian.Uint64(r.Bytes[k:])))
			}
			if r.Type != onnxruntime.Int64 || !slices.Equal(r.Shape, []int64{1, int64(len(want))}) || !slices.Equal(got, want) {
				t.Errorf("%v: %v of %v: %v, want %v", values, r.Type, r.Shape, got, want)
			}
			return nil
		})
		if err != nil || seen != 2 {
			t.Errorf("%v: %d outputs, %v", values, seen, err)
		}
	}
}
