package ort

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"edgecam/infer"
	spec "edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
	"edgecam/internal/testkit"
)

// shown are the objects that the fixtures' pictures show, in input pixels of 320x256.
func shown() []infer.Detection {
	return []infer.Detection{
		{Class: 0, Score: 0.9, X1: 32, Y1: 40, X2: 80, Y2: 160},
		{Class: 2, Score: 0.75, X1: 150, Y1: 100, X2: 290, Y2: 180},
		{Class: 1, Score: 0.6, X1: 200, Y1: 20, X2: 230, Y2: 60},
	}
}

func detector(family string) fixture.Detector {
	return fixture.Detector{Family: family, Width: 320, Height: 256, Objects: shown()}
}

func detectorFile(tb testing.TB, d fixture.Detector) string {
	tb.Helper()
	return fileOf(tb, d.Bytes())
}

func fileOf(tb testing.TB, model []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.onnx")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// specOf is what is known of a file once the configuration has answered what it asks:
// the classes, where neither labels nor shapes tell them.
func specOf(tb testing.TB, path string) *spec.Spec {
	tb.Helper()
	r, err := spec.Inspect(path, spec.Overrides{})
	if err != nil && r != nil && len(r.Ask) > 0 {
		labels := make([]string, 80)
		for i := range labels {
			labels[i] = fmt.Sprintf("class %d", i)
		}
		r, err = spec.Inspect(path, spec.Overrides{Labels: labels})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return &r.Spec
}

// wants wants the shown objects and nothing else.
func wants(t *testing.T, name string, got []infer.Detection) {
	t.Helper()
	near := func(a, b, by float32) bool { return math.Abs(float64(a-b)) <= float64(by) }
	if len(got) != len(shown()) {
		t.Errorf("%s: %d detections, want %d: %+v", name, len(got), len(shown()), got)
		return
	}
	for _, w := range shown() {
		if !slices.ContainsFunc(got, func(g infer.Detection) bool {
			return g.Class == w.Class && near(g.Score, w.Score, 0.01) && near(g.X1, w.X1, 0.6) && near(g.Y1, w.Y1, 0.6) && near(g.X2, w.X2, 0.6) && near(g.Y2, w.Y2, 0.6)
		}) {
			t.Errorf("%s: no %+v in %+v", name, w, got)
		}
	}
}

// runAll runs a slot with all images that it holds.
func runAll(t *testing.T, e *Engine, n int) [][]infer.Detection {
	t.Helper()
	s := acquire(t, e)
	defer s.Release()
	for i := range n {
		fill(s.Input(i), 0.5)
	}
	out := make([][]infer.Detection, n)
	if err := s.Run(n, half, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFamilies runs a file of every family and wants the objects that it shows.
func TestFamilies(t *testing.T) {
	for _, family := range fixture.Families() {
		t.Run(family, func(t *testing.T) {
			path := detectorFile(t, detector(family))
			o := Options{Model: path, Concurrency: 1}
			o.Spec = specOf(t, path)
			if family == "efficientnms" {
				// TensorRT alone has the operation: the reason has to say so.
				want := "load model " + path + ": uses the operation TRT:EfficientNMS_TRT, which this ONNX Runtime does not have"
				o.Library = testkit.ONNXRuntime(t)
				if _, err := New(o); err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
				}
				return
			}
			e := engine(t, o)
			wants(t, family, runAll(t, e, 1)[0])
			if i := e.Info(); i.Input.Width != 320 || i.Input.Height != 256 || len(i.Labels) < 3 || i.MaxBatch != 1 {
				t.Errorf("info %+v", i)
			}
		})
	}
}

// TestInputForms runs the same model in every form of its input.
func TestInputForms(t *testing.T) {
	for _, element := range []onnx.Type{onnx.Float32, onnx.Float16, onnx.Uint8} {
		for _, nhwc := range []bool{false, true} {
			for _, batch := range []int{1, 4, -1} {
				name := fmt.Sprintf("%v nhwc=%v batch=%d", element, nhwc, batch)
				t.Run(name, func(t *testing.T) {
					d := detector("yolov8")
					d.Type, d.NHWC, d.Batch = element, nhwc, batch
					path := detectorFile(t, d)
					e := engine(t, Options{Model: path, Spec: specOf(t, path), Concurrency: 1})
					want := max(batch, 1)
					if got := e.Info().MaxBatch; got != want {
						t.Fatalf("max batch %d, want %d", got, want)
					}
					for n := 1; n <= want; n++ { // fewer images than a fixed batch are padded
						for i, got := range runAll(t, e, n) {
							wants(t, fmt.Sprintf("image %d of %d", i, n), got)
						}
					}
				})
			}
		}
	}
}

// TestFamiliesUnhealthy lets NaN through every family's graph, as a sum that overflows
// float16 does: it must be an error and counted, never an empty scene.
func TestFamiliesUnhealthy(t *testing.T) {
	for _, family := range fixture.Families() {
		if slices.Contains([]string{"efficientnms", "yolov7/end2end", "yolo-nas/flat"}, family) {
			continue // cannot run, or do not look at their input
		}
		t.Run(family, func(t *testing.T) {
			path := detectorFile(t, detector(family))
			e := engine(t, Options{Model: path, Spec: specOf(t, path), Concurrency: 1})
			s := acquire(t, e)
			defer s.Release()
			fill(s.Input(0), float32(math.NaN()))
			out := make([][]infer.Detection, 1)
			err := s.Run(1, half, out)
			var sick *infer.UnhealthyError
			if !errors.As(err, &sick) || len(out[0]) != 0 {
				t.Fatalf("detections %v, error %v", out[0], err)
			}
			if st := e.Stats(); st.Unhealthy != 1 || st.LastUnhealthy != err.Error() {
				t.Errorf("stats %+v", st)
			}
			fill(s.Input(0), 0.5)
			if err := s.Run(1, half, out); err != nil {
				t.Fatal(err)
			}
			wants(t, "the next picture", out[0])
		})
	}
}
