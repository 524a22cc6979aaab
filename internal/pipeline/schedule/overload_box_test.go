package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// rehearsal is an overload as `edgecam bench cameras --overload` has it: a box at ease,
// and the same box asked for more than it can do.
type rehearsal struct {
	machine      func(seed uint64) *box
	ease, loaded int     // cameras
	fps, asked   float64 // of each
	least        float64 // pictures a second that are analysed under overload
}

// rehearsals are on machines with the times of real ones.
func rehearsals() map[string]rehearsal {
	return map[string]rehearsal{
		"two cores": {machine: twoCores, ease: 7, loaded: 30, fps: 10, asked: 5, least: 29},
		"card":      {machine: transformer, ease: 6, loaded: 26, fps: 30, least: 225},
	}
}

// twoCores is a processor with two workers. Decoders have the same cores: they make runs
// longer where both workers are busy, and wait for them.
func twoCores(seed uint64) *box {
	b := newBox(2, 1, 1, func(int) time.Duration { return 19400 * time.Microsecond })
	b.random = rand.New(rand.NewPCG(seed, seed))
	b.noise = func(cost time.Duration) time.Duration {
		const decode = 1300 * time.Microsecond
		part := 0.12 // of the pictures: the other core is free for them
		if b.busy() > 0 {
			part = 0.55
		}
		took := cost + time.Duration(0.7*b.random.ExpFloat64()*float64(time.Millisecond))
		for at := cost; ; took += decode {
			at -= time.Duration(b.random.ExpFloat64() / (part * b.rate()) * float64(time.Second))
			if at < 0 {
				return took
			}
		}
	}
	b.late = func() time.Duration {
		wait := 300 * time.Microsecond
		if b.busy() == 2 {
			wait = 3 * time.Millisecond
		}
		return decoding + time.Duration(b.random.ExpFloat64()*float64(wait))
	}
	return b
}

// rate is the pictures a second that all cameras send.
func (b *box) rate() (sum float64) {
	for _, c := range b.cameras {
		if !c.gone {
			sum += c.fps
		}
	}
	return sum
}

// transformer is a card with a network that takes long: larger batches save little.
func transformer(seed uint64) *box {
	b := newBox(1, 2, 16, func(n int) time.Duration {
		for _, step := range []struct{ n, took int }{{1, 3900}, {2, 5400}, {4, 7950}, {8, 13700}} {
			if n <= step.n {
				return time.Duration(step.took) * time.Microsecond
			}
		}
		return 25600 * time.Microsecond
	})
	b.apart = true
	b.random = rand.New(rand.NewPCG(seed, seed))
	b.noise = func(cost time.Duration) time.Duration {
		return cost + time.Duration(100*b.random.ExpFloat64()*float64(time.Microsecond))
	}
	b.late = func() time.Duration {
		return 1500*time.Microsecond + time.Duration(700*b.random.ExpFloat64()*float64(time.Microsecond))
	}
	return b
}

// Twice the load and more, by priorities: pictures are at most 1.2 times as old as at
// ease, each camera has its share, and the engine is not left idle for that.
func TestRehearsal(t *testing.T) {
	for name, r := range rehearsals() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) { r.run(t, r.machine(seed)) })
		}
	}
}

func (r *rehearsal) run(t *testing.T, b *box) {
	t.Helper()
	for range r.ease {
		b.add(r.fps, r.asked, 1)
	}
	b.run(15 * time.Second)
	_, ease := b.measure(60 * time.Second)
	if s := b.governor.State(); s.Reducing {
		t.Fatalf("at ease it reduces: %+v", s)
	}
	for _, c := range b.cameras {
		b.remove(c)
	}
	b.cameras = nil
	for i := range r.loaded { // one after the other, as decoders are set up
		b.add(r.fps, r.asked, []float64{1, 2, 4}[i%3])
		b.run(150 * time.Millisecond)
	}
	b.run(30 * time.Second)
	fps, loaded := b.measure(80 * time.Second)
	sum, lost := b.totals(fps)
	t.Logf("p95 %v at ease and %v overloaded, %.2f times; %.1f pictures/s, %d turns missed; %+v",
		ease, loaded, float64(loaded)/float64(ease), sum, lost, b.governor.State())
	if float64(loaded) > 1.2*float64(ease) {
		t.Errorf("p95 %v, at ease %v", loaded, ease)
	}
	if sum < r.least {
		t.Errorf("%.1f pictures a second, want %.0f", sum, r.least)
	}
	even(t, b, fps, 0.05)
}

// An overload leaves neither a machine of many cores nor one that is asked for little too
// much with a small part of what it can do.
func TestOverloadKeepsTheEngineBusy(t *testing.T) {
	cases := map[string]struct {
		workers, cameras int
		run              time.Duration
		fps, asked       float64 // of each camera
		least            float64 // pictures a second in all
	}{
		"sixteen cores":         {workers: 16, cameras: 120, run: 20 * time.Millisecond, fps: 25, asked: 10, least: 280},
		"four cores":            {workers: 4, cameras: 19, run: 20 * time.Millisecond, fps: 15, asked: 10, least: 65},
		"a tenth too much":      {workers: 2, cameras: 11, run: 40 * time.Millisecond, fps: 5, least: 35},
		"two fifths too much":   {workers: 2, cameras: 14, run: 40 * time.Millisecond, fps: 5, least: 30},
		"one core, all of each": {workers: 1, cameras: 13, run: 20 * time.Millisecond, fps: 5, least: 30},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBox(c.workers, 1, 1, func(int) time.Duration { return c.run })
			b.add(c.fps, c.asked, 1)
			b.run(30 * time.Second)
			for range c.cameras - 1 {
				b.add(c.fps, c.asked, 1)
			}
			b.run(120 * time.Second)
			fps, p95 := b.measure(120 * time.Second)
			sum, lost := b.totals(fps)
			t.Logf("%.1f pictures/s, p95 %v, %d turns missed; %+v", sum, p95, lost, b.governor.State())
			if sum < c.least {
				t.Errorf("%.1f pictures a second, want %.0f", sum, c.least)
			}
		})
	}
}
