//go:build hw

package ort

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	camera "edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/infertest"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
	"edgecam/preprocess"
)

// TensorRT's engines stay in this directory between tests of one run, as a build
// takes a minute.
const hwStateEnv = "EDGECAM_TEST_STATE"

// hwDevice opens the first GPU and the GPU build, or skips with the reason.
func hwDevice(t *testing.T) (*cuda.Device, DeviceOptions) {
	t.Helper()
	library, _, err := onnxruntime.FindGPU("")
	if err != nil {
		t.Skipf("no GPU build of ONNX Runtime: %v", err)
	}
	path := library.Path()
	library.Close()
	dev, err := cuda.New(cuda.Options{}).NewDevice(t.Context(), cuda.DeviceOptions{})
	if err != nil {
		t.Skipf("no GPU: %v", err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev, DeviceOptions{Library: path, Provider: "cuda", MaxBatch: 64, Driver: hwDriver()}
}

func hwDriver() string {
	return platform.Detect(platform.Options{Driver: cuda.New(cuda.Options{})}).Driver
}

func hwStart(t *testing.T, dev *cuda.Device, o DeviceOptions) (*DeviceEngine, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	start := time.Now()
	e, err := NewDevice(ctx, dev, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, time.Since(start)
}

func hwSettle(t *testing.T, e *DeviceEngine) infer.Info {
	t.Helper()
	select {
	case <-e.Settled():
	case <-time.After(4 * time.Minute):
		t.Fatalf("not settled; info %+v", e.Info())
	}
	return e.Info()
}

// hwRun writes images to a side, runs them and gives the outputs of each.
func hwRun(t *testing.T, dev *cuda.Device, e *DeviceEngine, side int, images ...[]float32) (all []answer) {
	t.Helper()
	classes := len(e.Info().Labels)
	err := dev.Do(t.Context(), "run", func(c *cuda.Context) error {
		at, _ := e.Input(side)
		for i, in := range images {
			b := encode(in, e.model.input.element)
			if err := c.CopyInNow(at+cuda.DevicePtr(i*len(b)), b); err != nil {
				return err
			}
		}
		if err := e.Run(c, side, len(images)); err != nil {
			return err
		}
		if err := c.Wait(e.Stream()); err != nil {
			return err
		}
		boxes, scores, _, _ := e.Outputs(side)
		for i := range images {
			b, s := make([]byte, 16*e.Boxes()), make([]byte, 4*classes*e.Boxes())
			if err := errors.Join(c.CopyOutNow(b, boxes+cuda.DevicePtr(i*len(b))), c.CopyOutNow(s, scores+cuda.DevicePtr(i*len(s)))); err != nil {
				return err
			}
			all = append(all, answer{boxes: decode(b, onnxruntime.Float32), scores: decode(s, onnxruntime.Float32), classes: classes})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// clipInputs are the model inputs of the frames that the references describe,
// out of the built-in clip by the product's own decoder and letterbox.
func clipInputs(t *testing.T, spec infer.InputSpec) map[int][]float32 {
	t.Helper()
	clip, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	d, err := camera.New(camera.Options{
		Camera: "clip", Info: capture.StreamInfo{Codec: clip.Codec, ParameterSets: clip.ParameterSets(), ClockRate: 90000},
		Decoder: "software", Library: codecs, Node: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inputs, prep := map[int][]float32{}, preprocess.NewCPU(spec)
	seen := 0
	for i := 0; i < len(clip.Samples) && len(inputs) < 2; i++ {
		s, now := clip.Samples[i], time.Now()
		au := capture.AccessUnit{NALUs: s.NALUs, PTS: s.PTS, Received: now, CapturedAt: now, RandomAccess: s.RandomAccess}
		err := d.Decode(&au, func(f *framepool.Frame) {
			defer f.Release()
			if seen++; seen == 1 || seen == 101 {
				in := make([]float32, 3*spec.Width*spec.Height)
				if _, err := prep.Run(f, in); err != nil {
					t.Error(err)
				}
				inputs[seen-1] = in
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(inputs) != 2 {
		t.Fatalf("%d of 2 frames came out", len(inputs))
	}
	return inputs
}

// hwBatches wants each image of batches of 1, 3 and 64 to have the answer that
// the CPU gives it alone.
func hwBatches(t *testing.T, dev *cuda.Device, e *DeviceEngine) {
	t.Helper()
	library, err := onnxruntime.Open(e.Info().Library)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	m, err := loadModelAny(library, source{name: builtin.NanoDetG}, precisionFP32)
	if err != nil {
		t.Fatal(err)
	}
	defer m.session.Close()
	photo, err := picture(e.Info().Input)
	if err != nil {
		t.Fatal(err)
	}
	dark := make([]float32, len(photo))
	kinds := [][]float32{photo, dark, slices.Repeat([]float32{1.5}, len(photo))}
	var want []answer
	for _, in := range kinds {
		o, err := runOnCPU(library, m, encode(in, m.input.element))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, o)
	}
	for _, n := range []int{1, 3, 64} {
		var images [][]float32
		for i := range n {
			images = append(images, kinds[i%len(kinds)])
		}
		for side := range Sides {
			for i, got := range hwRun(t, dev, e, side, images...) {
				if err := agree(want[i%len(kinds)], got); err != nil {
					t.Errorf("image %d of %d, side %d: %v", i, n, side, err)
				}
			}
		}
	}
}

// hwTable prints images/s of every bucket.
func hwTable(t *testing.T, dev *cuda.Device, e *DeviceEngine) {
	t.Helper()
	info := e.Info()
	var cells []string
	for _, n := range e.buckets {
		var rate float64
		err := dev.DoWithin(t.Context(), "measure", time.Minute, func(c *cuda.Context) error {
			const runs = 40
			for _, warm := range []int{5, runs} {
				start := time.Now()
				for i := range warm {
					if err := e.Run(c, i%Sides, n); err != nil {
						return err
					}
				}
				if err := c.Wait(e.Stream()); err != nil {
					return err
				}
				rate = float64(n*warm) / time.Since(start).Seconds()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, fmt.Sprintf("%d: %.0f", n, rate))
	}
	t.Logf("%s %s on %s, ONNX Runtime %s, images/s by batch: %s", info.Provider, info.Precision, dev.GPU().Name, info.Version, strings.Join(cells, ", "))
	for _, n := range info.ProbeNotes {
		t.Logf("  %s", n)
	}
}

func TestHardwareCUDA(t *testing.T) {
	for _, c := range []struct {
		precision string
		graph     bool
	}{{"fp32", false}, {"fp16", false}, {"auto", false}, {"fp16", true}} {
		t.Run(fmt.Sprintf("%s graph %v", c.precision, c.graph), func(t *testing.T) {
			dev, o := hwDevice(t)
			o.Precision, o.NoGraphs = c.precision, !c.graph
			e, took := hwStart(t, dev, o)
			hwBatches(t, dev, e) // whatever sizes are open
			hwSettle(t, e)
			t.Logf("ready after %s", took.Round(time.Millisecond))
			hwBatches(t, dev, e)
			hwTable(t, dev, e)
			if i := e.Info(); c.graph {
				t.Logf("graphs of %v, %q", i.Graphs, i.NoGraphs)
				if len(i.Graphs) == 0 {
					t.Error("no batch size is replayed as a graph")
				}
			}
		})
	}
}

// TestHardwarePlugin uses the provider's file as a plugin, as with a core that
// has no provider built in.
func TestHardwarePlugin(t *testing.T) {
	dev, o := hwDevice(t)
	library, err := onnxruntime.Open(o.Library)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	if library.API() < 22 {
		t.Skipf("ONNX Runtime %s takes no provider libraries", library.Version())
	}
	library.Preload(onnxruntime.CUDAProvider)
	var stream cuda.Stream
	if err := dev.Do(t.Context(), "make stream", func(c *cuda.Context) (err error) { stream, err = c.NewStream(); return err }); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(o.Library)
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(filepath.Dir(real), "libonnxruntime_providers_cuda.so")
	e := &DeviceEngine{opts: o, dev: dev, library: library, stream: stream}
	e.opts.source, e.opts.MaxBatch = source{name: builtin.NanoDetG}, 4
	if err := e.consult(precisionFP32); err != nil {
		t.Fatal(err)
	}
	if err := e.allocate(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, d := newLane("plugin", len(e.buckets)), &e.io[0]
	err = e.profiled(t.Context(), l, func(opts onnxruntime.SessionOptions) (err error) {
		opts.Providers = []onnxruntime.Provider{{Name: onnxruntime.CUDAProvider, Device: dev.GPU().Index, Stream: uintptr(stream), Library: plugin}}
		if l.model, err = loadModelFor(library, source{name: builtin.NanoDetG}, precisionFP32, opts); err == nil {
			l.session = l.model.session
		}
		return err
	}, d, onnxruntime.CUDAProvider, stepLimit)
	if err != nil {
		t.Fatal(err)
	}
	for k := range e.buckets {
		if err := e.try(t.Context(), l, d, k, stepLimit, func(a attempt) error { return e.verify(t.Context(), a, stepLimit) }); err != nil {
			t.Error(err)
		}
	}
	t.Logf("notes %q", e.info.ProbeNotes)
	l.leave(t.Context(), dev)
	err = dev.Do(t.Context(), "free", func(c *cuda.Context) error {
		return errors.Join(e.io[0].free(c), e.io[1].free(c), c.FreeStream(stream))
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHardwareReferenceBoxes runs the frames that the references describe.
func TestHardwareReferenceBoxes(t *testing.T) {
	dev, o := hwDevice(t)
	o.MaxBatch = 2
	e, _ := hwStart(t, dev, o)
	reference, err := builtin.ReadReference("fp32")
	if err != nil {
		t.Fatal(err)
	}
	spec := e.Info().Input
	d, err := infer.NewDecoder(infer.DecoderOptions{Width: spec.Width, Height: spec.Height, Boxes: e.Boxes(), Classes: 80, IoU: reference.IoU})
	if err != nil {
		t.Fatal(err)
	}
	d.SetThresholds(func(int) float32 { return reference.ScoreThreshold })
	for frame, in := range clipInputs(t, spec) {
		got := hwRun(t, dev, e, frame%Sides, in)[0]
		dets, _, err := d.Decode(got.boxes, got.scores, nil)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, reference.Frames[frame], infertest.ToPicture(dets, testkit.ClipWidth, testkit.ClipHeight, spec), 0.9, 0.1, reference.ScoreThreshold)
	}
}

// TestHardwareTensorRT builds while CUDA serves, then starts from the cache,
// then from a damaged cache.
func TestHardwareTensorRT(t *testing.T) {
	dev, o := hwDevice(t)
	o.Provider = "tensorrt"
	o.StateDir = os.Getenv(hwStateEnv)
	if o.StateDir == "" {
		o.StateDir = t.TempDir()
	}
	e, took := hwStart(t, dev, o)
	t.Logf("CUDA ready after %s", took.Round(time.Millisecond))
	photo, err := picture(e.Info().Input)
	if err != nil {
		t.Fatal(err)
	}
	start, runs, longest := time.Now(), 0, time.Duration(0)
	for serving := true; serving; runs++ {
		select {
		case <-e.Settled():
			serving = false
		default:
			at := time.Now()
			hwRun(t, dev, e, runs%Sides, photo)
			longest = max(longest, time.Since(at))
		}
		if time.Since(start) > 4*time.Minute {
			t.Fatalf("not built; info %+v", e.Info())
		}
	}
	t.Logf("settled after %s; meanwhile %d runs, the longest %s", time.Since(start).Round(100*time.Millisecond), runs, longest.Round(100*time.Microsecond))
	info := e.Info()
	if info.Provider != "tensorrt" {
		if has(info.ProbeNotes, "is missing") || has(info.ProbeNotes, "no TensorRT") || has(info.ProbeNotes, "is not beside") {
			t.Skipf("no TensorRT: %q", info.ProbeNotes)
		}
		t.Fatalf("%s serves: %q", info.Provider, info.ProbeNotes)
	}
	hwBatches(t, dev, e)
	hwTable(t, dev, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("from the cache", func(t *testing.T) {
		e, _ := hwStart(t, dev, o)
		start := time.Now()
		if i := hwSettle(t, e); i.Provider != "tensorrt" {
			t.Fatalf("%s serves: %q", i.Provider, i.ProbeNotes)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("ready after %s, wanted at most 1 s", took)
		} else {
			t.Logf("ready after %s", took.Round(time.Millisecond))
		}
		hwBatches(t, dev, e)
	})
	t.Run("damaged cache", func(t *testing.T) {
		found, err := filepath.Glob(filepath.Join(o.StateDir, "tensorrt", "*"+engineSuffix))
		if err != nil || len(found) != 1 {
			t.Fatalf("engines %q, %v", found, err)
		}
		b, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(found[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		e, _ := hwStart(t, dev, o)
		if i := hwSettle(t, e); i.Provider != "tensorrt" {
			t.Fatalf("%s serves: %q", i.Provider, i.ProbeNotes)
		}
		after, err := os.ReadFile(found[0])
		if err != nil || slices.Equal(after, b) {
			t.Errorf("the damaged engine is still there (%v)", err)
		}
	})
}

// TestHardwareMemory starts and closes engines and wants the device's memory
// back.
func TestHardwareMemory(t *testing.T) {
	dev, o := hwDevice(t)
	o.MaxBatch, o.Precision = 16, "fp32"
	var free []uint64
	for range 4 {
		e, _ := hwStart(t, dev, o)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		f, _, err := dev.MemInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		free = append(free, f)
	}
	t.Logf("free bytes after each: %d", free)
	// The first ones load kernels that stay.
	if lost := int64(free[1]) - int64(free[3]); lost > 32<<20 {
		t.Errorf("two engines took %d bytes with them", lost)
	}
}

// TestHardwareInventory prints what doctor would.
func TestHardwareInventory(t *testing.T) {
	_, o := hwDevice(t)
	b, err := json.MarshalIndent(onnxruntime.Inventory(o.Library), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", b)
}
