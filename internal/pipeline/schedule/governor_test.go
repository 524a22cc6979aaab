package schedule_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// machines are what the governor is tried on.
func machines() map[string]func() *box {
	return map[string]func() *box{
		// Two cores, 40 ms a picture: 50 a second.
		"processor": func() *box { return newBox(2, 1, 1, func(int) time.Duration { return 40 * time.Millisecond }) },
		// 16 pictures in 24 ms: 667 a second.
		"card": func() *box {
			b := newBox(1, 2, 16, affine(8*time.Millisecond, time.Millisecond))
			b.apart = true
			return b
		},
	}
}

// easy is what each machine does at ease: a good half of what it can.
var easy = map[string]struct{ n, fps int }{"processor": {6, 5}, "card": {16, 25}} //nolint:gochecknoglobals // constant table

// Twice the load: the age holds, everybody gets his share, and when the load is gone
// so are the limits.
func TestOverload(t *testing.T) {
	for name, machine := range machines() {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				b := machine()
				b.random = rand.New(rand.NewPCG(seed, seed))
				overload(t, b, easy[name].n, float64(easy[name].fps))
			})
		}
	}
}

func overload(t *testing.T, b *box, n int, rate float64) {
	t.Helper()
	for range n {
		b.add(rate, 0, 1)
	}
	b.run(20 * time.Second)
	fps, unloaded := b.measure(20 * time.Second)
	for _, f := range fps {
		within(t, "rate at ease", f, rate, 0.02)
	}
	if s := b.governor.State(); s.Reducing {
		t.Fatalf("at ease it reduces: %+v", s)
	}

	var more []*cam
	for range 3 * n { // more than twice what it can
		more = append(more, b.add(rate, 0, 1))
	}
	b.run(60 * time.Second)
	s := b.governor.State()
	if !s.Reducing || s.Reason == "" || s.Allowed >= s.Asked || s.Since.IsZero() {
		t.Errorf("state %+v", s)
	}
	fps, loaded := b.measure(60 * time.Second)
	t.Logf("p95 %v at ease, %v under overload; %.1f of %.1f fps allowed: %s", unloaded, loaded, s.Allowed, s.Asked, s.Reason)
	if float64(loaded) > 1.2*float64(unloaded) {
		t.Errorf("p95 %v, at ease %v", loaded, unloaded)
	}
	even(t, b, fps, 0.10)

	for _, c := range more {
		b.remove(c)
	}
	b.run(30 * time.Second)
	fps, _ = b.measure(20 * time.Second)
	for _, f := range fps[:n] {
		within(t, "rate afterwards", f, rate, 0.02)
	}
	if s := b.governor.State(); s.Reducing || s.Reason != "" {
		t.Errorf("afterwards it reduces: %+v", s)
	}
}

// even wants each camera's rate to be its weighted share of what all got, to a part.
func even(t *testing.T, b *box, fps []float64, part float64) {
	t.Helper()
	sum := 0.0
	var claims []schedule.Claim
	for i, c := range b.cameras {
		sum += fps[i]
		wish := c.fps
		if c.asked > 0 {
			wish = min(wish, c.asked)
		}
		claims = append(claims, schedule.Claim{Wish: wish, Weight: c.weight, Idle: c.idle})
	}
	level := schedule.Level(claims, sum)
	for i := range claims {
		want := claims[i].Wish
		if limit := claims[i].Limit(level); limit > 0 {
			want = limit
		}
		within(t, "share", fps[i], want, part)
	}
}

// Weights, different wishes and idle scenes: the shares hold in the running machine.
func TestOverloadByWeight(t *testing.T) {
	for name, machine := range machines() {
		t.Run(name, func(t *testing.T) {
			b, e := machine(), easy[name]
			for i := range 6 * e.n {
				c := b.add(float64(e.fps), 0, []float64{1, 2, 5}[i%3])
				c.idle = i%4 == 0
				if i%6 == 1 {
					c.asked = float64(e.fps) / 10
				}
			}
			b.run(60 * time.Second)
			fps, _ := b.measure(10 * time.Minute) // idle scenes have a picture in 20 s
			even(t, b, fps, 0.10)
		})
	}
}

