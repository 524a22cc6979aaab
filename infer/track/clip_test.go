package track_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"edgecam/infer"
	"edgecam/infer/ort"
	"edgecam/internal/testkit"
)

var update = flag.Bool("update", false, "run the model over the clip and write testdata/clip.json again")

const clipJSON = "testdata/clip.json"

// clipDetections are what the built-in fp32 model finds in each frame of the
// clip with a score of 0.3 or more, boxes in fractions of the picture. They are
// recorded, so that a tracker test does not depend on the CPU's arithmetic.
func clipDetections(t *testing.T) [][]infer.Detection {
	t.Helper()
	if *update {
		record(t)
	}
	text, err := os.ReadFile(clipJSON)
	if err != nil {
		t.Fatal(err)
	}
	var file [][][6]float64 // class, score, x1, y1, x2, y2
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	frames := make([][]infer.Detection, len(file))
	for i, f := range file {
		for _, d := range f {
			frames[i] = append(frames[i], infer.Detection{
				Class: int(d[0]), Score: float32(d[1]),
				X1: float32(d[2]), Y1: float32(d[3]), X2: float32(d[4]), Y2: float32(d[5]),
			})
		}
	}
	return frames
}

func record(t *testing.T) {
	e, err := ort.New(ort.Options{Library: testkit.ONNXRuntime(t), Precision: "fp32", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	spec := e.Info().Input
	var file [][][6]float64
	for _, bgr := range testkit.ClipFrames(t, "1") {
		copy(s.Input(0), testkit.Letterbox(bgr, spec))
		out := make([][]infer.Detection, 1)
		if err := s.Run(1, func(int) float32 { return 0.3 }, out); err != nil {
			t.Fatal(err)
		}
		frame := [][6]float64{}
		for _, d := range testkit.ToPicture(out[0], spec) {
			frame = append(frame, [6]float64{
				float64(d.Class), digits(d.Score), digits(d.X1 / testkit.ClipWidth), digits(d.Y1 / testkit.ClipHeight),
				digits(d.X2 / testkit.ClipWidth), digits(d.Y2 / testkit.ClipHeight),
			})
		}
		file = append(file, frame)
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(clipJSON, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func digits(v float32) float64 { return math.Round(float64(v)*1e4) / 1e4 }

func TestDump(t *testing.T) { t.Log(len(clipDetections(t))) }
