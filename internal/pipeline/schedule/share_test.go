package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

func TestLevel(t *testing.T) {
	cases := []struct {
		name   string
		claims []schedule.Claim
		total  float64
		want   []float64 // limits, 0 = none
	}{
		{"enough", []schedule.Claim{{Wish: 10, Weight: 1}, {Wish: 20, Weight: 1}}, 30, []float64{0, 0}},
		{"even", []schedule.Claim{{Wish: 10, Weight: 1}, {Wish: 20, Weight: 1}}, 12, []float64{6, 6}},
		{"one is content", []schedule.Claim{{Wish: 5, Weight: 1}, {Wish: 30, Weight: 1}, {Wish: 30, Weight: 1}}, 35, []float64{0, 15, 15}},
		{"by weight", []schedule.Claim{{Wish: 30, Weight: 1}, {Wish: 30, Weight: 5}}, 18, []float64{3, 15}},
		{"weight beyond the wish", []schedule.Claim{{Wish: 30, Weight: 1}, {Wish: 30, Weight: 10}}, 50, []float64{20, 0}},
		{"idle scenes first", []schedule.Claim{{Wish: 20, Weight: 1, Idle: true}, {Wish: 20, Weight: 1}}, 25, []float64{5, 0}},
		{"then the others too", []schedule.Claim{{Wish: 20, Weight: 1, Idle: true}, {Wish: 20, Weight: 1}}, 10, []float64{2, 8}},
		{"all idle is none idle", []schedule.Claim{{Wish: 20, Weight: 1, Idle: true}, {Wish: 20, Weight: 1, Idle: true}}, 10, []float64{5, 5}},
		{"a silent camera", []schedule.Claim{{Wish: 0, Weight: 1}, {Wish: 20, Weight: 1}}, 10, []float64{10, 10}},
		{"without a weight", []schedule.Claim{{Wish: 20}, {Wish: 20, Weight: 1}}, 10, []float64{5, 5}},
		{"nobody", nil, 10, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			level := schedule.Level(c.claims, c.total)
			for i, want := range c.want {
				if got := c.claims[i].Limit(level); math.Abs(got-want) > 1e-6 {
					t.Errorf("limit of camera %d is %v, want %v", i, got, want)
				}
			}
		})
	}
}

// Whatever is asked for, what is given out is the total, and nobody has more than
// his weight's level or less without having his wish.
func TestLevelGivesOutTheTotal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		claims := make([]schedule.Claim, 1+r.IntN(40))
		sum := 0.0
		for i := range claims {
			claims[i] = schedule.Claim{Wish: float64(r.IntN(300)) / 10, Weight: float64(1 + r.IntN(10)), Idle: r.IntN(3) == 0}
			sum += claims[i].Wish
		}
		total := sum * r.Float64()
		level, given := schedule.Level(claims, total), 0.0
		for i := range claims {
			if limit := claims[i].Limit(level); limit > 0 {
				given += min(limit, claims[i].Wish)
			} else {
				given += claims[i].Wish
			}
		}
		if math.Abs(given-total) > 1e-3*total+1e-6 {
			t.Fatalf("gave out %v of %v", given, total)
		}
	}
}

func TestTail(t *testing.T) {
	var tail schedule.Tail
	if tail.Quantile(0.95) != 0 {
		t.Error("a quantile of nothing")
	}
	for i := range 1000 {
		tail.Add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 0.5, 0.95: 0.95, 1: 1} {
		within(t, "quantile", tail.Quantile(q).Seconds(), want, 0.05)
	}
	tail.Add(0)
	tail.Add(time.Hour)
	if tail.Len() != 1002 {
		t.Errorf("length %d", tail.Len())
	}
	tail.Reset()
	if tail.Len() != 0 || tail.Quantile(1) != 0 {
		t.Error("it remembers")
	}
}