// A machine that is overloaded from the start knows no age at ease. It gets by
// without: nothing gives way, and the engine has work.
func TestOverloadFromTheStart(t *testing.T) {
	for name, machine := range machines() {
		t.Run(name, func(t *testing.T) {
			b, e := machine(), easy[name]
			for range 4 * e.n {
				b.add(float64(e.fps), 0, 1)
			}
			b.run(30 * time.Second)
			fps, _ := b.measure(60 * time.Second)
			sum, lost := b.totals(fps)
			if float64(lost) > 0.02*sum*60 {
				t.Errorf("%d of %.0f frames gave way", lost, sum*60)
			}
			can := map[string]float64{"processor": 25, "card": 667}[name] // one of two cores is left to decoders
			if sum < 0.6*can {
				t.Errorf("%.1f pictures a second of the %.1f that the engine can do", sum, can)
			}
			even(t, b, fps, 0.10)
		})
	}
}

// The engine slows down to a half, as a hot one does, and recovers.
func TestGovernorFollowsTheEngine(t *testing.T) {
	for name, machine := range machines() {
		t.Run(name, func(t *testing.T) {
			b, e := machine(), easy[name]
			for range e.n {
				b.add(float64(e.fps), 0, 1)
			}
			b.run(20 * time.Second)
			b.slow = 2
			b.run(40 * time.Second)
			fps, _ := b.measure(30 * time.Second)
			if !b.governor.State().Reducing {
				t.Errorf("it does not reduce: %v", fps)
			}
			even(t, b, fps, 0.10)
			b.slow = 1
			b.run(60 * time.Second)
			fps, _ = b.measure(20 * time.Second)
			for _, f := range fps {
				within(t, "rate afterwards", f, float64(e.fps), 0.02)
			}
		})
	}
}

// What is allowed settles: it does not swing.
func TestGovernorIsSteady(t *testing.T) {
	for name, machine := range machines() {
		t.Run(name, func(t *testing.T) {
			b, e := machine(), easy[name]
			for range 4 * e.n {
				b.add(float64(e.fps), 0, 1)
			}
			b.run(60 * time.Second)
			low, high, turns, direction, last := math.Inf(1), 0.0, 0, 0.0, b.governor.State().Allowed
			for range 120 {
				b.run(time.Second)
				a := b.governor.State().Allowed
				low, high = min(low, a), max(high, a)
				if d := a - last; d != 0 {
					if d*direction < 0 {
						turns++
					}
					direction = d
				}
				last = a
			}
			t.Logf("allowed %.1f to %.1f, %d turns in 120 s", low, high, turns)
			if low < 0.75*high || turns > 24 {
				t.Errorf("allowed swings between %.1f and %.1f, %d times in 120 s", low, high, turns)
			}
		})
	}
}

