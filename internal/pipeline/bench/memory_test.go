package bench_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/pipeline/bench"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// standIn opens the stand-in driver. With carried set, it carries readall out.
func standIn(t *testing.T, carried bool) *cuda.Device {
	t.Helper()
	path := testkit.FakeCUDA(t)
	if carried {
		kernels, err := purego.Dlopen(testkit.HostKernels(t, "internal/pipeline/bench/readall.cu"), purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			t.Fatal(err)
		}
		entry, err := purego.Dlsym(kernels, "launch_host")
		if err != nil {
			t.Fatal(err)
		}
		lib, err := purego.Dlopen(path, purego.RTLD_NOW)
		if err != nil {
			t.Fatal(err)
		}
		var carryOut func(run uintptr)
		purego.RegisterLibFunc(&carryOut, lib, "fake_kernels")
		carryOut(entry)
	}
	dev, err := cuda.New(cuda.Options{Library: path}).NewDevice(t.Context(), cuda.DeviceOptions{CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func memoryOptions() bench.MemoryOptions {
	return bench.MemoryOptions{
		Spec: infer.InputSpec{Width: 64, Height: 64}, Rounds: 3, Rules: preprocess.RulesFor(platform.GPU{CanMapHost: true, HostRegisterSupported: true}), Driver: "550.54.14",
		Geometries: []bench.Geometry{{Format: framepool.I420, Width: 768, Height: 576}, {Format: framepool.NV12, Width: 1920, Height: 1080}},
	}
}

func TestMemory(t *testing.T) {
	dev := standIn(t, true)
	r, err := bench.Memory(t.Context(), dev, memoryOptions())
	if err != nil {
		t.Fatal(err)
	}
	var works []string
	for _, w := range r.Works {
		works = append(works, w.Work)
		if len(w.Strategies) != 4 || (w.Winner != "mapped" && w.Winner != "staged") {
			t.Errorf("%s: %d strategies, winner %q", w.Work, len(w.Strategies), w.Winner)
		}
		for _, s := range w.Strategies {
			if s.P50 <= 0 || s.P99 < s.P50 || s.GBs <= 0 || s.CPU <= 0 {
				t.Errorf("%s: %+v", w.Work, s)
			}
		}
	}
	want := "16 MiB read once, 1920x1080 nv12 to 64x64, 1920x1080 yuv420p to 64x64, 3840x2160 nv12 to 64x64, 768x576 yuv420p to 64x64"
	if got := strings.Join(works, ", "); got != want {
		t.Errorf("works %q, want %q", got, want)
	}
	var table bytes.Buffer
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"NVIDIA GeForce RTX 4070, driver 550.54.14", "3840x2160 nv12 to 64x64 (12.4 MB)", "heap", "staged", "mapped", "device", "<- auto"} {
		if !strings.Contains(table.String(), part) {
			t.Errorf("table lacks %q:\n%s", part, table.String())
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(b, &back); err != nil || len(back["works"].([]any)) != 5 {
		t.Errorf("json %s: %v", b, err)
	}
}

// A kernel that does not read everything must not be measured.
func TestMemoryChecksWhatWasRead(t *testing.T) {
	dev := standIn(t, false)
	_, err := bench.Memory(t.Context(), dev, memoryOptions())
	if err == nil || !strings.Contains(err.Error(), "the sum of what was read is 0x0, want") {
		t.Errorf("error %v", err)
	}
}

func TestMemoryWithoutMapping(t *testing.T) {
	dev := standIn(t, true)
	o := memoryOptions()
	o.Rules = preprocess.RulesFor(platform.GPU{Integrated: true, ComputeCapability: "5.3"})
	r, err := bench.Memory(t.Context(), dev, o)
	if err != nil {
		t.Fatal(err)
	}
	if w := r.Works[1]; len(w.Strategies) != 2 || w.Winner != "heap" {
		t.Errorf("%+v", w)
	}
}

func TestSweepTiles(t *testing.T) {
	dev := standIn(t, true)
	o := memoryOptions()
	o.Geometries = o.Geometries[:1]
	rows, err := bench.SweepTiles(t.Context(), dev, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3*60 { // staged, mapped and on the card
		t.Errorf("%d rows", len(rows))
	}
	var table bytes.Buffer
	if err := bench.TileTable(&table, rows, 2); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, table.String())
	}
}
