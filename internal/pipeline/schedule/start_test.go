package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// bigCard is a card that takes 64 pictures at once: 9,400 a second where each costs 75 µs.
func bigCard(each time.Duration) *box {
	b := newBox(1, 2, 64, affine(2*time.Millisecond, each))
	b.apart = true
	return b
}

// startAll starts n cameras at 30 pictures a second, one every 100 ms, whose streams
// wait up to a second and a half for their decoders. look is called each time.
func startAll(b *box, n int, look func()) {
	for range n {
		b.startLate(30, time.Duration(b.random.Float64()*float64(1500*time.Millisecond)))
		b.run(100 * time.Millisecond)
		look()
	}
}

// Cameras that start one after the other and catch up with what came before their
// decoders were ready are no overload of an engine that has room for all of them.
func TestStartIsNoOverload(t *testing.T) {
	for seed := range uint64(4) {
		b := bigCard(75 * time.Microsecond)
		b.random = rand.New(rand.NewPCG(seed, seed))
		look := func() {
			if s := b.governor.State(); s.Reducing {
				t.Fatalf("with %d cameras: %+v", len(b.cameras), s)
			}
		}
		startAll(b, 200, look)
		for range 20 {
			b.run(time.Second)
			look()
		}
	}
}

// An engine that cannot do what is asked for is found out while the cameras still
// start, and frames do not give way for long.
func TestOverloadWhileCamerasStart(t *testing.T) {
	b := bigCard(300 * time.Microsecond) // 3,000 a second
	since := 0
	startAll(b, 160, func() {
		if since == 0 && b.governor.State().Reducing {
			since = len(b.cameras)
		}
	})
	if since == 0 || since > 120 {
		t.Errorf("it reduces with %d cameras, and 100 are too many", since)
	}
	b.run(10 * time.Second)
	fps, _ := b.measure(20 * time.Second)
	sum, lost := b.totals(fps)
	if float64(lost) > 0.02*sum*20 || sum < 1300 {
		t.Errorf("%.0f pictures a second, %d frames gave way", sum, lost)
	}
}

// While decoders are set up they have the engine's card for most of the time. What
// the governor takes back then it gives again within seconds of the last one.
func TestRatesAreBackAfterTheStart(t *testing.T) {
	for seed := range uint64(4) {
		b := bigCard(75 * time.Microsecond)
		b.random = rand.New(rand.NewPCG(seed, seed))
		reduced := false
		look := func() { reduced = reduced || b.governor.State().Reducing }
		startAll(b, 100, look)
		b.held = 85 * time.Millisecond
		startAll(b, 60, look)
		b.held = 0
		if !reduced {
			t.Error("frames gave way for 6 s, and it does nothing")
		}
		b.run(8 * time.Second)
		if s := b.governor.State(); s.Reducing {
			t.Errorf("8 s after the last start: %+v", s)
		}
	}
}

// Decoders that are behind make old frames of an engine that has time.
func TestLateDecodersAreNoOverload(t *testing.T) {
	b := bigCard(75 * time.Microsecond)
	for range 176 {
		b.add(30, 0, 1)
	}
	b.run(10 * time.Second)
	for _, c := range b.cameras {
		c.lag = time.Duration((0.5 + 0.2*b.random.Float64()) * float64(time.Second))
	}
	for range 30 {
		b.run(time.Second)
		if s := b.governor.State(); s.Reducing {
			t.Fatalf("state %+v", s)
		}
	}
}

// What was too much for the cameras of before is tried again as their number grows, in
// however small steps; and a rate that turns out to be too much again and again, with
// an engine that seems to have room, is tried less and less often.
func TestGovernorTriesAgain(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const cost = 1.0 / 3000
	asked := 1000.0
	g := schedule.NewGovernor()
	step := func(lossy bool) bool {
		at = at.Add(time.Second)
		n := int(g.State().Allowed)
		if n == 0 {
			n = int(asked)
		}
		w := schedule.Window{Length: time.Second, Due: n, Analysed: n, Use: float64(n) * cost, Age: 20 * time.Millisecond, Ages: n}
		if lossy {
			w.Lost = n / 10
			w.Analysed -= w.Lost
		}
		g.Step(at, w, []schedule.Claim{{Wish: asked, Weight: 1}})
		return g.State().Reducing
	}
	// back is how many windows it takes to go back to all, after one that was too much.
	back := func(grow float64) int {
		for range 20 {
			if step(true) {
				break
			}
		}
		for n := 1; n < 300; n++ {
			asked *= grow
			if !step(false) {
				return n
			}
		}
		return 300
	}
	for range 5 {
		step(false)
	}
	first := back(1)
	if first > 4 {
		t.Errorf("back after %d windows", first)
	}
	var again int
	for range 4 {
		again = back(1)
	}
	if again < 4*first {
		t.Errorf("back after %d windows for the first time, and %d after four more", first, again)
	}
	if n := back(1.012); n > 14 {
		t.Errorf("back after %d windows with 1.2 %% more asked for in each", n)
	}
}