// What is not overload changes nothing.
func TestGovernorLeavesAloneWhatItCannotHelp(t *testing.T) {
	cases := map[string]schedule.Window{
		"nothing happens":                 {},
		"nothing is analysed":             {Due: 100, Lost: 90},
		"old pictures of an idle engine":  {Due: 100, Analysed: 100, Use: 0.2, Age: 5 * time.Second, Ages: 100},
		"a busy engine that keeps up":     {Due: 100, Analysed: 100, Use: 0.97, Age: 40 * time.Millisecond, Ages: 100},
		"a frame now and then gives way":  {Due: 100, Analysed: 99, Lost: 1, Use: 0.6, Age: 40 * time.Millisecond, Ages: 100},
		"an age that is told from little": {Due: 5, Analysed: 5, Use: 0.7, Age: time.Second, Ages: 5},
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := []schedule.Claim{{Wish: 50, Weight: 1}, {Wish: 50, Weight: 1}}
	for name, w := range cases {
		t.Run(name, func(t *testing.T) {
			g := schedule.NewGovernor()
			for range 30 { // the age at ease
				at = at.Add(time.Second)
				g.Step(at, schedule.Window{Length: time.Second, Due: 100, Analysed: 100, Use: 0.5, Age: 40 * time.Millisecond, Ages: 100}, claims)
			}
			w.Length = time.Second
			for range 30 {
				at = at.Add(time.Second)
				if g.Step(at, w, claims) || g.State().Reducing {
					t.Fatalf("state %+v", g.State())
				}
			}
		})
	}
}

// An engine that was held up for seconds says little of what it can do: the rates
// do not go down to what came through, and are back soon.
func TestGovernorOutlastsAStall(t *testing.T) {
	const asked, cost = 2400, 1.0 / 12000
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := []schedule.Claim{{Wish: asked, Weight: 1}}
	g := schedule.NewGovernor()
	step := func(due, lost, analysed int) schedule.GovernorState {
		at = at.Add(time.Second)
		g.Step(at, schedule.Window{
			Length: time.Second, Due: due, Lost: lost, Analysed: analysed, Use: float64(analysed) * cost, Age: 5 * time.Millisecond, Ages: analysed,
		}, claims)
		return g.State()
	}
	for range 10 {
		step(asked, 0, asked)
	}
	for i := range 12 {
		s := step(asked, asked-6, 6)
		if s.Allowed < 0.3*asked || i < 4 && s.Reducing {
			t.Fatalf("after %d windows of 6 pictures: %+v", i+1, s)
		}
	}
	if s := g.State(); !strings.HasPrefix(s.Reason, "the engine is held up: 100 % of the due pictures gave way to newer ones at a load of 0 %") {
		t.Errorf("after 12: %+v", s)
	}
	for range 6 {
		if n := int(g.State().Allowed); !step(n, 0, n).Reducing {
			return
		}
	}
	t.Errorf("6 s later: %+v", g.State())
}

// A single cheap window is no other engine, where somebody else uses the processor
// now and then: the governor stays below what was too much. One that stays cheap is.
func TestGovernorTellsNoiseFromAFasterEngine(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := []schedule.Claim{{Wish: 100, Weight: 1}}
	g := schedule.NewGovernor()
	window := func(n, lost int, cost float64, age time.Duration) float64 {
		at = at.Add(time.Second)
		g.Step(at, schedule.Window{Length: time.Second, Due: n, Lost: lost, Analysed: n - lost, Use: float64(n-lost) * cost, Age: age, Ages: n}, claims)
		return g.State().Allowed
	}
	step := func(cost float64, age time.Duration) float64 { return window(int(g.State().Allowed), 0, cost, age) }
	const ease, usual, cheap = 40 * time.Millisecond, 0.008, 0.006
	window(50, 0, usual, ease)
	window(100, 20, usual, ease)
	tooMuch := g.State().Allowed // at which pictures get old, at a load that would pass
	for range 2 {
		step(usual, 2*ease)
	}
	if allowed := g.State().Allowed; allowed >= tooMuch || tooMuch >= 90 {
		t.Fatalf("it allows %.1f, and %.1f before", allowed, tooMuch)
	}
	for i := range 12 { // within the wait for another try
		cost := usual
		if i%3 == 2 {
			cost = cheap
		}
		if allowed := step(cost, ease); allowed > 0.94*tooMuch {
			t.Fatalf("after %d windows it allows %.1f, and %.1f was too much", i+1, allowed, tooMuch)
		}
	}
	for range 6 {
		step(cheap/2, ease)
	}
	if allowed := g.State().Allowed; allowed <= tooMuch {
		t.Errorf("with an engine that has got faster it allows %.1f", allowed)
	}
}

// The burst of cameras that start is no age of a box at ease, whether it comes first or
// later.
func TestGovernorForgetsABurst(t *testing.T) {
	const ease, burst = 40 * time.Millisecond, 400 * time.Millisecond
	for name, ages := range map[string][]time.Duration{
		"first":        {burst, burst, ease, ease, ease, ease, ease, ease, ease, ease, ease, ease},
		"later":        {ease, ease, ease, burst, burst, burst},
		"again, again": {ease, burst, ease, ease, burst, ease, ease, burst},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			claims := []schedule.Claim{{Wish: 100, Weight: 1}}
			g := schedule.NewGovernor()
			step := func(n, lost int, age time.Duration) {
				at = at.Add(time.Second)
				g.Step(at, schedule.Window{Length: time.Second, Due: n, Lost: lost, Analysed: n - lost, Use: float64(n-lost) / 125, Age: age, Ages: n}, claims)
			}
			for _, age := range ages {
				step(50, 0, age)
			}
			step(100, 20, ease)
			before := g.State().Allowed
			for range 2 {
				step(int(before), 0, 3*ease/2)
			}
			if s := g.State(); s.Allowed >= before || !strings.HasPrefix(s.Reason, "pictures got old: 60 ms") {
				t.Errorf("pictures half as old again as at ease change nothing: %+v", s)
			}
		})
	}
}

