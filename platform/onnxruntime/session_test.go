package onnxruntime_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform/onnxruntime"
)

func open(tb testing.TB) *onnxruntime.Library {
	tb.Helper()
	l, err := onnxruntime.Open(testkit.ONNXRuntime(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.Close)
	return l
}

func model(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(testkit.Root(tb), "infer/builtin/nanodet-g-416.onnx"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestLibraryDescribesItself(t *testing.T) {
	l := open(t)
	if !strings.HasPrefix(l.Version(), "1.") || l.API() < 17 || !filepath.IsAbs(l.Path()) {
		t.Errorf("version %q, api %d, path %q", l.Version(), l.API(), l.Path())
	}
	providers, err := l.Providers()
	if err != nil || !slices.Contains(providers, "CPUExecutionProvider") {
		t.Errorf("providers %v, %v", providers, err)
	}
}

func TestSessionDescribesTheModel(t *testing.T) {
	l := open(t)
	fromMemory, err := l.NewSession(model(t), onnxruntime.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer fromMemory.Close()
	fromFile, err := l.NewSessionFromFile(filepath.Join(testkit.Root(t), "infer/builtin/nanodet-g-416.onnx"), onnxruntime.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer fromFile.Close()
	for name, s := range map[string]*onnxruntime.Session{"memory": fromMemory, "file": fromFile} {
		t.Run(name, func(t *testing.T) {
			var ports []string
			for _, p := range slices.Concat(s.Inputs(), s.Outputs()) {
				ports = append(ports, p.String())
			}
			want := []string{"images float32[N,3,416,416]", "boxes float32[N,3549,4]", "scores float32[N,3549,80]"}
			if !slices.Equal(ports, want) {
				t.Errorf("ports %q, want %q", ports, want)
			}
			if m := s.Metadata(); m["color_order"] != "BGR" || m["letterbox_pad"] != "114" || !strings.HasPrefix(m["names"], `["person",`) {
				t.Errorf("metadata %v", m)
			}
		})
	}
}

// TestRunIsConcurrent runs one session from several goroutines, each with its
// own tensors, and wants the results of a run alone.
func TestRunIsConcurrent(t *testing.T) {
	l := open(t)
	s, err := l.NewSession(model(t), onnxruntime.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fills := []float32{-1, 0, 1}
	want := make([][]float32, len(fills))
	for i, v := range fills {
		want[i] = scores(t, s, l, v)
	}
	if slices.Equal(want[0], want[2]) {
		t.Fatal("different inputs gave equal scores: the test proves nothing")
	}
	var wg sync.WaitGroup
	for range 2 {
		for i, v := range fills {
			wg.Go(func() {
				for range 3 {
					if got := scores(t, s, l, v); !slices.Equal(got, want[i]) {
						t.Errorf("input %v: other scores than in a run alone", v)
					}
				}
			})
		}
	}
	wg.Wait()
}

// scores runs an image of one value through s.
func scores(t *testing.T, s *onnxruntime.Session, l *onnxruntime.Library, value float32) []float32 {
	tensors := make([]*onnxruntime.Tensor, 3)
	for i, shape := range [][]int64{{1, 3, 416, 416}, {1, 3549, 4}, {1, 3549, 80}} {
		var err error
		if tensors[i], err = l.NewTensor(shape...); err != nil {
			t.Error(err)
			return nil
		}
		defer tensors[i].Close()
	}
	b, err := s.NewBinding()
	if err != nil {
		t.Error(err)
		return nil
	}
	defer b.Close()
	if err := errors.Join(b.Input("images", tensors[0]), b.Output("boxes", tensors[1]), b.Output("scores", tensors[2])); err != nil {
		t.Error(err)
		return nil
	}
	for i := range tensors[0].Data() {
		tensors[0].Data()[i] = value
	}
	if err := b.Run(); err != nil {
		t.Error(err)
		return nil
	}
	return slices.Clone(tensors[2].Data())
}

func TestStatusBecomesAnError(t *testing.T) {
	l := open(t)
	s, err := l.NewSession(model(t), onnxruntime.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	small, err := l.NewTensor(1, 3, 8, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()

	tests := []struct {
		name string
		do   func() error
		code onnxruntime.Code
		text string
	}{
		{"bytes that are no model", func() error {
			_, err := l.NewSession([]byte("no model"), onnxruntime.SessionOptions{})
			return err
		}, onnxruntime.CodeInvalidProtobuf, "load model: onnx runtime CreateSessionFromArray: "},
		{"no bytes", func() error {
			_, err := l.NewSession(nil, onnxruntime.SessionOptions{})
			return err
		}, onnxruntime.CodeInvalidProtobuf, "load model: onnx runtime CreateSessionFromArray: no bytes (code 7)"},
		{"half a model", func() error {
			m := model(t)
			_, err := l.NewSession(m[:len(m)/2], onnxruntime.SessionOptions{})
			return err
		}, onnxruntime.CodeInvalidProtobuf, "load model: onnx runtime CreateSessionFromArray: "},
		{"missing file", func() error {
			_, err := l.NewSessionFromFile("/nowhere/model.onnx", onnxruntime.SessionOptions{})
			return err
		}, onnxruntime.CodeNoSuchFile, "load model: onnx runtime CreateSession: "},
		{"output of another shape", func() error {
			if err := errors.Join(b.Input("images", small)); err != nil {
				return err
			}
			return b.Run()
		}, onnxruntime.CodeInvalidArgument, "onnx runtime "},
		{"unknown input", func() error { return b.Input("pictures", small) }, onnxruntime.CodeFail, "bind pictures: onnx runtime BindInput: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			var status *onnxruntime.StatusError
			if !errors.As(err, &status) {
				t.Fatalf("error %v is no *StatusError", err)
			}
			if status.Code != tt.code || !strings.Contains(err.Error(), tt.text) || len(status.Text) < 5 {
				t.Errorf("error %q with code %d, want %q with code %d", err, status.Code, tt.text, tt.code)
			}
		})
	}
}

func TestTensorShapes(t *testing.T) {
	l := open(t)
	for _, shape := range [][]int64{{}, {0}, {-1, 3}, {1 << 40}, {1 << 20, 1 << 20}} {
		if _, err := l.NewTensor(shape...); err == nil {
			t.Errorf("shape %v: no error", shape)
		}
	}
	whole, err := l.NewTensor(4, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	part, err := whole.Prefix(3)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if len(whole.Data()) != 24 || len(part.Data()) != 18 || &whole.Data()[0] != &part.Data()[0] {
		t.Errorf("whole has %d values, part %d", len(whole.Data()), len(part.Data()))
	}
	for _, n := range []int{0, 5} {
		if _, err := whole.Prefix(n); err == nil {
			t.Errorf("prefix %d of 4: no error", n)
		}
	}
}

// TestCloseOrder closes the library before what still uses it, and twice.
func TestCloseOrder(t *testing.T) {
	l := open(t)
	s, err := l.NewSession(model(t), onnxruntime.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	if _, err := l.NewSession(model(t), onnxruntime.SessionOptions{}); !errors.Is(err, onnxruntime.ErrClosed) {
		t.Errorf("session of a closed library: %v", err)
	}
	if _, err := l.NewTensor(1); !errors.Is(err, onnxruntime.ErrClosed) {
		t.Errorf("tensor of a closed library: %v", err)
	}
	if _, err := l.Providers(); !errors.Is(err, onnxruntime.ErrClosed) {
		t.Errorf("providers of a closed library: %v", err)
	}
	b.Close()
	b.Close()
	if err := b.Run(); !errors.Is(err, onnxruntime.ErrClosed) {
		t.Errorf("run of a closed binding: %v", err)
	}
	s.Close()
	s.Close()
	// The library can be opened again in the same process.
	again := open(t)
	if _, err := again.Providers(); err != nil {
		t.Error(err)
	}
}
