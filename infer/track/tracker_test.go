package track_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"edgecam/infer"
	"edgecam/infer/track"
)

// zero is when the scenes of these tests begin.
func zero() time.Time { return time.Unix(1000, 0) }

// person is a standing box of 0.05 by 0.2 around a centre.
func person(x, y float32) infer.Detection {
	return infer.Detection{Score: 0.8, X1: x - 0.025, Y1: y - 0.1, X2: x + 0.025, Y2: y + 0.1}
}

func TestIDsBeginAtTheSecondSight(t *testing.T) {
	tracker := track.New(track.Options{})
	want := []track.Object{{ID: 0}, {ID: 1}, {ID: 1, Confirmed: true}, {ID: 1, Confirmed: true}}
	for i, w := range want {
		got := tracker.Update(nil, zero().Add(time.Duration(i)*100*time.Millisecond), []infer.Detection{person(0.5, 0.5)})
		w.Detection = person(0.5, 0.5)
		if len(got) != 1 || got[0] != w {
			t.Errorf("picture %d: %+v, want %+v", i, got, w)
		}
	}
}

// TestCrossing has two people walk through each other at several rates; while
// they overlap the detector sees only the nearer one.
func TestCrossing(t *testing.T) {
	for _, rate := range []int{25, 10, 5, 3} {
		tracker := track.New(track.Options{})
		ids := map[string]uint64{}
		for i := range 6 * rate {
			s := float64(i) / float64(rate)
			right, left := person(float32(0.2+0.1*s), 0.50), person(float32(0.8-0.1*s), 0.53)
			dets := []infer.Detection{left, right}
			hidden := infer.IoU(&left, &right) > 0.3
			if hidden {
				dets = dets[:1]
			}
			objects := tracker.Update(nil, zero().Add(time.Duration(s*float64(time.Second))), dets)
			if i < 2 || hidden {
				continue
			}
			for k, name := range []string{"left", "right"} {
				if before, ok := ids[name]; ok && before != objects[k].ID {
					t.Errorf("%d pictures a second, %.2f s: %s was %d, is %d", rate, s, name, before, objects[k].ID)
				}
				ids[name] = objects[k].ID
			}
		}
		if ids["left"] == 0 || ids["right"] == 0 || ids["left"] == ids["right"] {
			t.Errorf("%d pictures a second: ids %v", rate, ids)
		}
	}
}

func TestGaps(t *testing.T) {
	tests := []struct {
		name string
		gap  time.Duration
		same bool
	}{
		{"one picture", 200 * time.Millisecond, true},
		{"most of a second", 900 * time.Millisecond, true},
		{"a second and a half", 1500 * time.Millisecond, false},
		{"a minute", time.Minute, false},
	}
	for _, between := range []bool{true, false} {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				tracker := track.New(track.Options{})
				at := zero()
				x := float32(0.2)
				var id uint64
				for range 10 {
					id = tracker.Update(nil, at, []infer.Detection{person(x, 0.5)})[0].ID
					at, x = at.Add(100*time.Millisecond), x+0.01
				}
				// With pictures in the gap the object is hidden, without the camera was silent.
				for until := at.Add(tt.gap - 100*time.Millisecond); at.Before(until); {
					at = at.Add(100 * time.Millisecond)
					x += 0.01
					if between {
						tracker.Update(nil, at, nil)
					}
				}
				x = min(x, 0.9)
				tracker.Update(nil, at, []infer.Detection{person(x, 0.5)})
				again := tracker.Update(nil, at.Add(100*time.Millisecond), []infer.Detection{person(x+0.01, 0.5)})[0].ID
				if (again == id) != tt.same || again == 0 {
					t.Errorf("id %d before, %d after", id, again)
				}
			})
		}
	}
}

// TestFewPictures has one picture in two seconds: a second of MaxGap alone
// would end every track.
func TestFewPictures(t *testing.T) {
	tracker := track.New(track.Options{})
	for i := range 6 {
		id := tracker.Update(nil, zero().Add(time.Duration(i)*2*time.Second), []infer.Detection{person(0.5+float32(i)*0.005, 0.5)})[0].ID
		if want := uint64(min(i, 1)); id != want {
			t.Errorf("picture %d: id %d, want %d", i, id, want)
		}
	}
}

// TestClock hands in equal and earlier times.
func TestClock(t *testing.T) {
	tracker := track.New(track.Options{})
	for i, ms := range []int{0, 0, 0, 100, 50, -500, 100, 200, 200} {
		objects := tracker.Update(nil, zero().Add(time.Duration(ms)*time.Millisecond), []infer.Detection{person(0.5, 0.5)})
		if want := uint64(min(i, 1)); len(objects) != 1 || objects[0].ID != want {
			t.Errorf("picture %d at %d ms: %+v, want id %d", i, ms, objects, want)
		}
	}
}

func TestClassesDoNotMix(t *testing.T) {
	tracker := track.New(track.Options{})
	car := person(0.5, 0.5)
	car.Class = 2
	var ids [2]uint64
	for i := range 6 {
		dets := []infer.Detection{person(0.5, 0.5), car}
		if i%2 == 1 {
			dets[0], dets[1] = dets[1], dets[0]
		}
		for _, o := range tracker.Update(nil, zero().Add(time.Duration(i)*100*time.Millisecond), dets) {
			if k := o.Class / 2; i >= 1 {
				if ids[k] != 0 && ids[k] != o.ID {
					t.Errorf("picture %d: class %d was %d, is %d", i, o.Class, ids[k], o.ID)
				}
				ids[k] = o.ID
			}
		}
	}
	if ids[0] == 0 || ids[1] == 0 || ids[0] == ids[1] {
		t.Errorf("ids %v", ids)
	}
}

