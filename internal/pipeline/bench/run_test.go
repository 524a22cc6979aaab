package bench_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edgecam/infer/ort"
	"edgecam/internal/pipeline/bench"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
)

func options(t *testing.T, clip *sim.ClipData) bench.Options {
	t.Helper()
	engine, err := ort.New(ort.Options{Library: testkit.ONNXRuntime(t), Precision: "int8", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	return bench.Options{
		Clip: clip, Frames: 20, Engine: engine, ScoreThreshold: 0.45, Codecs: codecs, Logger: slog.New(slog.DiscardHandler),
		Split: func() (model, candidates time.Duration) {
			st := engine.Stats()
			return st.Infer, st.Decode
		},
	}
}

func TestRunMeasuresEveryStage(t *testing.T) {
	clip, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	r, err := bench.Run(t.Context(), options(t, clip))
	if err != nil {
		t.Fatal(err)
	}
	share := 0.0
	for _, s := range r.Stages {
		if s.MS <= 0 {
			t.Errorf("stage %s took %v ms", s.Name, s.MS)
		}
		share += s.Share
	}
	if len(r.Stages) != 5 || share < 0.999 || share > 1.001 || r.Overhead <= 0 || r.Overhead >= 1 {
		t.Errorf("stages %+v, overhead %v", r.Stages, r.Overhead)
	}
	if r.Frames != 20 || r.Objects < 20 || r.Damaged != 0 || r.CopiedBytes != 0 || r.GoroutinesGrown != 0 || r.FPS <= 0 || r.FramesPerCPUSecond <= 0 {
		t.Errorf("report %+v", r)
	}
	var table bytes.Buffer
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"candidates and NMS", "20 frames in", "pixels copied: 0 bytes", "damaged pictures: 0"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

// A clip with broken pictures is measured over what is left of it; one of which
// nothing is left is refused.
func TestRunWithADamagedClip(t *testing.T) {
	whole, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	broken := *whole
	broken.Samples = append([]sim.Sample(nil), whole.Samples...)
	for i := 3; i < len(broken.Samples); i += 10 {
		broken.Samples[i].NALUs = [][]byte{{0x41, 0xff, 0xff, 0xff, 0xff}}
	}
	r, err := bench.Run(t.Context(), options(t, &broken))
	if err != nil || r.Damaged == 0 {
		t.Errorf("report %+v, error %v", r, err)
	}
	nothing := *whole
	nothing.Samples = append([]sim.Sample(nil), whole.Samples...)
	for i := range nothing.Samples {
		nothing.Samples[i].NALUs = [][]byte{{0x65, 0xff, 0xff, 0xff}}
	}
	if _, err := bench.Run(t.Context(), options(t, &nothing)); err == nil || err.Error() != "decode picture: the clip gave none in two loops" {
		t.Errorf("error %v, want that there was no picture", err)
	}
}
