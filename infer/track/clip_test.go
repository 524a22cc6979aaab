package track_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"edgecam/infer"
	"edgecam/infer/infertest"
	"edgecam/infer/ort"
	"edgecam/infer/track"
	"edgecam/internal/testkit"
)

var update = flag.Bool("update", false, "run the model over the clip and write testdata/clip.json again")

const clipJSON = "testdata/clip.json"

// clipDetections are what the built-in fp32 model finds in each frame of the
// clip with a score of 0.3 or more, boxes in fractions of the picture. They are
// recorded, so that a tracker test does not depend on the CPU's arithmetic.
func clipDetections(t testing.TB) [][]infer.Detection {
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

func record(t testing.TB) {
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
		copy(s.Input(0), infertest.Letterbox(bgr, testkit.ClipWidth, testkit.ClipHeight, spec))
		out := make([][]infer.Detection, 1)
		if err := s.Run(1, func(int) float32 { return 0.3 }, out); err != nil {
			t.Fatal(err)
		}
		frame := [][6]float64{}
		for _, d := range infertest.ToPicture(out[0], testkit.ClipWidth, testkit.ClipHeight, spec) {
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

// people are the centres of twelve people, by name and frame, in pixels of the
// 768×576 picture: marked by hand in every eighth frame in which one is to be seen.
func people(t *testing.T) map[string]map[int][2]float32 {
	t.Helper()
	text, err := os.ReadFile("testdata/people.json")
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]map[int][2]float32
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// follow runs the tracker over every step-th frame and counts, over the marks
// of people: those with a box, those whose box has an id, and how often the id
// is another than at the person's mark before.
func follow(t *testing.T, step int) (seen, known, switches int) {
	const near = 22 // pixels, less than half the distance of people side by side
	marks := people(t)
	ids := make(map[string]uint64)
	tracker := track.New(track.Options{Strong: func(int) float32 { return 0.45 }})
	begin := time.Unix(1000, 0)
	frames := clipDetections(t)
	for f := 0; f < len(frames); f += step {
		objects := tracker.Update(nil, begin.Add(time.Duration(f)*100*time.Millisecond), frames[f])
		for name, at := range marks {
			mark, ok := at[f]
			if !ok {
				continue
			}
			best, least := -1, float32(near)
			for i, o := range objects {
				dx, dy := (o.X1+o.X2)/2*testkit.ClipWidth-mark[0], (o.Y1+o.Y2)/2*testkit.ClipHeight-mark[1]
				if d := float32(math.Hypot(float64(dx), float64(dy))); o.Class == 0 && d < least {
					best, least = i, d
				}
			}
			if best < 0 {
				continue
			}
			seen++
			id := objects[best].ID
			if id == 0 {
				continue
			}
			known++
			if before := ids[name]; before != 0 && before != id {
				switches++
				t.Logf("step %d, frame %d: %s was %d, is %d", step, f, name, before, id)
			}
			ids[name] = id
		}
	}
	return seen, known, switches
}

// TestClip bounds the switches at 10, 5 and 2.5 pictures a second. The clip has
// a group that mixes behind a pole and pairs who cross in front of each other;
// without looking at the people's clothes some of these cannot be told apart.
func TestClip(t *testing.T) {
	tests := []struct{ step, seen, known, switches int }{
		{1, 131, 130, 4},
		{2, 131, 128, 5},
		{4, 129, 125, 5},
	}
	for _, tt := range tests {
		seen, known, switches := follow(t, tt.step)
		if seen < tt.seen || known < tt.known || switches > tt.switches {
			t.Errorf("every %d. frame: %d of 131 marks seen, %d with an id, %d switches; want at least %d, %d and at most %d",
				tt.step, seen, known, switches, tt.seen, tt.known, tt.switches)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	frames := clipDetections(b)
	tracker := track.New(track.Options{Strong: func(int) float32 { return 0.45 }})
	at := time.Unix(1000, 0)
	var objects []track.Object
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at = at.Add(100 * time.Millisecond)
		objects = tracker.Update(objects[:0], at, frames[i%len(frames)])
	}
}
