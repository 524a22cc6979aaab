package ort

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model/fixture"
)

// tensorRTRig has TensorRT, a small model and a state directory. The choice is
// tensorrt rather than auto, as the stand-in is as fast either way.
func tensorRTRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.tensorRT()
	r.opts.Model, r.opts.Provider, r.opts.StateDir = fixture.NewPictureStub().File(t), "tensorrt", t.TempDir()
	return r
}

// TestTensorRTTakesOver wants CUDA to serve while the engine is built, and the
// engine to serve in the same tensors afterwards.
func TestTensorRTTakesOver(t *testing.T) {
	r := tensorRTRig(t)
	before := r.live()
	r.blockBuild(1)
	e := r.start()
	r.awaitBuild()
	if i := e.Info(); i.Provider != "cuda" {
		t.Errorf("provider %s during the build", i.Provider)
	}
	at, _ := e.Input(0)
	if got, err := r.run(e, 0.05); err != nil || math.Abs(float64(got[0]-0.85)) > 1e-5 {
		t.Errorf("during the build: %v, %v", got, err)
	}
	r.blockBuild(0)
	i := r.settle(e)
	if i.Provider != "tensorrt" || i.Precision != "fp16" || !has(i.ProbeNotes, "TensorRT fp16 serves") || i.ProbeMS <= 0 {
		t.Fatalf("info %+v", i)
	}
	last := infer.Info{}
	for len(r.infos) > 0 {
		last = <-r.infos
	}
	if last.Provider != "tensorrt" {
		t.Errorf("told of provider %q last", last.Provider)
	}
	r.clear()
	got, err := r.run(e, 0.01, 0.05, 0.1)
	if err != nil || math.Abs(float64(got[2]-0.9)) > 1e-5 || r.notes() != "run tensorrt\n" {
		t.Errorf("scores %v, %v, calls %q", got, err, r.notes())
	}
	if now, _ := e.Input(0); now != at {
		t.Error("the input moved")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if n := r.live(); n != before {
		t.Errorf("%d objects left on the device, %d before", n, before)
	}
}

func TestTensorRTOptions(t *testing.T) {
	r := tensorRTRig(t)
	r.settle(r.start())
	notes := r.notes()
	for _, want := range []string{
		"tensorrt options 10: device_id=0 trt_builder_optimization_level=1 trt_dump_ep_context_model=1 trt_engine_cache_enable=1 trt_ep_context_embed_mode=1 trt_ep_context_file_path=PATH " +
			"trt_fp16_enable=1 trt_profile_max_shapes=images:4x3x16x16 trt_profile_min_shapes=images:1x3x16x16 trt_profile_opt_shapes=images:4x3x16x16\nappend tensorrt\ncuda options 1: device_id=0\nappend cuda\nbuild\nrelease tensorrt\n",
		"tensorrt options 1: device_id=0\ntensorrt user_compute_stream=0x",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no\n%s\nin\n%s", want, notes)
		}
	}
	left, err := filepath.Glob(filepath.Join(r.opts.StateDir, "tensorrt", "*"))
	hidden, _ := filepath.Glob(filepath.Join(r.opts.StateDir, "tensorrt", ".*"))
	if err != nil || len(left) != 2 || len(hidden) != 0 {
		t.Errorf("state directory holds %q and %q, %v", left, hidden, err)
	}
}

