package ort

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// TestDeviceBuiltIn runs the built-in model the whole way: precision, proof,
// every bucket.
func TestDeviceBuiltIn(t *testing.T) {
	r := newRig(t)
	r.opts.MaxBatch, r.opts.Provider = 2, "cuda"
	e := r.start()
	i := r.settle(e)
	if i.Model != "builtin:nanodet-g" || i.Provider != "cuda" || i.MaxBatch != 2 || i.ProbeMS <= 0 || i.Library != r.opts.Library || len(i.Labels) != 80 {
		t.Errorf("info %+v", i)
	}
	if !has(i.ProbeNotes, "cuda: runs ") {
		t.Errorf("notes %q", i.ProbeNotes)
	}
	if !has(i.ProbeNotes, " ms for 2 images: "+i.Precision) {
		t.Errorf("precision %s, notes %q", i.Precision, i.ProbeNotes)
	}
	if e.Boxes() != 3549 {
		t.Errorf("%d boxes", e.Boxes())
	}
	if _, err := r.run(e, 0, 0.5); err != nil {
		t.Error(err)
	}
}

func TestDeviceBindings(t *testing.T) {
	r := newRig(t)
	r.opts.Model, r.opts.Provider, r.opts.MaxBatch = fixture.NewPictureStub().File(t), "cuda", 3
	e := r.start()
	r.settle(e)
	notes := r.notes()
	stream := fmt.Sprintf("cuda user_compute_stream=%#x\n", uintptr(e.Stream()))
	if !strings.Contains(notes, stream) || !strings.Contains(notes, "cuda options 1: device_id=0\n") {
		t.Errorf("no %q in\n%s", stream, notes)
	}
	for _, tensor := range []string{"3072 bytes type 1: 1 3 16 16", "6144 bytes type 1: 2 3 16 16", "9216 bytes type 1: 3 3 16 16", "144 bytes type 1: 3 3 4", "72 bytes type 1: 3 3 2"} {
		if !strings.Contains(notes, "tensor "+tensor+"\n") {
			t.Errorf("tensor %s is not bound:\n%s", tensor, notes)
		}
	}
	// Each batch size has a session of its own: changing sizes within one makes
	// the provider plan its convolutions anew.
	if n := strings.Count(notes, stream); n != 3 {
		t.Errorf("%d sessions for the batch sizes 1, 2 and 3, want 3:\n%s", n, notes)
	}
	if !strings.Contains(notes, "run option disable_synchronize_execution_providers=1\n") || strings.Contains(notes, "gpu_graph_id") {
		t.Errorf("run options:\n%s", notes)
	}
	r.clear()
	for n := 1; n <= 3; n++ {
		values := []float32{0.01, 0.05, 0.1}[:n]
		got, err := r.run(e, values...)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if want := 0.8 + v; math.Abs(float64(got[i]-want)) > 1e-5 {
				t.Errorf("%d images: score %d is %v, want %v", n, i, got[i], want)
			}
		}
	}
	if got := r.notes(); got != "run cuda\nrun cuda\nrun cuda\n" {
		t.Errorf("calls per run: %q", got)
	}
	for n, want := range map[int]string{0: "run 0 images: wanted 1 to 3", 4: "run 4 images: wanted 1 to 3", -1: "run -1 images: wanted 1 to 3"} {
		err := r.dev.Do(t.Context(), "run", func(c *cuda.Context) error { return e.Run(c, 0, n) })
		if err == nil || err.Error() != want {
			t.Errorf("%d images: %v", n, err)
		}
	}
}