// TestWeakDetections go on with a track and do not begin one.
func TestWeakDetections(t *testing.T) {
	tracker := track.New(track.Options{Strong: func(class int) float32 { return 0.5 }})
	weak := person(0.5, 0.5)
	weak.Score = 0.4
	steps := []struct {
		det  infer.Detection
		want int    // objects
		id   uint64 // of the first
	}{{weak, 0, 0}, {weak, 0, 0}, {person(0.5, 0.5), 1, 0}, {weak, 1, 1}, {person(0.5, 0.5), 1, 1}, {weak, 1, 1}}
	for i, s := range steps {
		got := tracker.Update(nil, zero().Add(time.Duration(i)*100*time.Millisecond), []infer.Detection{s.det})
		if len(got) != s.want || s.want > 0 && got[0].ID != s.id {
			t.Errorf("step %d: %+v, want %d objects with id %d", i, got, s.want, s.id)
		}
	}
}

func TestBrokenBoxes(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	broken := []infer.Detection{
		{Score: 0.9, X1: nan, Y1: 0, X2: 1, Y2: 1},
		{Score: 0.9, X1: 0, Y1: 0, X2: inf, Y2: 1},
		{Score: 0.9, X1: -inf, Y1: 0, X2: inf, Y2: 1},
		{Score: 0.9, X1: 0.5, Y1: 0.5, X2: 0.5, Y2: 0.7},
		{Score: 0.9, X1: 0.5, Y1: 0.5, X2: 0.4, Y2: 0.7},
		{Score: nan, X1: 0.2, Y1: 0.2, X2: 0.4, Y2: 0.7},
	}
	tracker := track.New(track.Options{})
	for i := range 5 {
		objects := tracker.Update(nil, zero().Add(time.Duration(i)*100*time.Millisecond), append(broken, person(0.5, 0.5)))
		if len(objects) != len(broken)+1 {
			t.Fatalf("picture %d: %d objects", i, len(objects))
		}
		for k, o := range objects[:len(broken)] {
			if o.ID != 0 {
				t.Errorf("picture %d: broken box %d has id %d", i, k, o.ID)
			}
		}
		if want := uint64(min(i, 1)); objects[len(broken)].ID != want {
			t.Errorf("picture %d: the sound box has id %d, want %d", i, objects[len(broken)].ID, want)
		}
	}
}

func TestMaxTracks(t *testing.T) {
	tracker := track.New(track.Options{MaxTracks: 3})
	crowd := make([]infer.Detection, 8)
	for i := range crowd {
		crowd[i] = person(0.1*float32(i)+0.1, 0.5)
		crowd[i].Score = 0.5 + float32(i)/100
	}
	var objects []track.Object
	for i := range 5 {
		objects = tracker.Update(nil, zero().Add(time.Duration(i)*100*time.Millisecond), crowd)
	}
	for i, o := range objects {
		if (o.ID != 0) != (i >= 5) || o.ID > 3 {
			t.Errorf("object %d with a score of %v has id %d: want ids for the best 3", i, o.Score, o.ID)
		}
	}
	// Places of those who left are given to those who come.
	moved := person(0.5, 0.2)
	tracker.Update(nil, zero().Add(500*time.Millisecond), []infer.Detection{moved})
	if id := tracker.Update(nil, zero().Add(600*time.Millisecond), []infer.Detection{moved})[0].ID; id != 4 {
		t.Errorf("newcomer has id %d, want 4", id)
	}
}

// TestRandomScenes checks what must hold of any input.
func TestRandomScenes(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	tracker := track.New(track.Options{Strong: func(int) float32 { return 0.5 }, MaxTracks: 20})
	at, highest := zero(), uint64(0)
	for step := range 5000 {
		at = at.Add(time.Duration(rng.ExpFloat64()*1e8) - 20*time.Millisecond)
		dets := make([]infer.Detection, rng.IntN(30))
		strong := 0
		for i := range dets {
			dets[i] = person(rng.Float32(), rng.Float32())
			dets[i].Class, dets[i].Score = rng.IntN(3), 0.3+rng.Float32()*0.7
			if dets[i].Score >= 0.5 {
				strong++
			}
		}
		objects := tracker.Update(nil, at, dets)
		if len(objects) < strong || len(objects) > len(dets) {
			t.Fatalf("step %d: %d objects of %d detections, %d strong", step, len(objects), len(dets), strong)
		}
		seen := map[uint64]bool{}
		for _, o := range objects {
			if o.ID != 0 && seen[o.ID] {
				t.Fatalf("step %d: id %d twice", step, o.ID)
			}
			seen[o.ID] = true
			if o.ID > highest+uint64(len(dets)) {
				t.Fatalf("step %d: id %d after %d", step, o.ID, highest)
			}
			highest = max(highest, o.ID)
		}
	}
	if highest == 0 {
		t.Error("no ids at all")
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	tracker := track.New(track.Options{})
	dets := make([]infer.Detection, 30)
	for i := range dets {
		dets[i] = person(float32(i%10)/10+0.05, float32(i/10)/3+0.15)
	}
	var objects []track.Object
	at := zero()
	update := func() {
		at = at.Add(100 * time.Millisecond)
		objects = tracker.Update(objects[:0], at, dets)
	}
	update()
	update()
	if allocs := testing.AllocsPerRun(100, update); allocs != 0 {
		t.Errorf("%v allocations a picture", allocs)
	}
}