// What something else makes old, as decoders do that share the engine's cores, gets no
// younger below the rate at which the box was at ease: it is not given up for nothing.
func TestGovernorStopsWhereItWasAtEase(t *testing.T) {
	const ease, shared = 1.0 / 90, 1.0 / 60 // what a picture costs, the latter with more decoders at work
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g := schedule.NewGovernor()
	step := func(asked, rate, cost float64, age time.Duration) schedule.GovernorState {
		at = at.Add(time.Second)
		n, lost := min(asked, rate), 0
		if g.State().Reducing {
			n = min(n, g.State().Allowed)
		} else {
			lost = int(asked - n)
		}
		g.Step(at, schedule.Window{
			Length: time.Second, Due: int(asked), Lost: lost, Analysed: int(n), Use: n * cost, Age: age, Ages: int(n),
		}, []schedule.Claim{{Wish: asked, Weight: 1}})
		return g.State()
	}
	for range 10 {
		step(40, 90, ease, 26*time.Millisecond)
	}
	step(150, 60, shared, 300*time.Millisecond)
	low := 150.0
	for range 60 {
		low = min(low, step(150, 60, shared, 60*time.Millisecond).Allowed)
	}
	if low < 37 || low > 50 {
		t.Errorf("it goes down to %.1f pictures a second, and 40 were no overload", low)
	}
}

// The reason is what was seen.
func TestGovernorSaysWhy(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := []schedule.Claim{{Wish: 330, Weight: 1}}
	g := schedule.NewGovernor()
	for range 10 {
		at = at.Add(time.Second)
		g.Step(at, schedule.Window{Length: time.Second, Due: 100, Analysed: 100, Use: 0.5, Age: 40 * time.Millisecond, Ages: 100}, claims)
	}
	for range 2 {
		at = at.Add(time.Second)
		g.Step(at, schedule.Window{Length: time.Second, Due: 170, Analysed: 170, Use: 0.85, Age: 60 * time.Millisecond, Ages: 100}, claims)
	}
	if s := g.State(); s.Reason != "pictures got old: 60 ms, 40 ms at ease" || !s.Since.Equal(at) {
		t.Errorf("state %+v", s)
	}
	at = at.Add(time.Second)
	g.Step(at, schedule.Window{Length: time.Second, Due: 330, Lost: 132, Analysed: 198, Use: 0.99, Age: 60 * time.Millisecond, Ages: 100}, claims)
	if s := g.State(); !strings.HasPrefix(s.Reason, "the engine cannot keep up: 40 % of the due pictures") {
		t.Errorf("state %+v", s)
	}
	for range 2 {
		at = at.Add(time.Second)
		g.Step(at, schedule.Window{
			Length: time.Second, Due: 170, Analysed: 170, Use: 0.85, Age: 400 * time.Millisecond, Ages: 100, Decoded: 350 * time.Millisecond,
		}, claims)
	}
	if s := g.State(); s.Reason != "pictures got old: 400 ms, 350 ms of it until they were decoded, 40 ms at ease" {
		t.Errorf("state %+v", s)
	}
	for range 2 {
		at = at.Add(time.Second)
		g.Step(at, schedule.Window{
			Length: time.Second, Due: 170, Analysed: 170, Use: 0.85, Age: 60 * time.Millisecond, Ages: 100, Apart: true, Decoded: 350 * time.Millisecond,
		}, claims)
	}
	if s := g.State(); s.Reason != "pictures got old: 60 ms from their decoder on, 40 ms at ease" {
		t.Errorf("state %+v", s)
	}
	at = at.Add(time.Second)
	g.Step(at, schedule.Window{Length: time.Second, Due: 100, Lost: 120, Analysed: 80, Use: 0.99, Age: 60 * time.Millisecond, Ages: 80}, claims)
	if s := g.State(); !strings.HasPrefix(s.Reason, "the engine cannot keep up: 100 % of the due pictures") {
		t.Errorf("losses of frames that were due before: %+v", s)
	}
}
