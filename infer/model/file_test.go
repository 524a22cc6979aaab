package model_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/infer"
	"edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
)

// refused wants Inspect to say that the file is none, in these words.
func refused(t *testing.T, path, want string) {
	t.Helper()
	_, err := model.Inspect(path, model.Overrides{})
	var me *infer.ModelError
	if !errors.As(err, &me) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}

func TestNoModels(t *testing.T) {
	whole := fixture.Detector{Family: "yolov8"}.Bytes()
	tests := []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "is empty"},
		{"zip", []byte("PK\x03\x04rest of it"), "is a ZIP archive, no ONNX model: unpack it; a PyTorch .pt file is one too: export it to ONNX"},
		{"engine", []byte("ftrt....."), "is a TensorRT engine"},
		{"tflite", []byte("\x1c\x00\x00\x00TFL3"), "is a TensorFlow Lite model"},
		{"ort", []byte("\x1c\x00\x00\x00ORTM"), "ONNX Runtime's own format"},
		{"page", []byte("\n<!DOCTYPE html><html>"), "is a web page"},
		{"lfs", []byte("version https://git-lfs.github.com/spec/v1\n"), "is a Git LFS pointer"},
		{"gzip", []byte("\x1f\x8b\x08"), "is a compressed file, no ONNX model: unpack it first"},
		{"text", []byte("hello, I am a model"), "is a file of text, no ONNX model"},
		{"JSON over lines", []byte("{\n  \"error\": 404}"), "is JSON, no ONNX model"},
		{"text cut within a character", []byte(strings.Repeat("é", 600)), "is a file of text, no ONNX model"},
		{"JPEG", []byte("\xff\xd8\xff\xe0\x00\x10JFIF"), "is a JPEG picture, no ONNX model"},
		{"PNG", []byte("\x89PNG\r\n\x1a\nrest"), "is a PNG picture, no ONNX model"},
		{"PDF", []byte("%PDF-1.7\n"), "is a PDF document, no ONNX model"},
		{"MP4", []byte("\x00\x00\x00\x18ftypmp42"), "is a video (MP4), no ONNX model"},
		{"safetensors", []byte("\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":{}}"), "is a safetensors file, no ONNX model: it holds weights without a network"},
		{"NumPy", []byte("\x93NUMPY\x01\x00"), "is a NumPy array, no ONNX model"},
		{"tar", append(make([]byte, 257), "ustar\x0000"...), "is a tar archive, no ONNX model: unpack it first"},
		{"Rar", []byte("Rar!\x1a\x07"), "is a compressed file, no ONNX model"},
		{"zeros", make([]byte, 4096), "is no ONNX model, or a damaged one"},
		{"half of one", whole[:len(whole)/2], "is cut off: it has"},
		{"one without its last byte", whole[:len(whole)-1], "is cut off: it has"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, write(t, tt.content), tt.want) })
	}
	refused(t, filepath.Join(t.TempDir(), "nothing.onnx"), "no such file or directory")
	refused(t, t.TempDir(), "is a directory")
}

