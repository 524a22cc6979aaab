package metrics

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// clock is a hand that tests move.
type clock struct{ t time.Time }

func newClock() *clock                    { return &clock{t: time.Unix(1000, 0)} }
func (c *clock) now() time.Time           { return c.t }
func (c *clock) advance(by time.Duration) { c.t = c.t.Add(by) }

const ms = time.Millisecond

func TestAgesPercentiles(t *testing.T) {
	upTo := func(n int) (ages []time.Duration) {
		for i := 1; i <= n; i++ {
			ages = append(ages, time.Duration(i)*ms)
		}
		return ages
	}
	cases := []struct {
		name string
		ages []time.Duration
		want Percentiles
		ok   bool
	}{
		{"none", nil, Percentiles{}, false},
		{"one", []time.Duration{7 * ms}, Percentiles{7 * ms, 7 * ms, 7 * ms, 1}, true},
		{"two", []time.Duration{9 * ms, 1 * ms}, Percentiles{1 * ms, 9 * ms, 9 * ms, 2}, true},
		{"hundred", upTo(100), Percentiles{50 * ms, 95 * ms, 99 * ms, 100}, true},
		{"a full ring", upTo(512), Percentiles{256 * ms, 487 * ms, 507 * ms, 512}, true},
		{"more than the ring holds", upTo(612), Percentiles{356 * ms, 587 * ms, 607 * ms, 512}, true},
		{"negative counts as none", []time.Duration{-5 * ms}, Percentiles{0, 0, 0, 1}, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			a := newAges(newClock().now)
			for _, age := range tc.ages {
				a.Observe(age)
			}
			if got, ok := a.Percentiles(); got != tc.want || ok != tc.ok {
				t.Errorf("got %v, %v, want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestAgesForgetsWhatIsOld(t *testing.T) {
	c := newClock()
	a := newAges(c.now)
	a.Observe(900 * ms)
	c.advance(6 * time.Second)
	a.Observe(20 * ms)
	if got, _ := a.Percentiles(); got.N != 2 || got.P99 != 900*ms {
		t.Errorf("at 6 s: %+v, want both ages", got)
	}
	c.advance(5 * time.Second)
	if got, _ := a.Percentiles(); got.N != 1 || got.P99 != 20*ms {
		t.Errorf("at 11 s: %+v, want the second age alone", got)
	}
	c.advance(6 * time.Second)
	if got, ok := a.Percentiles(); ok {
		t.Errorf("at 17 s: %+v, want nothing", got)
	}
	if got := a.Histogram().Count; got != 2 {
		t.Errorf("histogram counts %d, want both for ever", got)
	}
}

func TestAgesAgreesWithSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a := newAges(newClock().now)
		var all []time.Duration
		for range 1 + rng.IntN(700) {
			age := time.Duration(rng.Int64N(int64(time.Second)))
			all = append(all, age)
			a.Observe(age)
		}
		all = all[max(0, len(all)-ageSamples):]
		slices.Sort(all)
		got, _ := a.Percentiles()
		for _, p := range []struct {
			percent int
			got     time.Duration
		}{{50, got.P50}, {95, got.P95}, {99, got.P99}} {
			below, upTo := 0, 0
			for _, age := range all {
				if age < p.got {
					below++
				}
				if age <= p.got {
					upTo++
				}
			}
			if below*100 >= p.percent*len(all) || upTo*100 < p.percent*len(all) {
				t.Fatalf("p%d of %d: %d are below and %d up to it", p.percent, len(all), below, upTo)
			}
		}
	}
}

func TestAgesRate(t *testing.T) {
	cases := []struct {
		name  string
		every time.Duration
		n     int
		rest  time.Duration
		want  float64
	}{
		{"none", time.Second, 0, time.Second, 0},
		{"10 a second", 100 * ms, 200, 0, 10},
		{"younger than the window", 100 * ms, 20, 0, 10},
		{"faster than the ring is long", 10 * ms, 2000, 0, 100},
		{"stopped", 100 * ms, 200, 20 * time.Second, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := newClock()
			a := newAges(c.now)
			for range tc.n {
				c.advance(tc.every)
				a.Observe(ms)
			}
			c.advance(tc.rest)
			if got := a.Rate(); got < tc.want*0.98 || got > tc.want*1.02 {
				t.Errorf("Rate = %v, want %v ± 2 %%", got, tc.want)
			}
		})
	}
}

func TestAgesObserveAllocatesNothing(t *testing.T) {
	a := NewAges()
	if n := testing.AllocsPerRun(1000, func() { a.Observe(ms) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestAgesFromManyGoroutines(t *testing.T) {
	a := NewAges()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				a.Observe(30 * ms)
			}
		})
		wg.Go(func() {
			for range 20 {
				if p, ok := a.Percentiles(); ok && p.P99 != 30*ms {
					t.Errorf("P99 = %v, want 30ms", p.P99)
				}
				a.Rate()
			}
		})
	}
	wg.Wait()
	if got := a.Histogram(); got.Count != 4000 {
		t.Errorf("histogram counts %d, want 4000", got.Count)
	}
}

func BenchmarkAgesObserve(b *testing.B) {
	a := NewAges()
	b.ReportAllocs()
	for b.Loop() {
		a.Observe(ms)
	}
}

func BenchmarkAgesPercentiles(b *testing.B) {
	a := NewAges()
	for i := range ageSamples {
		a.Observe(time.Duration(i*7919%ageSamples) * ms)
	}
	b.ReportAllocs()
	for b.Loop() {
		a.Percentiles()
	}
}