// TestTensorRTCache starts twice and wants one build; whatever was done to the
// file in between leads to a second one, never to its use.
func TestTensorRTCache(t *testing.T) {
	engine := func(t *testing.T, r *rig) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(r.opts.StateDir, "tensorrt", "*.engine.onnx"))
		if err != nil || len(found) != 1 {
			t.Fatalf("engines %q, %v", found, err)
		}
		return found[0]
	}
	note := func(t *testing.T, r *rig) string { return strings.TrimSuffix(engine(t, r), ".onnx") + ".json" }
	edit := func(t *testing.T, path string, change func([]byte) []byte) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	tests := []struct {
		name   string
		change func(*testing.T, *rig)
		builds int
	}{
		{"nothing", func(*testing.T, *rig) {}, 0},
		{"one bit of the engine", func(t *testing.T, r *rig) { edit(t, engine(t, r), flip) }, 1},
		{"engine cut short", func(t *testing.T, r *rig) { edit(t, engine(t, r), func(b []byte) []byte { return b[:100] }) }, 1},
		{"engine empty", func(t *testing.T, r *rig) { edit(t, engine(t, r), func([]byte) []byte { return nil }) }, 1},
		{"engine gone", func(t *testing.T, r *rig) { _ = os.Remove(engine(t, r)) }, 1},
		{"note gone", func(t *testing.T, r *rig) { _ = os.Remove(note(t, r)) }, 1},
		{"note damaged", func(t *testing.T, r *rig) { edit(t, note(t, r), func(b []byte) []byte { return b[:20] }) }, 1},
		{"note of another driver", func(t *testing.T, r *rig) {
			edit(t, note(t, r), func(b []byte) []byte { return bytes.Replace(b, []byte("550.54.14"), []byte("550.54.15"), 1) })
		}, 1},
		{"another driver", func(_ *testing.T, r *rig) { r.opts.Driver = "580.1" }, 1},
		{"another batch", func(_ *testing.T, r *rig) { r.opts.MaxBatch = 2 }, 1},
		{"another model", func(t *testing.T, r *rig) {
			s := fixture.NewPictureStub()
			s.Boxes[0] = []float32{1, 1, 6, 6}
			r.opts.Model = s.File(t)
		}, 1},
		{"others may write", func(t *testing.T, r *rig) {
			if err := os.Chmod(filepath.Dir(engine(t, r)), 0o777); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"engine is a link", func(t *testing.T, r *rig) {
			path := engine(t, r)
			if err := errors.Join(os.Rename(path, path+".away"), os.Symlink(path+".away", path)); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"it does not load", func(_ *testing.T, r *rig) { r.failORT("session tensorrt", "could not deserialize engine") }, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tensorRTRig(t)
			e := r.start()
			r.settle(e)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(r.notes(), "build\n"); n != 1 {
				t.Fatalf("%d builds at first", n)
			}
			r.clear()
			tt.change(t, r)
			i := r.settle(r.start())
			if n := strings.Count(r.notes(), "build\n"); n != tt.builds || i.Provider != "tensorrt" {
				t.Errorf("%d builds, want %d; %s serves, notes %q", n, tt.builds, i.Provider, i.ProbeNotes)
			}
		})
	}
}

