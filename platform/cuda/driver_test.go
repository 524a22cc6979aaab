//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"edgecam/platform"
	"edgecam/platform/cuda"
)

func TestDevices(t *testing.T) {
	path := fakeLibrary(t, "COUNT=2", "V2")
	link := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	d := cuda.New(cuda.Options{Library: link})
	if err := d.Init(); err != nil {
		t.Fatal(err)
	}
	if d.Path() != path {
		t.Errorf("path %q, want the file behind the link, %q", d.Path(), path)
	}
	if v, err := d.Version(); err != nil || v != 12040 {
		t.Errorf("version %d, error %v", v, err)
	}
	got, err := d.Devices()
	if err != nil {
		t.Fatal(err)
	}
	want := []platform.GPU{{
		Index: 0, UUID: "GPU-02a1a2a3-a4a5-a6a7-a8a9-aaabacadae64", Name: "NVIDIA GeForce RTX 4070", ComputeCapability: "8.9",
		Multiprocessors: 46, CopyEngines: 2, MemoryBytes: 12 << 30,
		CanMapHost: true, UnifiedAddressing: true, SameHostPointer: true, PCIAddress: "10000:17:02.0",
	}}
	second := want[0]
	second.Index, second.UUID, second.Name = 1, "MIG-02a1a2a3-a4a5-a6a7-a8a9-aaabacadae65", "NVIDIA H200 MIG 1g.18gb"
	second.PCIAddress = "10000:18:02.0"
	want = append(want, second)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A driver without the newer call for UUIDs still serves.
func TestDevicesOlderDriver(t *testing.T) {
	got, err := cuda.New(cuda.Options{Library: fakeLibrary(t)}).Devices()
	if err != nil || len(got) != 1 || got[0].UUID != "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae64" {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestNoDevices(t *testing.T) {
	got, err := cuda.New(cuda.Options{Library: fakeLibrary(t, "COUNT=0")}).Devices()
	if err != nil || len(got) != 0 {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, define string
		code         int
		text         string
		hint         string // part of it
	}{
		{"no device", "INIT=100", 100, "call cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected", "nvidia-smi"},
		{"driver mismatch", "INIT=803", 803, "call cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): system has unsupported display driver / cuda driver combination", "reboot"},
		{"unknown", "INIT=999", 999, "call cuInit: CUDA_ERROR_UNKNOWN (999): unknown error", "/dev/nvidia-uvm"},
		{"a code that the driver cannot name", "INIT=4711", 4711, "call cuInit: CUDA_ERROR_4711 (4711): unknown to this driver", ""},
		{"a query fails", "FAIL_NAME", 46, "query gpu 0: call cuDeviceGetName: CUDA_ERROR_DEVICE_UNAVAILABLE (46): CUDA-capable device(s) is/are busy or unavailable", "exclusive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := cuda.New(cuda.Options{Library: fakeLibrary(t, c.define)})
			_, err := d.Devices()
			var refusal *platform.DriverError
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v (%T), want a *platform.DriverError", err, err)
			}
			if err.Error() != c.text || refusal.Code != c.code || !strings.Contains(refusal.Hint, c.hint) {
				t.Errorf("got  %s\n     code %d, hint %q\nwant %s\n     code %d, hint with %q", err, refusal.Code, refusal.Hint, c.text, c.code, c.hint)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "libcuda.so.1")
	if err := os.WriteFile(garbage, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := fakeLibrary(t, "OLD")
	for _, c := range []struct{ name, library, path, text string }{
		{"missing by name", "libcuda-that-is-not-there.so.1", "", "cannot open shared object file"},
		{"missing by path", filepath.Join(dir, "none.so"), filepath.Join(dir, "none.so"), "cannot open shared object file"},
		{"not a library", garbage, garbage, "file too short"},
		{"too old", old, old, "find symbol cuDeviceGetUuid_v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := cuda.New(cuda.Options{Library: c.library})
			err := d.Init()
			var missing *platform.UnavailableError
			if !errors.As(err, &missing) {
				t.Fatalf("error %v (%T), want a *platform.UnavailableError", err, err)
			}
			if missing.Path != c.path || !strings.Contains(err.Error(), c.text) || missing.Hint == "" {
				t.Errorf("path %q, text %q, hint %q; want path %q, text with %q", missing.Path, err, missing.Hint, c.path, c.text)
			}
			if _, again := d.Devices(); again != err {
				t.Errorf("devices after that: %v, want the same error", again)
			}
			if _, again := d.Version(); again != err {
				t.Errorf("version after that: %v, want the same error", again)
			}
		})
	}
}

// What the whole of Detect makes of a real library, through the real loader.
func TestDetectThroughLibrary(t *testing.T) {
	p := platform.Detect(platform.Options{Driver: cuda.New(cuda.Options{Library: fakeLibrary(t)})})
	if p.Kind != platform.KindDiscrete || p.CUDA != "12.4" || len(p.GPUs) != 1 || p.GPUs[0].NUMANode != -1 {
		t.Errorf("%+v", p)
	}
	p = platform.Detect(platform.Options{Driver: cuda.New(cuda.Options{Library: fakeLibrary(t, "INIT=803")})})
	if p.Kind != platform.KindCPU || len(p.Problems) != 1 || !strings.Contains(p.Problems[0].What, "libcuda is 550.54.14") {
		t.Errorf("%+v", p.Problems)
	}
}

func TestConcurrentUse(t *testing.T) {
	d := cuda.New(cuda.Options{Library: fakeLibrary(t, "COUNT=2")})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if g, err := d.Devices(); err != nil || len(g) != 2 {
					t.Errorf("devices %v, error %v", g, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