// TestCutAnywhere wants a file cut off at any byte to be refused in one of two ways, and never to be taken for whole.
func TestCutAnywhere(t *testing.T) {
	whole := head([]int{1, 3, 320, 320}, nothing)
	for n := 1; n < len(whole); n++ {
		if n > 800 && n < len(whole)-400 && n%997 != 0 {
			continue // within the weights all bytes are alike
		}
		r, err := model.InspectBytes("cut", whole[:n], model.Overrides{})
		var me *infer.ModelError
		if !errors.As(err, &me) && (r == nil || len(r.Metadata) > 0 && len(r.Spec.Labels) != 2) {
			t.Fatalf("cut at %d of %d: %v", n, len(whole), err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	path := write(t, fixture.Detector{Family: "yolov8"}.Bytes())
	if err := os.Truncate(path, 2<<30+5); err != nil {
		t.Skip(err) // no sparse files here
	}
	refused(t, path, "has 2.1 GB, and no ONNX file can be larger than 2 GB: export it with its weights as external data")
}

func TestExternalData(t *testing.T) {
	build := func(location string) ([]byte, []byte) {
		var g fixture.Graph
		g.Input("images", onnx.Float32, 1, 3, 320, 320)
		g.Outside(location)
		g.As("output0", g.Floats(make([]float32, 6*2100), 1, 6, 2100))
		g.Output("output0", onnx.Float32, 1, 6, 2100)
		g.Meta("names", "['a', 'b']")
		return g.Bytes(), g.OutsideBytes()
	}
	content, weights := build("weights.bin")
	path := write(t, content)
	beside := filepath.Join(filepath.Dir(path), "weights.bin")
	refused(t, path, "keeps its weights in \"weights.bin\", which is not beside it: copy both files")
	for _, tt := range []struct {
		bytes int
		want  string
	}{{len(weights) - 1, "keeps its weights in \"weights.bin\", which is cut off: it has 50399 bytes and should have at least 50400"}, {len(weights), ""}} {
		if err := os.WriteFile(beside, weights[:tt.bytes], 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.want != "" {
			refused(t, path, tt.want)
			continue
		}
		r, err := model.Inspect(path, model.Overrides{})
		if err != nil || r.Bytes != int64(len(content)+len(weights)) || len(r.External) != 1 || r.Params != 6*2100 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	for _, location := range []string{"../weights.bin", "/etc/passwd", ""} {
		content, _ := build(location)
		if location == "" {
			continue // means that the values are inside
		}
		refused(t, write(t, content), "which is not a file beside it")
	}
}

func TestNewerThanKnown(t *testing.T) {
	var g fixture.Graph
	g.IR, g.Opset = 99, 77
	g.Input("images", onnx.Float32, 1, 3, 320, 320)
	g.As("output0", g.Floats(make([]float32, 6*2100), 1, 6, 2100))
	g.Output("output0", onnx.Float32, 1, 6, 2100)
	g.Meta("names", "['a', 'b']")
	r, err := model.Inspect(write(t, g.Bytes()), model.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, "IR version 99") || !strings.Contains(notes, "opset 77") || r.IR != 99 || r.Opset != 77 {
		t.Errorf("IR %d, opset %d, notes %s", r.IR, r.Opset, notes)
	}
}

// TestBigFile wants a file of 100 MB to be looked into without reading it into memory.
func TestBigFile(t *testing.T) {
	const megabytes = 100
	var g fixture.Graph
	g.Input("images", onnx.Float32, 1, 3, 320, 320)
	g.Tensor(onnx.Float32, make([]byte, megabytes<<20), megabytes<<18)
	g.As("output0", g.Floats(make([]float32, 6*2100), 1, 6, 2100))
	g.Output("output0", onnx.Float32, 1, 6, 2100)
	g.Meta("names", "['a', 'b']")
	path := write(t, g.Bytes())
	g = fixture.Graph{}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	r, err := model.Inspect(path, model.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if r.Params != megabytes<<18+6*2100 {
		t.Errorf("%d parameters", r.Params)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("took %d bytes of memory", used)
	}
	t.Logf("%v", took)
	if took > 20*time.Second { // most of it is the digest
		t.Errorf("took %v", took)
	}
}

// BenchmarkInspect looks into a file of 100 MB, nearly all of it weights.
func BenchmarkInspect(b *testing.B) {
	const megabytes = 100
	var g fixture.Graph
	g.Input("images", onnx.Float32, 1, 3, 320, 320)
	g.Tensor(onnx.Float32, make([]byte, megabytes<<20), megabytes<<18)
	g.As("output0", g.Floats(make([]float32, 84*2100), 1, 84, 2100))
	g.Output("output0", onnx.Float32, 1, 84, 2100)
	path := write(b, g.Bytes())
	b.SetBytes(megabytes << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.Inspect(path, model.Overrides{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDamaged changes a few bytes of good files at random and wants an answer to each, whatever it is.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, family := range fixture.Families() {
		whole := fixture.Detector{Family: family, Width: 64, Height: 64, Classes: 2, Batch: -1}.Bytes()
		if family == "ssd-torchvision" {
			whole = fixture.Detector{Family: family, Width: 64, Height: 64}.Bytes()
		}
		for range 400 {
			bad := slices.Clone(whole)
			for range 1 + rng.IntN(4) {
				// The description stands at both ends, the weights between them.
				at := rng.IntN(min(len(bad), 3000))
				if rng.IntN(2) == 0 {
					at = len(bad) - 1 - at
				}
				bad[at] = []byte{byte(rng.Uint32()), 0, 0xff, bad[at] + 1, bad[at] - 1}[rng.IntN(5)]
			}
			r, err := model.InspectBytes("damaged", bad, model.Overrides{})
			var me *infer.ModelError
			if err != nil && !errors.As(err, &me) || err == nil && len(r.Spec.Labels) != r.Spec.Decode.Classes {
				t.Fatalf("%s: %v, %+v", family, err, r)
			}
		}
	}
}

// FuzzInspect wants no file to do harm.
func FuzzInspect(f *testing.F) {
	for _, family := range []string{"yolov8", "nanodet/heads", "rt-detr", "yolov7/end2end", "ssd-tf"} {
		d := fixture.Detector{Family: family, Width: 64, Height: 64, Classes: 2}
		f.Add(d.Bytes())
	}
	f.Add(head([]int{-1, 3, -1, -1}, nothing))
	f.Add(binary.AppendUvarint([]byte{0x3a}, 1<<40))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := model.InspectBytes("fuzz", content, model.Overrides{})
		if err != nil {
			return
		}
		if r.Spec.Family == "" || len(r.Spec.Labels) == 0 || len(r.Spec.Labels) != r.Spec.Decode.Classes {
			t.Errorf("no error, and %+v", r.Spec)
		}
	})
}
