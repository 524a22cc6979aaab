//go:build hw

package pipeline

import (
	"log/slog"
	"os"
	"testing"

	"edgecam/framepool"
	"edgecam/infer/ort"
	"edgecam/internal/pipeline/bench"
	"edgecam/internal/sim"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

// leastOfBare is how much of the bare engine's images/s the whole path reaches in
// the same run: what else is to be done is done beside it.
const leastOfBare = 0.90

// TestHardwarePathKeepsUpWithTheEngine takes batches of 64 pictures that lie in
// the card's memory through all stages. TensorRT's engine is built anew where
// EDGECAM_TEST_STATE names no directory that has it.
func TestHardwarePathKeepsUpWithTheEngine(t *testing.T) {
	for _, provider := range []string{"cuda", "tensorrt"} {
		t.Run(provider, func(t *testing.T) {
			g, codecs := openHardware(t, provider)
			if g.NoDecoder() != "" || g.DecoderEngines() == 0 {
				t.Errorf("%d engines decode, %q", g.DecoderEngines(), g.NoDecoder())
			}
			<-g.Settled()
			if got := g.Info().Provider; got != provider {
				t.Skipf("%s serves: %q", got, g.Info().ProbeNotes)
			}
			data, err := sim.BuiltinClip()
			if err != nil {
				t.Fatal(err)
			}
			r, err := bench.GPU(t.Context(), bench.GPUOptions{
				Clip: data, Card: g.Bench(0.45), Decoders: []string{"nvdec", "software"}, Codecs: codecs, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Table(os.Stdout); err != nil {
				t.Fatal(err)
			}
			for _, w := range r.Ways {
				if w.Problem != "" || w.CopiedBytes != 0 {
					t.Errorf("decoder %s: %q, %.0f bytes copied a picture", w.Decoder, w.Problem, w.CopiedBytes)
					continue
				}
				// Pictures in host memory also cross the bus, which can be the narrower
				// road: their figures are in the table.
				if row := w.Rows[len(w.Rows)-1]; w.Decoder == "nvdec" && row.Ratio() < leastOfBare {
					t.Errorf("decoder %s, batches of %d: %.0f images/s of the engine's %.0f: %.3f, want %.2f", w.Decoder, row.Images, row.Path, row.Bare, row.Ratio(), leastOfBare)
				}
			}
		})
	}
}

func openHardware(t *testing.T, provider string) (*GPU, *avcodec.Library) {
	t.Helper()
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	driver := cuda.New(cuda.Options{})
	box := platform.Detect(platform.Options{Driver: driver})
	if len(box.GPUs) == 0 {
		t.Fatal(box.Why)
	}
	g, err := OpenGPU(t.Context(), GPUOptions{
		Driver: driver, Card: box.GPUs[0], Memory: "auto", Codecs: codecs, NMSIoU: 0.6, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Engine: ort.DeviceOptions{Provider: provider, MaxBatch: 64, StateDir: os.Getenv("EDGECAM_TEST_STATE"), Driver: box.Driver},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := framepool.Live()
	t.Cleanup(func() {
		g.Close()
		allBack(t, before, "at the end")
	})
	return g, codecs
}
