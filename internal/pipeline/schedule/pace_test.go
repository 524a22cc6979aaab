package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// The mean is the rate, whatever the camera's rate and jitter.
func TestPace(t *testing.T) {
	cases := []struct {
		name        string
		ask, camera float64
		want        float64 // pictures taken a second
	}{
		{"every picture", 0, 25, 25},
		{"the camera's own rate", 10, 10, 10},
		{"a third", 10, 30, 10},
		{"a rate that does not divide", 7, 30, 7},
		{"just under the camera's", 29, 30, 29},
		{"one a second", 1, 25, 1},
		{"less than one a second", 0.5, 25, 0.5},
		{"more than the camera gives", 30, 12, 12},
	}
	for _, c := range cases {
		for _, jitter := range []float64{0, 0.4, 1.8} { // in intervals of the camera: the last has pictures change places
			for _, phase := range []float64{0, 0.5, 0.99} {
				t.Run(c.name, func(t *testing.T) {
					const seconds = 400
					p := schedule.NewPace(c.ask, phase)
					r := rand.New(rand.NewPCG(1, 1))
					start, last, taken := time.Now(), time.Time{}, 0
					for i := range int(c.camera * seconds) {
						late := (r.Float64() - 0.5) * jitter / c.camera
						at := start.Add(time.Duration((float64(i)/c.camera + late) * float64(time.Second)))
						if at.Before(last) {
							at = last // packets that were held up come together
						}
						if last = at; p.Due(at) {
							taken++
						}
					}
					if got := float64(taken) / seconds; math.Abs(got-c.want) > c.want*0.005+1.5/seconds {
						t.Errorf("jitter %v, phase %v: took %.3f a second, want %.3f", jitter, phase, got, c.want)
					}
				})
			}
		}
	}
}

// The mean is the rate for an engine that is crowded now and then, or always, and no
// gap is longer than an interval and a half and a picture.
func TestPaceOfACrowdedEngine(t *testing.T) {
	for _, crowd := range []float64{0.3, 0.9, 1} {
		for _, ask := range []float64{0.5, 1.3, 5, 9.7, 10} {
			const seconds, camera = 400, 10.0
			p := schedule.NewPace(ask, 0.4)
			r := rand.New(rand.NewPCG(1, 1))
			start, last, longest, taken := time.Now(), time.Time{}, 0.0, 0
			for i := range int(camera * seconds) {
				late := (r.Float64() - 0.5) * 0.4
				at := start.Add(time.Duration((float64(i) + late) / camera * float64(time.Second)))
				if !p.DueUnless(at, func() bool { return r.Float64() < crowd }) {
					continue
				}
				if taken > 1 { // from the first on it goes along its grid
					longest = max(longest, at.Sub(last).Seconds())
				}
				last = at
				taken++
			}
			if got := float64(taken) / seconds; math.Abs(got-ask) > ask*0.005+1.5/seconds {
				t.Errorf("crowded %v: took %.3f a second, want %.3f", crowd, got, ask)
			}
			if limit := 1.5/ask + 1.5/camera; longest > limit {
				t.Errorf("crowded %v, %v a second: a gap of %.2f s, want at most %.2f", crowd, ask, longest, limit)
			}
		}
	}
}

// A camera that gives no more than is asked of it gives all of that to a crowded engine,
// also while its rate changes.
func TestPaceOfACrowdedEngineTakesWhatThereIs(t *testing.T) {
	for _, phase := range []float64{0, 0.3, 0.6, 0.9} {
		p := schedule.NewPace(0, phase)
		start, taken := time.Now(), 0
		for i := range 100 { // key pictures, every two seconds
			at := start.Add(time.Duration(i) * 2 * time.Second)
			p.SetRate(0.5+0.1*float64(i/5%2), at)
			if p.DueUnless(at, func() bool { return true }) {
				taken++
			}
		}
		if taken < 97 {
			t.Errorf("phase %v: %d of 100 pictures", phase, taken)
		}
	}
}

func TestPaceDoesNotCatchUp(t *testing.T) {
	p := schedule.NewPace(10, 0)
	start := time.Now()
	p.Due(start)
	later := start.Add(time.Minute)
	taken := 0
	for i := range 10 { // a burst within 10 ms after a minute of silence
		if p.Due(later.Add(time.Duration(i) * time.Millisecond)) {
			taken++
		}
	}
	if taken > 3 {
		t.Errorf("took %d pictures of a burst, want 3 at most", taken)
	}
}

// Cameras that all change their rate at one moment do not take their pictures at
// one moment from then on, and have the rate exactly.
func TestPacesStayApart(t *testing.T) {
	const cameras, fps = 50, 25
	paces := make([]schedule.Pace, cameras)
	for i := range paces {
		paces[i] = schedule.NewPace(0, schedule.Phase(i))
	}
	start := time.Now()
	for _, rate := range []float64{1, 0.9, 2, 1.5, 5, 10, 1} {
		const seconds = 20
		var slots [seconds * fps]int // taken, by picture of the stream
		for i := range paces {
			taken := 0
			for k := range slots {
				at := start.Add(time.Duration(k) * time.Second / fps)
				paces[i].SetRate(rate, at)
				if paces[i].Due(at) {
					slots[k]++
					taken++
				}
			}
			if math.Abs(float64(taken)-rate*seconds) > 1.5 {
				t.Errorf("rate %v: camera %d took %d in %d s", rate, i, taken, seconds)
			}
		}
		start = start.Add(seconds * time.Second)
		most := 0
		for _, n := range slots {
			most = max(most, n)
		}
		if mean := cameras * rate / fps; float64(most) > 2.5*mean+3 {
			t.Errorf("rate %v: %d of %d cameras take the same picture, %.1f would be even", rate, most, cameras, mean)
		}
	}
}
