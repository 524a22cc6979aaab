package ort

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// What the stand-in does to the scores of a provider.
const (
	good int32 = iota
	nanScores
	zeroScores
	otherScores
	staleOutputs
)

// rig is a GPU that is not there: stand-ins for libcuda and for the GPU build
// of ONNX Runtime, over the CPU build.
type rig struct {
	t     *testing.T
	dev   *cuda.Device
	opts  DeviceOptions
	infos chan infer.Info
	side  int // of the next run

	notes      func() string
	clear      func()
	failORT    func(call, text string)
	blockBuild func(int32)
	awaitBuild func()
	corrupt    func(cuda, trt int32)
	onCPU      func(int32)
	noContext  func(int32)

	blockSession func(nth int32) // the nth session of CUDA from the start waits; 0 = none does
	graphAnswer  func(int32)     // what replays of CUDA graphs do to the scores
	slowPlain    func(ms int32)  // other runs take so much longer

	abandoned, misused func() int32

	failCUDA func(call string, code, after int32)
	block    func(call string)
	release  func()
	live     func() int32
}

func newRig(t *testing.T) *rig {
	t.Helper()
	root, dir := testkit.Root(t), t.TempDir()
	driver, core := testkit.FakeCUDA(t), filepath.Join(dir, "libonnxruntime.so.1")
	testkit.Library(t, core, "gcc", "-O1", "-w", "-pthread", filepath.Join(root, "platform/onnxruntime/testdata/fakeort.c"), "-ldl",
		fmt.Sprintf("-DREAL=%q", testkit.ONNXRuntime(t)))
	r := &rig{t: t, infos: make(chan infer.Info, 16)}
	for library, functions := range map[string]map[string]any{
		core: {
			"fake_notes": &r.notes, "fake_clear": &r.clear, "fake_fail": &r.failORT, "fake_block_build": &r.blockBuild,
			"fake_await_build": &r.awaitBuild, "fake_corrupt": &r.corrupt, "fake_on_cpu": &r.onCPU, "fake_no_context": &r.noContext,
			"fake_block_session": &r.blockSession, "fake_graph_answer": &r.graphAnswer,
			"fake_slow_plain": &r.slowPlain, "fake_abandoned": &r.abandoned, "fake_misused": &r.misused,
		},
		driver: {"fake_fail": &r.failCUDA, "fake_block": &r.block, "fake_release": &r.release, "fake_live": &r.live},
	} {
		handle, err := purego.Dlopen(library, purego.RTLD_NOW)
		if err != nil {
			t.Fatal(err)
		}
		for name, fn := range functions {
			purego.RegisterLibFunc(fn, handle, name)
		}
	}
	dev, err := cuda.New(cuda.Options{Library: driver}).NewDevice(t.Context(), cuda.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Close()
		testkit.Settled(t, r.abandoned(), r.misused())
	})
	r.dev = dev
	r.opts = DeviceOptions{
		Library: core, MaxBatch: 4, Driver: "550.54.14", NoGraphs: true,
		Changed: func(i infer.Info) { r.infos <- i },
	}
	return r
}

// tensorRT puts a TensorRT of that version beside the core. The loader knows it
// by its name from then on, in all tests, so they all have the same.
func (r *rig) tensorRT() {
	r.t.Helper()
	dir := filepath.Dir(r.opts.Library)
	source := filepath.Join(dir, "nvinfer.c")
	if err := os.WriteFile(source, []byte("int getInferLibVersion(void) { return 100600; }\nint other(void) { return 0; }\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	infer := filepath.Join(dir, "libnvinfer.so.10")
	for _, args := range [][]string{
		{"-o", infer, source, "-Wl,-soname,libnvinfer.so.10"},
		{"-o", filepath.Join(dir, "libonnxruntime_providers_tensorrt.so"), source, "-Wl,--no-as-needed", infer},
	} {
		all := append([]string{"-shared", "-fPIC"}, args...)
		if out, err := exec.CommandContext(r.t.Context(), "cc", all...).CombinedOutput(); err != nil {
			r.t.Fatalf("cc %q: %v\n%s", all, err, out)
		}
	}
}

// start makes an engine and has it closed at the end.
func (r *rig) start() *DeviceEngine {
	r.t.Helper()
	e, err := NewDevice(r.t.Context(), r.dev, r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return e
}

func (r *rig) settle(e *DeviceEngine) infer.Info {
	r.t.Helper()
	select {
	case <-e.Settled():
	case <-r.t.Context().Done():
		r.t.Fatal("not settled")
	}
	return e.Info()
}

// run puts a value into each of n images of a side and gives the first score of
// each; the sides take turns.
func (r *rig) run(e *DeviceEngine, values ...float32) (first []float32, err error) {
	side := r.side
	r.side = (side + 1) % Sides
	info := e.Info()
	image, classes := 3*info.Input.Width*info.Input.Height, len(info.Labels)
	err = r.dev.Do(context.Background(), "run", func(c *cuda.Context) error {
		at, half := e.Input(side)
		_, scores, _, _ := e.Outputs(side)
		if half {
			return fmt.Errorf("float16 input")
		}
		for i, v := range values {
			if err := c.CopyInNow(at+cuda.DevicePtr(4*i*image), encode(slices.Repeat([]float32{v}, image), 1)); err != nil {
				return err
			}
		}
		if err := e.Run(c, side, len(values)); err != nil {
			return err
		}
		if err := c.Wait(e.Stream()); err != nil {
			return err
		}
		for i := range values {
			b := make([]byte, 4)
			if err := c.CopyOutNow(b, scores+cuda.DevicePtr(4*i*e.Boxes()*classes)); err != nil {
				return err
			}
			first = append(first, decode(b, 1)[0])
		}
		return nil
	})
	return first, err
}

func has(notes []string, text string) bool {
	return slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, text) })
}

// encode gives values as the bytes of a tensor, decode the other way.
func encode(values []float32, element onnxruntime.ElementType) []byte {
	b := make([]byte, len(values)*element.Size())
	put(b, values, 1, element)
	return b
}

func decode(b []byte, element onnxruntime.ElementType) []float32 {
	return appendFloats(nil, b, element)
}
