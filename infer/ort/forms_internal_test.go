package ort

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
	spec "edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
	"edgecam/internal/testkit"
)

// yoloGraph is a YOLOv8 of two classes whose five rows show one object, with an input of
// those dimensions, and its constants in a file beside it where outside names one.
func yoloGraph(outside string, dims ...int) *fixture.Graph {
	g := &fixture.Graph{}
	const rows, values = 2100, 6 // those of an input of 320x320
	o := make([]float32, rows*values)
	for value, v := range []float32{100, 80, 40, 60, 0.9, 0.1} {
		o[value*rows+7] = v
	}
	g.Input("images", onnx.Float32, dims...)
	g.Output("output0", onnx.Float32, 1, values, rows)
	mean := g.Node("ReduceMean", []string{"images"}, fixture.Ints("axes", 1, 2, 3), fixture.Int("keepdims", 1))
	nothing := g.Node("Reshape", []string{g.Node("Mul", []string{mean, g.Floats([]float32{0}, 1)}), g.Int64s([]int64{1, 1, 1}, 3)})
	g.Outside(outside) // but not shapes, which the library wants in the file
	g.As("output0", g.Node("Add", []string{nothing, g.Floats(o, 1, values, rows)}))
	g.Meta("names", "{0: 'person', 1: 'car'}")
	g.Meta("imgsz", "[320, 320]")
	g.Meta("task", "detect")
	g.Meta("stride", "32")
	return g
}

func wantsOne(t *testing.T, e *Engine) {
	t.Helper()
	got := runAll(t, e, 1)[0]
	if want := (infer.Detection{Score: 0.9, X1: 80, Y1: 50, X2: 120, Y2: 110}); len(got) != 1 || got[0] != want {
		t.Errorf("detections %+v, want %+v", got, want)
	}
}

// TestSymbolicSize runs a model that leaves height and width free.
func TestSymbolicSize(t *testing.T) {
	e := engine(t, Options{Model: fileOf(t, yoloGraph("", 1, 3, -1, -1).Bytes()), Concurrency: 1})
	if in := e.Info().Input; in.Width != 320 || in.Height != 320 {
		t.Errorf("input %dx%d", in.Width, in.Height)
	}
	wantsOne(t, e)
}

// TestExternalData runs a model whose weights lie in a file beside it, and refuses it
// without, or with too little of it.
func TestExternalData(t *testing.T) {
	g := yoloGraph("weights.bin", 1, 3, 320, 320)
	path := fileOf(t, g.Bytes())
	weights := filepath.Join(filepath.Dir(path), "weights.bin")
	o := Options{Library: testkit.ONNXRuntime(t), Model: path, Concurrency: 1}
	for name, b := range map[string][]byte{"missing": nil, "cut": g.OutsideBytes()[:100]} {
		if b != nil {
			if err := os.WriteFile(weights, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		e, err := New(o)
		if err == nil {
			_ = e.Close()
			t.Fatalf("%s: loaded", name)
		}
		if !strings.Contains(err.Error(), "weights.bin") {
			t.Errorf("%s: error %v does not name the file", name, err)
		}
		_ = os.Remove(weights)
	}
	if err := os.WriteFile(weights, g.OutsideBytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	e := engine(t, o)
	wantsOne(t, e)
	before, err := source{name: path}.digest()
	if err != nil {
		t.Fatal(err)
	}
	changed := g.OutsideBytes()
	changed[len(changed)-1] ^= 1
	if err := os.WriteFile(weights, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := (source{name: path}).digest(); err != nil || after == before {
		t.Errorf("other weights, the same digest %s, %v", after, err)
	}
}

// TestFitSpecRefuses gives the engine a file that is not as its description says.
func TestFitSpecRefuses(t *testing.T) {
	path := detectorFile(t, detector("yolov8"))
	tests := []struct {
		change func(*spec.Spec)
		want   string
	}{
		{func(s *spec.Spec) { s.Input.Name = "pictures" }, "input images float32[1,3,256,320]: edgecam has nothing to feed it"},
		{func(s *spec.Spec) { s.Input.InputSpec.Width = 640 }, "input images float32[1,3,256,320]: cannot be fed 640x256 pictures as NCHW"},
		{func(s *spec.Spec) { s.Input.Layout = "NHWC" }, "input images float32[1,3,256,320]: cannot be fed 320x256 pictures as NHWC"},
		{func(s *spec.Spec) { s.Input.Layout = "CHW" }, "input images float32[1,3,256,320]: wanted 3 dimensions"},
		{func(s *spec.Spec) { s.Decode.Outputs.Boxes = 4 }, "has 1 outputs, the one numbered 4 is to be read"},
		{func(s *spec.Spec) { s.Labels = s.Labels[:8] }, "make decoder: the model gives 80 classes, 8 labels are known"},
		{func(s *spec.Spec) { s.Decode.Rows = 100 }, "run a test picture: decode outputs: "},
	}
	for _, tt := range tests {
		s := *specOf(t, path)
		tt.change(&s)
		_, err := New(Options{Library: testkit.ONNXRuntime(t), Model: path, Spec: &s, Concurrency: 1})
		if err == nil || !strings.HasPrefix(err.Error(), "load model "+path+": "+tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}
