package pipeline

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

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
		{"one a second", 1, 25, 1},
		{"less than one a second", 0.5, 25, 0.5},
		{"more than the camera gives", 30, 12, 12},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			const seconds = 200
			p := newPace(c.ask)
			r := rand.New(rand.NewPCG(1, 1))
			start := time.Now()
			taken := 0
			for i := range int(c.camera * seconds) {
				jitter := (r.Float64() - 0.5) * 0.4 / c.camera
				at := start.Add(time.Duration((float64(i)/c.camera + jitter) * float64(time.Second)))
				if p.due(at) {
					taken++
				}
			}
			if got := float64(taken) / seconds; math.Abs(got-c.want) > c.want*0.01+1.0/seconds {
				t.Errorf("took %.3f a second, want %.3f", got, c.want)
			}
		})
	}
}

func TestPaceDoesNotCatchUp(t *testing.T) {
	p := newPace(10)
	start := time.Now()
	p.due(start)
	later := start.Add(time.Minute)
	taken := 0
	for i := range 10 { // a burst within 10 ms after a minute of silence
		if p.due(later.Add(time.Duration(i) * time.Millisecond)) {
			taken++
		}
	}
	if taken != 1 {
		t.Errorf("took %d pictures of a burst, want 1", taken)
	}
}

func TestRate(t *testing.T) {
	start := time.Now()
	r := newRate(start)
	for i := range 100 { // 10 a second for 10 s
		r.add(start.Add(time.Duration(i) * 100 * time.Millisecond))
	}
	if got := r.perSecond(start.Add(10 * time.Second)); got != 10 {
		t.Errorf("rate %.2f, want 10", got)
	}
	if got := r.perSecond(start.Add(12 * time.Second)); got != 6 {
		t.Errorf("rate two seconds after the last %.2f, want 6", got)
	}
	if got := r.perSecond(start.Add(time.Hour)); got != 0 {
		t.Errorf("rate after an hour of nothing %.2f, want 0", got)
	}
}
