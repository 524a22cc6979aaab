package testkit

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
)

// Card is a graphics card that is not there, for tests of everything above the
// driver: a stand-in for libcuda that carries kernels out on the processor, and
// a stand-in for the GPU build of ONNX Runtime over the one for the processor.
// Every card has a state of its own, at either index of its driver's two. The functions script it; the stand-ins'
// sources say what each does.
type Card struct {
	Driver      string // path of libcuda
	ONNXRuntime string // path of the library

	FailCall   func(call string, code, after int32)
	Die        func(code int32)
	Block      func(call string)
	AwaitBlock func()
	Unblock    func()
	Live       func() int32
	Calls      func(call string) int32

	Corrupt func(cuda, tensorrt int32) // by one of the constants below
	FailORT func(call, text string)
	// SlowPlain makes runs that replay no CUDA graph take so much longer.
	SlowPlain func(ms int32)

	abandoned, misused func() int32
}

// What a provider of the stand-in does to its scores.
const (
	ScoresGood int32 = iota
	ScoresNaN
	ScoresZero
	ScoresOther
)

// NewCard builds the stand-ins.
func NewCard(tb testing.TB) *Card {
	tb.Helper()
	c := &Card{Driver: FakeCUDA(tb, "-DCOUNT=2"), ONNXRuntime: filepath.Join(tb.TempDir(), "libonnxruntime.so.1")}
	Library(tb, c.ONNXRuntime, "gcc", "-O1", "-w", "-pthread", filepath.Join(Root(tb), "platform/onnxruntime/testdata/fakeort.c"), "-ldl",
		fmt.Sprintf("-DREAL=%q", ONNXRuntime(tb)))
	var kernels func(run uintptr)
	for library, functions := range map[string]map[string]any{
		c.Driver: {
			"fake_fail": &c.FailCall, "fake_die": &c.Die, "fake_block": &c.Block, "fake_await_block": &c.AwaitBlock, "fake_release": &c.Unblock,
			"fake_live": &c.Live, "fake_calls": &c.Calls, "fake_kernels": &kernels,
		},
		c.ONNXRuntime: {"fake_corrupt": &c.Corrupt, "fake_fail": &c.FailORT, "fake_slow_plain": &c.SlowPlain, "fake_abandoned": &c.abandoned, "fake_misused": &c.misused},
	} {
		handle, err := purego.Dlopen(library, purego.RTLD_NOW)
		if err != nil {
			tb.Fatal(err)
		}
		for name, function := range functions {
			purego.RegisterLibFunc(function, handle, name)
		}
	}
	kernels(launcher(tb))
	tb.Cleanup(func() {
		c.Unblock() // no test leaves a thread behind
		Settled(tb, c.abandoned(), c.misused())
	})
	return c
}

// Settled fails a test in which sessions of ONNX Runtime were released with what
// their runs had taken, runs replayed graphs that read what was given back, or
// sessions were settled on another thread than served.
func Settled(tb testing.TB, abandoned, misused int32) {
	tb.Helper()
	if abandoned != 0 || misused != 0 {
		tb.Errorf("%d sessions released that were not settled, %d runs that replay what was given back or are on a thread of their own", abandoned, misused)
	}
}

// kernelLauncher carries out launches once it is built; it has no state.
var kernelLauncher struct { //nolint:gochecknoglobals // building takes longer than the tests
	sync.Mutex

	entry uintptr
}

func launcher(tb testing.TB) uintptr {
	tb.Helper()
	l := &kernelLauncher
	l.Lock()
	defer l.Unlock()
	if l.entry != 0 {
		return l.entry
	}
	out := filepath.Join(tb.TempDir(), "launcher.so")
	args := []string{"-O1", "-pthread", filepath.Join(Root(tb), "internal/testkit/testdata/kernels.c"), "-ldl"}
	for macro, source := range map[string]string{
		"LETTERBOX": "preprocess/kernels/letterbox.cu", "PREVIEW": "preprocess/kernels/preview.cu", "CANDIDATES": "infer/candidates/candidates.cu",
	} {
		args = append(args, fmt.Sprintf("-D%s=%q", macro, HostKernels(tb, source)))
	}
	Library(tb, out, "gcc", args...)
	handle, err := purego.Dlopen(out, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		tb.Fatal(err)
	}
	if l.entry, err = purego.Dlsym(handle, "launch_host"); err != nil {
		tb.Fatal(err)
	}
	return l.entry
}