// TestTensorRTGivenUp wants CUDA to serve on, with the reason in words.
func TestTensorRTGivenUp(t *testing.T) {
	tests := []struct {
		name string
		set  func(*rig)
		want string
	}{
		{"builder for another GPU", func(r *rig) {
			r.failORT("build", "TensorRT EP failed to create engine: Unable to load library: libnvinfer_builder_resource_sm90.so.10.15.1: cannot open shared object file")
		}, "TensorRT: it cannot build for this GPU: libnvinfer_builder_resource_sm90.so.10.15.1 is missing; CUDA serves"},
		{"provider does not load", func(r *rig) {
			r.failORT("update tensorrt", "Failed to load library /opt/libonnxruntime_providers_tensorrt.so with error: libnvonnxparser.so.10: cannot open shared object file")
		}, "TensorRT: libnvonnxparser.so.10 is missing, which libonnxruntime_providers_tensorrt.so needs; CUDA serves"},
		{"not in this build", func(r *rig) {
			r.failORT("update tensorrt", "TensorRT execution provider is not enabled in this build.")
		}, "TensorRT: this build of ONNX Runtime is without it; CUDA serves"},
		{"only part of the model", func(r *rig) { r.noContext(1) }, "TensorRT: it cannot take the whole model; CUDA serves"},
		{"another answer", func(r *rig) { r.corrupt(good, otherScores) }, "TensorRT: tensorrt, batch of 1: answers differ: score of class 0 of box 0 is "},
		{"NaN", func(r *rig) { r.corrupt(good, nanScores) }, "TensorRT: tensorrt, batch of 1: read output scores of image 0: value 0 is NaN: not finite; CUDA serves"},
		{"does nothing", func(r *rig) { r.corrupt(good, staleOutputs) }, "TensorRT: tensorrt, batch of 1: read output boxes of image 0: value 0 is NaN: not finite; CUDA serves"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tensorRTRig(t)
			tt.set(r)
			e := r.start()
			i := r.settle(e)
			if i.Provider != "cuda" || !has(i.ProbeNotes, tt.want) {
				t.Errorf("%s serves, notes %q, want %s", i.Provider, i.ProbeNotes, tt.want)
			}
			if got, err := r.run(e, 0.05); err != nil || math.Abs(float64(got[0]-0.85)) > 1e-5 {
				t.Errorf("scores %v, %v", got, err)
			}
			if left, _ := filepath.Glob(filepath.Join(r.opts.StateDir, "tensorrt", "*.engine.*")); len(left) > 0 {
				t.Errorf("kept %q", left)
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		r := newRig(t)
		r.opts.Model = fixture.NewPictureStub().File(t)
		if i := r.settle(r.start()); !has(i.ProbeNotes, "TensorRT: libonnxruntime_providers_tensorrt.so is not beside libonnxruntime.so.1; CUDA serves") {
			t.Errorf("notes %q", i.ProbeNotes)
		}
	})
	t.Run("fp32 where fp16 differs", func(t *testing.T) {
		r := tensorRTRig(t)
		r.corrupt(good, otherScores)
		i := r.settle(r.start())
		if n := strings.Count(r.notes(), "build\n"); n != 2 || !strings.Contains(r.notes(), "trt_fp16_enable=0") || !has(i.ProbeNotes, "TensorRT fp16 not used: ") {
			t.Errorf("%d builds, notes %q", n, i.ProbeNotes)
		}
	})
}

// TestTensorRTClosedDuringBuild: a build cannot be stopped, Close does not wait
// for it and what it makes is thrown away.
func TestTensorRTClosedDuringBuild(t *testing.T) {
	r := tensorRTRig(t)
	before := r.live()
	r.blockBuild(1)
	e := r.start()
	r.awaitBuild()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := r.live(); n != before {
		t.Errorf("%d objects left on the device, %d before", n, before)
	}
	if strings.Contains(r.notes(), "release tensorrt\n") {
		t.Error("the build was waited for")
	}
	r.blockBuild(0)
}

// TestTensorRTWithoutAPlace serves from an engine that cannot be kept.
func TestTensorRTWithoutAPlace(t *testing.T) {
	r := tensorRTRig(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.opts.StateDir = file
	if i := r.settle(r.start()); i.Provider != "tensorrt" || !has(i.ProbeNotes, "TensorRT: its engine could not be kept, the next start builds it again: ") {
		t.Errorf("%s serves, notes %q", i.Provider, i.ProbeNotes)
	}
	r.opts.StateDir = ""
	if i := r.settle(r.start()); i.Provider != "tensorrt" {
		t.Errorf("%s serves, notes %q", i.Provider, i.ProbeNotes)
	}
}

// TestTensorRTAutoWantsSpeed decides by the clock.
func TestTensorRTAutoWantsSpeed(t *testing.T) {
	r := tensorRTRig(t)
	r.opts.Provider = "auto"
	i := r.settle(r.start())
	slower := has(i.ProbeNotes, "TensorRT: it is slower here: ")
	if !has(i.ProbeNotes, "TensorRT ") || slower == (i.Provider == "tensorrt") {
		t.Errorf("%s serves, notes %q", i.Provider, i.ProbeNotes)
	}
}