func TestTimes(t *testing.T) {
	x := schedule.NewTimes(24)
	if x.Of(3) != 0 || x.PerPicture() != 0 {
		t.Error("it knows what it was not told")
	}
	x.Observe(4, 8*time.Millisecond)
	for n, want := range map[int]time.Duration{1: 8, 4: 8, 5: 16, 8: 16, 16: 32, 17: 48, 24: 48} { // 24 is the last bucket
		if got := x.Of(n); got != want*time.Millisecond {
			t.Errorf("a batch of %d: %v, want %v ms", n, got, int(want))
		}
	}
	x.Observe(24, 24*time.Millisecond)
	if got := x.Of(24); got != 24*time.Millisecond || x.PerPicture() != time.Millisecond {
		t.Errorf("a batch of 24: %v, %v a picture", got, x.PerPicture())
	}
	x.Observe(4, time.Second) // a hiccup
	if got := x.Of(4); got > 10*time.Millisecond {
		t.Errorf("after a hiccup: %v", got)
	}
	for range 60 {
		x.Observe(4, 80*time.Millisecond) // it lasts
	}
	within(t, "a slower engine", x.Of(4).Seconds(), 0.08, 0.1)
	x.ObserveAtMost(4, time.Second)
	x.ObserveAtMost(2, time.Second)
	within(t, "what is known better", x.Of(4).Seconds(), 0.08, 0.1)
	for range 60 {
		x.ObserveAtMost(4, 10*time.Millisecond)
	}
	within(t, "a faster engine", x.Of(4).Seconds(), 0.01, 0.1)
}

func TestSkipFor(t *testing.T) {
	cases := []struct {
		fps   float64
		rates schedule.Rates
		want  schedule.Skip
	}{
		{0, schedule.Rates{All: 25, Reference: 12.5, Key: 1}, schedule.SkipNothing},
		{1, schedule.Rates{All: 25, Reference: 25, Key: 1}, schedule.SkipNonKey},
		{1, schedule.Rates{All: 25, Reference: 25, Key: 0.995}, schedule.SkipNonKey},
		{1, schedule.Rates{All: 25, Reference: 25, Key: 0.5}, schedule.SkipNothing},
		{5, schedule.Rates{All: 25, Reference: 12.5, Key: 1}, schedule.SkipNonReference},
		{13, schedule.Rates{All: 25, Reference: 12.5, Key: 1}, schedule.SkipNothing},
		{5, schedule.Rates{All: 25, Reference: 25, Key: 1}, schedule.SkipNothing},
		{0.1, schedule.Rates{}, schedule.SkipNothing},
		{0.1, schedule.Rates{All: 25, Reference: 25, Key: 0.2}, schedule.SkipNothing},
		{0.1, schedule.Rates{All: 25, Reference: 20, Key: 0.2}, schedule.SkipNonReference},
	}
	for _, c := range cases {
		if got := schedule.SkipFor(c.fps, c.rates); got != c.want {
			t.Errorf("%v of %+v: %v, want %v", c.fps, c.rates, got, c.want)
		}
	}
}

// Pictures that would make a batch larger without filling it are left to the next one
// where a picture costs less in a smaller one.
func TestFill(t *testing.T) {
	x := schedule.NewTimes(12)
	if got := x.Fill(5); got != 5 {
		t.Errorf("%d of 5, before anything is known", got)
	}
	for n, took := range map[int]time.Duration{1: 3900, 2: 5400, 4: 7950, 8: 13700, 12: 19000} {
		x.Observe(n, took*time.Microsecond)
	}
	for waiting, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 4, 7: 7, 8: 8, 9: 8, 10: 8, 11: 8, 12: 12, 40: 12} {
		if got := x.Fill(waiting); got != want {
			t.Errorf("%d of %d, want %d", got, waiting, want)
		}
	}
}

// A size that was dear once is tried again: it may not be any more.
func TestFillMeasuresAgain(t *testing.T) {
	x := schedule.NewTimes(16)
	x.Observe(4, 2*time.Millisecond)
	x.Observe(8, 25*time.Millisecond)
	filled := 0
	for range 2000 {
		if n := x.Fill(7); n == 7 {
			filled++
			x.Observe(n, 2500*time.Microsecond)
		}
	}
	if filled < 1000 {
		t.Errorf("%d of 2000 batches take what is cheaper now", filled)
	}
}
