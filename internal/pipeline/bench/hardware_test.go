//go:build hw

package bench_test

import (
	"os"
	"strings"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/pipeline/bench"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

func hardware(t *testing.T) *cuda.Device {
	t.Helper()
	dev, err := cuda.New(cuda.Options{}).NewDevice(t.Context(), cuda.DeviceOptions{})
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

// The figures that are promised for the card that they were measured on.
func TestHardwareMemoryTable(t *testing.T) {
	dev := hardware(t)
	rounds := 200
	if testing.Short() { // under a sanitizer, which takes its time
		rounds = 3
	}
	o := bench.MemoryOptions{
		Rounds: rounds, Spec: infer.InputSpec{Width: 640, Height: 640}, Rules: preprocess.RulesFor(dev.GPU()),
		Geometries: []bench.Geometry{{Format: framepool.I420, Width: 768, Height: 576}},
	}
	r, err := bench.Memory(t.Context(), dev, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Table(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if testing.Short() || !strings.Contains(dev.GPU().Name, "H200") {
		t.Skip("the promised figures are for an H200")
	}
	// The card's clocks may have been low for the first table.
	again, err := bench.Memory(t.Context(), dev, o)
	if err != nil {
		t.Fatal(err)
	}
	p50 := func(work, strategy string) float64 {
		return min(medianOf(t, r, work, strategy), medianOf(t, again, work, strategy))
	}
	const hd, uhd, link = "1920x1080 nv12", "3840x2160 nv12", "16 MiB"
	for _, f := range []struct {
		name       string
		got, limit float64
	}{
		{"1080p mapped", p50(hd, "mapped"), 66},
		{"1080p mapped, against pageable copy and kernel", p50(hd, "mapped"), 0.25 * p50(hd, "heap")},
		{"1080p on the device", p50(hd, "device"), 12},
		{"4K mapped, against staged", p50(uhd, "mapped"), 0.40 * p50(uhd, "staged")},
		{"4K on the device", p50(uhd, "device"), 12},
		{"16 MiB mapped, against the link", p50(link, "mapped"), 1.10 * r.LinkP50},
	} {
		t.Logf("%-50s %8.1f us, at most %8.1f", f.name, f.got, f.limit)
		if f.got > f.limit {
			t.Errorf("%s: %.1f us, want at most %.1f", f.name, f.got, f.limit)
		}
	}
}

func medianOf(t *testing.T, r *bench.MemoryReport, work, strategy string) float64 {
	t.Helper()
	for _, w := range r.Works {
		for _, s := range w.Strategies {
			if strings.HasPrefix(w.Work, work) && s.Strategy == strategy {
				return s.P50
			}
		}
	}
	t.Fatalf("%s by %s was not measured", work, strategy)
	return 0
}

func TestHardwareTileSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it is for figures")
	}
	dev := hardware(t)
	rows, err := bench.SweepTiles(t.Context(), dev, bench.MemoryOptions{
		Spec: infer.InputSpec{Width: 640, Height: 640}, Rules: preprocess.RulesFor(dev.GPU()),
		Geometries: []bench.Geometry{
			{Format: framepool.NV12, Width: 1920, Height: 1080},
			{Format: framepool.I420, Width: 1920, Height: 1080},
			{Format: framepool.NV12, Width: 3840, Height: 2160},
			{Format: framepool.I420, Width: 768, Height: 576},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.TileTable(os.Stdout, rows, 6); err != nil {
		t.Fatal(err)
	}
}
