package ort

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model/fixture"
	"edgecam/internal/testkit"
	"edgecam/platform/onnxruntime"
)

func TestNewRefusesModels(t *testing.T) {
	write := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := func(change func(*fixture.Stub)) string {
		s := fixture.NewStub()
		change(&s)
		return s.File(t)
	}
	whole, err := builtin.Model(builtin.NanoDetG, "int8")
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	for i := 1000; i < 1400; i++ {
		flipped[i] ^= 0xff
	}
	tests := []struct{ name, path, want string }{
		{"missing", "/nowhere/m.onnx", "no such file or directory"},
		{"directory", t.TempDir(), "is a directory"},
		{"device", "/dev/null", "is not a regular file"},
		{"empty", write(nil), "is empty"},
		{"text", write([]byte("<html>404 Not Found</html>")), "is a web page, no ONNX model: a download that went wrong"},
		{"truncated", write(whole[:len(whole)/2]), "is cut off: it has 2005596 bytes and should have at least 4009898"},
		{"damaged", write(flipped), "is no ONNX model, or a damaged one: "},
		{"no metadata", with(func(s *fixture.Stub) { s.Drop = "names" }), "metadata names: is missing"},
		{"another family", with(func(s *fixture.Stub) { s.Props = map[string]string{"family": "yolo"} }), "its outputs (boxes float32[N,3,4], scores float32[N,3,2]) are of no form that edgecam knows"},
		{"fewer labels than classes", with(func(s *fixture.Stub) { s.Labels = []string{"person"} }), "output scores float32[N,3,2] gives 2 classes, metadata names lists 1 label"},
		{"more labels than classes", with(func(s *fixture.Stub) { s.Labels = []string{"a", "b", "c"} }), "output scores float32[N,3,2] gives 2 classes, metadata names lists 3 labels"},
		{"five values a box", with(func(s *fixture.Stub) { s.Boxes = [][]float32{{1, 1, 2, 2, 0}, {1, 1, 2, 2, 0}, {1, 1, 2, 2, 0}} }), "outputs boxes float32[N,3,5] and scores float32[N,3,2]: wanted boxes [N,rows,4] and scores [N,rows,classes]"},
		{"other numbers of boxes", with(func(s *fixture.Stub) { s.Boxes = s.Boxes[:2] }), "outputs boxes float32[N,2,4] and scores float32[N,3,2]: wanted boxes [N,rows,4] and scores [N,rows,classes]"},
		{"other output", with(func(s *fixture.Stub) { s.OutputName = "logits" }), "has no outputs boxes and scores, only boxes float32[N,3,4], logits float32[N,3,2]"},
		{"two inputs", with(func(s *fixture.Stub) { s.Inputs = 2 }), "has an input more1 float32[1]: edgecam feeds pictures, and perhaps their sizes [batch,2]"},
		{"three dimensions", with(func(s *fixture.Stub) { s.Rank = 3 }), "input images float32[N,3,16] does not tell where the channels stand (NCHW, NHWC)"},
		{"another size", with(func(s *fixture.Stub) { s.Props = map[string]string{"input_size": "[32,16]"} }), "metadata input_size is [32, 16], but the input is fed 16×16"},
		{"impossible scores", with(func(s *fixture.Stub) { s.Scores[0][0] = 3 }), "run a test picture: read output scores of image 0: value 0 is "},
		{"inverted box", with(func(s *fixture.Stub) { s.Boxes[0] = []float32{9, 1, 2, 2} }), "run a test picture: read output boxes of image 0: value 2 is 2: right of the box left of its left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := New(Options{Library: testkit.ONNXRuntime(t), Model: tt.path, Concurrency: 1})
			if err == nil {
				_ = e.Close()
				t.Fatal("loaded")
			}
			var m *infer.ModelError
			if !errors.As(err, &m) || m.Model != tt.path {
				t.Fatalf("error %v is no *infer.ModelError of the file", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "load model "+tt.path+": ") || !strings.Contains(text, tt.want) {
				t.Errorf("error %q, want %q in it", text, tt.want)
			}
			if strings.Count(err.Error(), "load model") != 1 {
				t.Errorf("error %q says the same twice", err)
			}
		})
	}
}

func TestNewRefusesOptions(t *testing.T) {
	library := testkit.ONNXRuntime(t)
	file := fixture.NewStub().File(t)
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"unknown built-in", Options{Model: "builtin:yolo"}, "load model builtin:yolo: there is no such built-in model"},
		{"unknown precision", Options{Precision: "fp16"}, "load model builtin:nanodet-g: precision fp16 is for GPUs"},
		{"precision of a file", Options{Model: file, Precision: "int8"}, "load model " + file + ": precision int8 picks a version of a built-in model, a file has its own"},
		{"concurrency", Options{Concurrency: -1}, "make engine: concurrency -1 is not between 1 and 1024"},
		{"overlap", Options{NMSIoU: 2}, "make engine: make decoder: overlap 2 is not between 0 and 1"},
		{"library", Options{Library: "/nowhere/lib.so"}, "open onnx runtime /nowhere/lib.so: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.opts.Library == "" {
				tt.opts.Library = library
			}
			_, err := New(tt.opts)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			var u *onnxruntime.UnavailableError
			if tt.name == "library" && (!errors.As(err, &u) || u.Hint == "") {
				t.Errorf("error %v is no *UnavailableError with a hint", err)
			}
		})
	}
}

// TestFixedBatchOfOne is a model that takes one image at a time.
func TestFixedBatchOfOne(t *testing.T) {
	m := fixture.NewStub()
	m.Batch = 1
	e := engine(t, Options{Model: m.File(t), Concurrency: 1, MaxBatch: 8, batchCap: 8})
	if i := e.Info(); i.MaxBatch != 1 || i.Precision != "as in the file" {
		t.Errorf("max batch %d, precision %q", i.MaxBatch, i.Precision)
	}
	s := acquire(t, e)
	defer s.Release()
	fill(s.Input(0), 0)
	out := make([][]infer.Detection, 1)
	if err := s.Run(1, half, out); err != nil || len(out[0]) != 2 {
		t.Errorf("detections %v, error %v", out[0], err)
	}
}