// TestDeviceSizes wants the smallest and the largest batch size to serve at once,
// the largest one for those between until they are open.
func TestDeviceSizes(t *testing.T) {
	r := newRig(t)
	r.opts.Model, r.opts.Provider, r.opts.MaxBatch = fixture.NewPictureStub().File(t), "cuda", 8
	r.blockSession(3) // the third of CUDA: that of the first size between
	e := r.start()
	three := []float32{0.01, 0.05, 0.1}
	for _, values := range [][]float32{{0.05}, three, {1: 0.02, 7: 0.1}} {
		got, err := r.run(e, values...)
		if err != nil || len(got) != len(values) || math.Abs(float64(got[len(got)-1]-0.8-values[len(values)-1])) > 1e-5 {
			t.Errorf("%d images before all sizes are open: %v, %v", len(values), got, err)
		}
	}
	open := func() (sizes []int) {
		err := r.dev.Do(t.Context(), "look", func(*cuda.Context) error {
			for k, n := range e.buckets {
				if e.active.bound[k][0] != nil {
					sizes = append(sizes, n)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return sizes
	}
	if got := open(); !slices.Equal(got, []int{1, 8}) {
		t.Errorf("open at first: %v", got)
	}
	r.blockSession(0)
	r.settle(e)
	if got := open(); !slices.Equal(got, []int{1, 2, 4, 8}) {
		t.Errorf("open in the end: %v", got)
	}
	if got, err := r.run(e, three...); err != nil || math.Abs(float64(got[2]-0.9)) > 1e-5 {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// A size that cannot be opened costs nothing but the room of the next larger one.
func TestDeviceSizeFails(t *testing.T) {
	r := newRig(t)
	r.opts.Model, r.opts.Provider, r.opts.MaxBatch = fixture.NewPictureStub().File(t), "cuda", 4
	before := r.live()
	r.blockSession(3)
	e := r.start()
	r.failORT("session cuda", "out of memory")
	r.blockSession(0)
	i := r.settle(e)
	if !has(i.ProbeNotes, "batches of 2 run as larger ones: ") {
		t.Errorf("notes %q", i.ProbeNotes)
	}
	if got, err := r.run(e, 0.01, 0.05); err != nil || math.Abs(float64(got[1]-0.85)) > 1e-5 {
		t.Errorf("two images: %v, %v", got, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if n := r.live(); n != before {
		t.Errorf("%d objects left on the device, %d before", n, before)
	}
}

// TestDeviceSidesAreApart fills one side while the other's answer is read.
func TestDeviceSidesAreApart(t *testing.T) {
	r := newRig(t)
	r.opts.Model, r.opts.Provider = fixture.NewPictureStub().File(t), "cuda"
	e := r.start()
	a, _ := e.Input(0)
	b, _ := e.Input(1)
	boxesA, scoresA, _, _ := e.Outputs(0)
	boxesB, scoresB, _, _ := e.Outputs(1)
	all := []cuda.DevicePtr{a, b, boxesA, boxesB, scoresA, scoresB}
	slices.Sort(all)
	if len(slices.Compact(all)) != 6 {
		t.Errorf("tensors of both sides lie at %#x", all)
	}
	for _, v := range []float32{0.01, 0.05} { // a side each
		if got, err := r.run(e, v); err != nil || math.Abs(float64(got[0]-0.8-v)) > 1e-5 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	var first []float32
	err := r.dev.Do(t.Context(), "read", func(c *cuda.Context) error {
		for side := range Sides {
			outputs, err := e.Fetch(c, side, 0)
			if err != nil {
				return err
			}
			first = append(first, outputs[1][0])
		}
		return nil
	})
	if err != nil || math.Abs(float64(first[0]-0.81)) > 1e-5 || math.Abs(float64(first[1]-0.85)) > 1e-5 {
		t.Errorf("sides hold %v, %v", first, err)
	}
}

// TestDeviceGraphs wants each size and side to be captured and to serve where that
// gains, else not; the stand-in is as fast either way.
func TestDeviceGraphs(t *testing.T) {
	r := newRig(t)
	r.opts.Model, r.opts.Provider, r.opts.NoGraphs = fixture.NewPictureStub().File(t), "cuda", false
	e := r.start()
	notes, i := r.notes(), r.settle(e)
	if len(i.Graphs) == 0 && i.NoGraphs != "they are not faster here" {
		t.Fatalf("no graphs: %s", i.NoGraphs)
	}
	for k := range 3 {
		for side := range Sides {
			if want := fmt.Sprintf("run option gpu_graph_id=%d\n", graphOf(k, side)); !strings.Contains(notes, want) {
				t.Errorf("no %q in\n%s", want, notes)
			}
		}
	}
	if !strings.Contains(notes, "enable_cuda_graph=1") || !strings.Contains(notes, "run option gpu_graph_id=-1\n") {
		t.Errorf("options:\n%s", notes)
	}
	if !has(i.ProbeNotes, "1 images ") || !has(i.ProbeNotes, "4 images ") || (len(i.Graphs) == 0) == (i.NoGraphs == "") {
		t.Errorf("graphs %v, none because %q, notes %q", i.Graphs, i.NoGraphs, i.ProbeNotes)
	}
	for n, k := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2} {
		err := r.dev.Do(t.Context(), "ask", func(*cuda.Context) error {
			e.active.replay[k] = true
			if !e.Waits(n) {
				t.Errorf("%d images are replayed and do not wait", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.run(e, slices.Repeat([]float32{0.05}, n)...); err != nil || math.Abs(float64(got[n-1]-0.85)) > 1e-5 {
			t.Errorf("%d images as a graph: %v, %v", n, got, err)
		}
	}
}

// TestDeviceWithoutGraphs wants CUDA to serve without them, for a reason.
func TestDeviceWithoutGraphs(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*rig)
		want string
	}{
		{"not asked for", func(r *rig) { r.opts.NoGraphs = true }, "they were not asked for"},
		{"nodes elsewhere", func(r *rig) { r.failORT("session cuda", "This session cannot use the graph capture feature") }, "This session cannot use the graph capture feature"},
		{"capture fails", func(r *rig) {
			r.failORT("graph", "CUDA failure 901: operation failed due to a previous error during capture")
		}, "CUDA failure 901"},
		{"another answer", func(r *rig) { r.graphAnswer(otherScores) }, "cuda, batch of 1: answers differ: "},
		{"nothing ran", func(r *rig) { r.graphAnswer(staleOutputs) }, "use CUDA graphs: cuda, batch of 1: read output boxes"},
		{"TensorRT follows", func(r *rig) { r.tensorRT(); r.opts.Provider = "tensorrt" }, "TensorRT "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.opts.Model, r.opts.Provider, r.opts.NoGraphs = fixture.NewPictureStub().File(t), "cuda", false
			c.set(r)
			before := r.live()
			e := r.start()
			i := r.settle(e)
			if len(i.Graphs) > 0 || !strings.Contains(i.NoGraphs, c.want) {
				t.Errorf("graphs %v, none because %q", i.Graphs, i.NoGraphs)
			}
			if n := strings.Count(strings.Join(i.ProbeNotes, "\n"), "cuda: runs "); n != 1 {
				t.Errorf("%d proofs in %q", n, i.ProbeNotes)
			}
			if got, err := r.run(e, 0.05); err != nil || math.Abs(float64(got[0]-0.85)) > 1e-5 {
				t.Errorf("scores %v, %v", got, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if n := r.live(); n != before {
				t.Errorf("%d objects left on the device, %d before", n, before)
			}
		})
	}
}

func TestDeviceGivesAllBack(t *testing.T) {
	r := newRig(t)
	r.opts.Model = fixture.NewPictureStub().File(t)
	before := r.live()
	e := r.start()
	r.settle(e)
	if r.live() == before {
		t.Error("nothing allocated")
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.live(); n != before {
		t.Errorf("%d objects left on the device, %d before", n, before)
	}
	if !strings.Contains(r.notes(), "release cuda\n") {
		t.Error("the session is not released")
	}
	if err := r.dev.Do(t.Context(), "run", func(c *cuda.Context) error { return e.Run(c, 0, 1) }); !errors.Is(err, infer.ErrClosed) {
		t.Errorf("run after close: %v", err)
	}
}

// TestDeviceRefuses wants the reason in words, and nothing left on the device.
func TestDeviceRefuses(t *testing.T) {
	missing := "/onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:2043 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library /opt/ort/libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory"
	tests := []struct {
		name string
		set  func(*rig)
		want string
	}{
		{"library missing", func(r *rig) { r.failORT("update cuda", missing) }, "CUDA: libcublasLt.so.13 is missing, which libonnxruntime_providers_cuda.so needs"},
		{"old driver", func(r *rig) {
			r.failORT("session cuda", "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=-1")
		}, "CUDA: the NVIDIA driver is too old for this build of ONNX Runtime"},
		{"no kernels", func(r *rig) {
			r.failORT("run", "CUDA error cudaErrorNoKernelImageForDevice:no kernel image is available for execution on the device")
		}, "CUDA: this build of ONNX Runtime has no kernels for this GPU"},
		{"stayed on the CPU", func(r *rig) { r.onCPU(1) }, "CUDA: CUDAExecutionProvider runs only 0 of 6 nodes"},
		{"NaN", func(r *rig) { r.corrupt(nanScores, good) }, "CUDA: cuda, batch of 1: read output scores of image 0: value 0 is NaN: not finite"},
		{"all zero", func(r *rig) { r.corrupt(zeroScores, good) }, "CUDA: cuda, batch of 1: read output scores of image 0: value 0 is 0: all scores are 0"},
		{"another answer", func(r *rig) { r.corrupt(otherScores, good) }, "CUDA: cuda, batch of 1: answers differ: score of class 0 of box 0 is 0.7"},
		{"does nothing", func(r *rig) { r.corrupt(staleOutputs, good) }, "CUDA: cuda, batch of 1: read output boxes of image 0: value 0 is NaN: not finite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.opts.Model = fixture.NewPictureStub().File(t)
			before := r.live()
			tt.set(r)
			e, err := NewDevice(t.Context(), r.dev, r.opts)
			if err == nil {
				_ = e.Close()
				t.Fatal("made")
			}
			var refused *ProviderError
			if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), tt.want) || refused.Hint == "" {
				t.Errorf("error %v (%T), want %s", err, err, tt.want)
			}
			if n := r.live(); n != before {
				t.Errorf("%d objects left on the device, %d before", n, before)
			}
		})
	}
	t.Run("unhealthy is told apart", func(t *testing.T) {
		r := newRig(t)
		r.opts.Model = fixture.NewPictureStub().File(t)
		r.corrupt(nanScores, good)
		var unhealthy *infer.UnhealthyError
		if _, err := NewDevice(t.Context(), r.dev, r.opts); !errors.As(err, &unhealthy) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no memory", func(t *testing.T) {
		r := newRig(t)
		r.opts.Model = fixture.NewPictureStub().File(t)
		before := r.live()
		r.failCUDA("cuMemAlloc_v2", 2, 2)
		if _, err := NewDevice(t.Context(), r.dev, r.opts); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
			t.Errorf("error %v", err)
		}
		if n := r.live(); n != before {
			t.Errorf("%d objects left on the device, %d before", n, before)
		}
	})
}

// TestDeviceHalfPrecisionIsOptional: fp16 that gives another answer is left
// alone, fp32 serves.
func TestDeviceHalfPrecisionIsOptional(t *testing.T) {
	r := newRig(t)
	r.opts.Provider, r.opts.MaxBatch = "cuda", 1
	e := &DeviceEngine{opts: r.opts}
	if list, err := e.opts.withDefaults(); err != nil || list.Precision != "auto" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, c := range []struct {
		model, precision string
		want             []string
		err              string
	}{
		{"builtin:nanodet-g", "auto", []string{"fp32", "fp16"}, ""},
		{"builtin:nanodet-g", "fp16", []string{"fp16"}, ""},
		{"builtin:nanodet-g", "int8", nil, "load model builtin:nanodet-g: precision int8 is not for GPUs"},
		{"/m.onnx", "auto", []string{"as in the file"}, ""},
		{"/m.onnx", "fp16", nil, "load model /m.onnx: precision fp16 picks a version of a built-in model, a file has its own"},
	} {
		got, err := DeviceOptions{Model: c.model, Precision: c.precision}.precisions()
		if !slices.Equal(got, c.want) || err != nil && err.Error() != c.err || err == nil && c.err != "" {
			t.Errorf("%s %s: %q, %v", c.model, c.precision, got, err)
		}
	}
}

func TestDeviceRefusesOptions(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		change func(*DeviceOptions)
		want   string
	}{
		{func(o *DeviceOptions) { o.MaxBatch = 65 }, "make gpu engine: batch 65 is not between 1 and 64"},
		{func(o *DeviceOptions) { o.MaxBatch = -1 }, "make gpu engine: batch -1 is not between 1 and 64"},
		{func(o *DeviceOptions) { o.Provider = "rocm" }, `make gpu engine: provider "rocm" is not auto, cuda or tensorrt`},
		{func(o *DeviceOptions) { o.Model = "/nowhere/m.onnx" }, "load model /nowhere/m.onnx: no such file or directory"},
		{func(o *DeviceOptions) { o.Library = "/nowhere/libonnxruntime.so" }, "open onnx runtime /nowhere/libonnxruntime.so: no such file or directory"},
	} {
		o := r.opts
		c.change(&o)
		if e, err := NewDevice(t.Context(), r.dev, o); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
			if err == nil {
				_ = e.Close()
			}
		}
	}
}

// TestDeviceFixedBatch binds a model with a batch of one image once.
func TestDeviceFixedBatch(t *testing.T) {
	r := newRig(t)
	s := fixture.NewPictureStub()
	s.Batch = 1
	r.opts.Model = s.File(t)
	e := r.start()
	if i := r.settle(e); i.MaxBatch != 1 {
		t.Errorf("batch %d", i.MaxBatch)
	}
}

// TestDeviceLost wants every method to return when the GPU hangs.
func TestDeviceLost(t *testing.T) {
	r := newRig(t)
	r.opts.Model, r.opts.Provider = fixture.NewPictureStub().File(t), "cuda"
	e := r.start()
	r.failCUDA("cuStreamSynchronize", 719, 0)
	_, err := r.run(e, 0.1)
	if err == nil {
		t.Fatal("ran")
	}
	var lost *cuda.LostError
	if err := e.Close(); !errors.As(err, &lost) {
		t.Errorf("close: %v", err)
	}
	if strings.Contains(r.notes(), "release cuda\n") {
		t.Error("a session is released on a lost GPU, where that may hang")
	}
	e2, err := NewDevice(t.Context(), r.dev, r.opts)
	if !errors.As(err, &lost) {
		t.Errorf("engine on a lost GPU: %v, %v", e2, err)
	}
}

func TestDeviceCancelled(t *testing.T) {
	r := newRig(t)
	r.opts.Model = fixture.NewPictureStub().File(t)
	before := r.live()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewDevice(ctx, r.dev, r.opts); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := r.live(); n != before {
		t.Errorf("%d objects left, %d before", n, before)
	}
}

func TestBuckets(t *testing.T) {
	for batch, want := range map[int][]int{1: {1}, 2: {1, 2}, 3: {1, 2, 3}, 16: {1, 2, 4, 8, 16}, 48: {1, 2, 4, 8, 16, 32, 48}, 64: {1, 2, 4, 8, 16, 32, 64}} {
		got := bucketsUpTo(batch)
		if !slices.Equal(got, want) {
			t.Errorf("batch %d: %v, want %v", batch, got, want)
		}
		for n := 1; n <= batch; n++ {
			k := bucketFor(got, n)
			if k < 0 || got[k] < n || k > 0 && got[k-1] >= n {
				t.Errorf("batch %d: %d images go to bucket %d of %v", batch, n, k, got)
			}
		}
		if bucketFor(got, batch+1) != -1 {
			t.Errorf("batch %d: one more fits", batch)
		}
	}
}

func TestProveProvider(t *testing.T) {
	const gpu, cpu = onnxruntime.CUDAProvider, onnxruntime.CPUProvider
	for _, c := range []struct {
		name string
		runs []onnxruntime.NodeRuns
		want string
	}{
		{"all", []onnxruntime.NodeRuns{{Provider: gpu, Op: "Conv", Count: 34}}, "runs 34 of 34 nodes"},
		{"shapes on the CPU", []onnxruntime.NodeRuns{{Provider: gpu, Op: "Conv", Count: 34}, {Provider: cpu, Op: "Gather", Count: 6}}, "runs 34 of 40 nodes, on the CPU: 6 Gather"},
		{"many kinds on the CPU", []onnxruntime.NodeRuns{
			{Provider: cpu, Op: "Mul", Count: 2}, {Provider: cpu, Op: "Shape", Count: 2}, {Provider: gpu, Op: "Conv", Count: 90}, {Provider: cpu, Op: "Concat", Count: 5}, {Provider: cpu, Op: "Gather", Count: 7},
		}, "runs 90 of 106 nodes, on the CPU: 7 Gather, 5 Concat, 2 Mul, …"},
		{"elsewhere on the card", []onnxruntime.NodeRuns{{Provider: gpu, Op: "Conv", Count: 34}, {Provider: onnxruntime.TensorRTProvider, Op: "Add", Count: 6}}, "runs 34 of 40 nodes"},
		{"one convolution on the CPU", []onnxruntime.NodeRuns{{Provider: gpu, Op: "Conv", Count: 33}, {Provider: cpu, Op: "FusedConv", Count: 1}}, "1 nodes FusedConv run on CPUExecutionProvider instead of CUDAExecutionProvider"},
		{"mostly elsewhere", []onnxruntime.NodeRuns{{Provider: gpu, Op: "Add", Count: 4}, {Provider: cpu, Op: "Mul", Count: 5}}, "CUDAExecutionProvider runs only 4 of 9 nodes"},
		{"nothing ran", nil, "CUDAExecutionProvider runs only 0 of 0 nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := proveProvider(c.runs, gpu)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
