package pipeline

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/internal/pipeline/bench"
	"edgecam/internal/sim"
	"edgecam/platform/avcodec"
)

// Every size is measured through the path that cameras take, and the card and the
// pools have all back afterwards.
func TestBenchOnTheCard(t *testing.T) {
	s := newStand(t, 2)
	g := s.open(t)
	start := framepool.Live()
	data, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	card := &benchCard{g, gpuThreshold, effort{images: 4, least: 2, most: 4, laps: 1, solo: 1}}
	r, err := bench.GPU(t.Context(), bench.GPUOptions{
		Clip: data, Card: card, Decoders: []string{"software", "nvdec"}, Pictures: 20, Codecs: codecs, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Ways) != 2 || r.Provider != "cuda" || r.Ways[1].Problem == "" {
		t.Fatalf("%+v", r)
	}
	w := r.Ways[0]
	if w.Problem != "" || w.Width != 768 || w.Memory != "pinned" || w.CopiedBytes != 0 || w.DecodeMS <= 0 || w.Pictures == 0 || len(w.Rows) != 2 {
		t.Fatalf("%+v", w)
	}
	for i, row := range w.Rows {
		if row.Images != i+1 || row.Bare <= 0 || row.Path <= 0 || row.BatchMS <= 0 || row.ResultsUS <= 0 || row.DMABytes != 0 {
			t.Errorf("%+v", row)
		}
	}
	var table bytes.Buffer
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"decoder software: 768x576 yuv420p in pinned memory", "bare img/s", "decoder nvdec: "} {
		if !strings.Contains(table.String(), part) {
			t.Errorf("no %q in\n%s", part, table.String())
		}
	}
	allBack(t, start, "at the end")
}

// A soak takes pictures of all sizes through the card, and says what became of the
// memory.
func TestSoakOnTheCard(t *testing.T) {
	s := newStand(t, 2)
	g := s.open(t)
	start := framepool.Live()
	clock := time.Now()
	r, err := bench.Soak(t.Context(), bench.SoakOptions{
		Card: g.Bench(gpuThreshold), WarmUp: 3 * time.Second, Duration: 10 * time.Second, Seed: 1,
		Now: func() time.Time { // a second for each batch
			clock = clock.Add(time.Second)
			return clock
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Batches < 8 || r.Images < r.Batches || r.Cameras == 0 || r.Rise() > 0 || r.UsedWarm <= 0 || r.UsedMost < r.UsedEnd || r.Seconds < 8 {
		t.Errorf("%+v", r)
	}
	if err := r.Verdict(); err != nil {
		t.Error(err)
	}
	r.UsedEnd = r.UsedWarm + 17<<20
	if err := r.Verdict(); err == nil || !strings.Contains(err.Error(), "device memory grew by 17.0 MiB") {
		t.Errorf("verdict %v", err)
	}
	allBack(t, start, "at the end")
	g.Close()
	if n := s.Live(); n != 0 {
		t.Errorf("%d objects of the driver are left", n)
	}
}
