package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// within fails the test unless got is want to a part.
func within(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.3f, want %.3f ±%.0f %%", what, got, want, 100*part)
	}
}

// One camera alone is served at once: its age is the engine's time and nothing else.
func TestASingleCameraNeverWaits(t *testing.T) {
	for _, depth := range []int{1, 2} {
		b := newBox(1, depth, 16, affine(5*time.Millisecond, time.Millisecond))
		b.add(30, 0, 1)
		fps, p95 := b.measure(20 * time.Second)
		within(t, "rate", fps[0], 30, 0.01)
		if p95 > 6*time.Millisecond {
			t.Errorf("depth %d: p95 %v, want the engine's 6 ms", depth, p95)
		}
	}
}

// Many cameras fill batches by themselves: every frame is analysed although the
// engine could not take them one by one, and the engine does not idle.
func TestBatchesGrowWithTheLoad(t *testing.T) {
	b := newBox(1, 2, 64, affine(4*time.Millisecond, 100*time.Microsecond)) // 1 by 1: 244 a second
	for range 160 {
		b.add(30, 0, 1)
	}
	b.run(5 * time.Second)
	fps, p95 := b.measure(20 * time.Second)
	lost := 0
	for i, c := range b.cameras {
		within(t, "rate", fps[i], 30, 0.02)
		lost += c.lost
	}
	if lost > 0 {
		t.Errorf("%d frames gave way", lost)
	}
	// A frame waits for the batch in flight and then for its own.
	if limit := 3 * affine(4*time.Millisecond, 100*time.Microsecond)(64); p95 > limit {
		t.Errorf("p95 %v, want at most %v", p95, limit)
	}
}

// With two batches in flight the engine never waits for its next one.
func TestTheEngineDoesNotIdleWhileFramesWait(t *testing.T) {
	cost := affine(8*time.Millisecond, 250*time.Microsecond)
	rate := func(depth int) float64 {
		b := newBox(1, depth, 16, cost)
		for range 100 {
			b.add(25, 0, 1)
		}
		b.governor = schedule.NewGovernor()
		fps, _ := b.measure(800 * time.Millisecond) // before the governor has a say
		sum := 0.0
		for _, f := range fps {
			sum += f
		}
		return sum
	}
	ceiling := 16 / cost(16).Seconds()
	within(t, "pictures a second of the overloaded engine", rate(2), ceiling, 0.08)
}

// A camera that stops sending, or sends late, holds nobody up.
func TestASlowCameraIsNotWaitedFor(t *testing.T) {
	b := newBox(1, 2, 16, affine(5*time.Millisecond, time.Millisecond))
	fast := b.add(30, 0, 1)
	b.add(0.2, 0, 1)
	b.run(20 * time.Second)
	_, p95 := b.measure(20 * time.Second)
	if fast.lost > 0 || p95 > 13*time.Millisecond {
		t.Errorf("%d lost, p95 %v", fast.lost, p95)
	}
}

// No camera starves, however far the engine is overloaded and however the rates
// differ: with a governor that never acts, turns go round.
func TestNobodyStarves(t *testing.T) {
	for _, depth := range []int{1, 2} {
		b := newBox(1, depth, 4, affine(30*time.Millisecond, 5*time.Millisecond)) // 80 a second
		for i := range 40 {
			b.add([]float64{5, 15, 30, 60}[i%4], 0, 1) // 1100 a second
		}
		b.tick = b.start.Add(time.Hour) // no governor
		fps, _ := b.measure(60 * time.Second)
		for i, f := range fps {
			within(t, "turns", f, 2, 0.25) // who sends rarely waits for a frame before he waits for a turn
			if f == 0 {
				t.Errorf("camera %d starved", i)
			}
		}
	}
}

// Frames are done by their deadline as long as the engine can: the frame that waits
// longest goes first.
func TestEarliestDeadlineFirst(t *testing.T) {
	var board schedule.Board[string]
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lanes := map[string]*schedule.Lane[string]{}
	offer := func(name string, due time.Duration) bool {
		l, ok := lanes[name]
		if !ok {
			l = &schedule.Lane[string]{Of: name}
			lanes[name] = l
		}
		ready, _ := board.Offer(l, schedule.Sent{Received: at, Decoded: at, Due: at.Add(due)})
		return ready
	}
	next := func() string {
		l := board.Next(at)
		if l == nil {
			return ""
		}
		return l.Of
	}
	due := func() time.Time {
		_, due := board.Pressing()
		return due
	}
	for i, ready := range []bool{offer("c", 30), offer("a", 10), offer("b", 20), offer("d", 5)} {
		if !ready {
			t.Errorf("offer %d is not ready", i)
		}
	}
	if offer("d", 90) {
		t.Error("a lane that waits is ready once more")
	}
	if got := next(); got != "d" || !due().Equal(at.Add(10)) {
		t.Errorf("first %q, then due at %v: a newer frame cost the lane its turn", got, due())
	}
	if offer("d", 1) {
		t.Error("a lane is served twice at once")
	}
	board.Remove(lanes["b"])
	for _, want := range []string{"a", "c", ""} {
		if got := next(); got != want {
			t.Errorf("next is %q, want %q", got, want)
		}
	}
	if !board.Done(lanes["d"]) || next() != "d" {
		t.Error("the frame that came meanwhile is not served")
	}
	if offer("b", 1) || board.Done(lanes["a"]) {
		t.Error("a lane without a frame, or one that is gone, is ready")
	}
}

// A batch is closed when it is full, when the one in flight is about to end, or at
// the deadline, but not for a deadline that is lost.
func TestWhenABatchIsClosed(t *testing.T) {
	times := schedule.NewTimes(16)
	for range 50 {
		times.Observe(4, 20*time.Millisecond)
		times.Observe(16, 40*time.Millisecond)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ms := func(n int) time.Time { return at.Add(time.Duration(n) * time.Millisecond) }
	cases := []struct {
		name     string
		flying   []int
		now, due int // ms
		waiting  int
		want     time.Duration
	}{
		{"idle", nil, 0, 80, 1, 0},
		{"in flight", []int{4}, 0, 1000, 1, 19 * time.Millisecond},
		{"in flight, nobody waits", []int{4}, 5, -1000, 0, 14 * time.Millisecond},
		{"about to end", []int{4}, 19, 1000, 3, 0},
		{"later than predicted", []int{4}, 50, 1000, 3, 0},
		{"full", []int{4}, 0, 1000, 16, 0},
		{"the deadline comes first", []int{16}, 0, 30, 4, 9 * time.Millisecond},
		{"the deadline is lost", []int{16}, 0, 15, 4, 39 * time.Millisecond},
		{"behind two", []int{4, 4}, 0, 1000, 2, 39 * time.Millisecond},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := schedule.NewFlight(times)
			for _, n := range c.flying {
				f.Begun(n, at, at, false)
			}
			if got := f.Wait(ms(c.now), c.waiting, 16, ms(c.due)); got != c.want {
				t.Errorf("wait %v, want %v", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		times *schedule.Times
		held  bool
	}{"nothing is known": {schedule.NewTimes(16), false}, "somebody must wait for it first": {times, true}} {
		t.Run(name, func(t *testing.T) {
			f := schedule.NewFlight(c.times)
			f.Begun(4, at, at, c.held)
			if got := f.Wait(at, 1, 16, ms(80)); got != 0 {
				t.Errorf("wait %v", got)
			}
		})
	}
}

// What the engine says of itself counts, not when somebody came to look.
func TestTheEnginesOwnWord(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ms := func(n int) time.Time { return at.Add(time.Duration(n) * time.Millisecond) }
	times := schedule.NewTimes(16)
	for range 50 {
		times.Observe(4, 100*time.Millisecond)
	}
	f := schedule.NewFlight(times)
	for i := range 60 {
		from := ms(100 * i)
		f.Begun(4, from, from, false)
		f.Begun(4, from, from, false)
		for _, end := range []int{90, 99} {
			if took := f.Finished(ms(100*i+end), false, 8*time.Millisecond); took != 8*time.Millisecond {
				t.Fatalf("took %v", took)
			}
		}
	}
	if got := times.Of(4); got > 9*time.Millisecond {
		t.Errorf("a batch is taken for %v", got)
	}
	f.Begun(4, ms(6000), ms(6000), false)
	f.Begun(4, ms(6000), ms(6000), false)
	f.Finished(ms(6050), false, 8*time.Millisecond) // at 6008, in truth
	if got := f.Wait(ms(6010), 0, 16, time.Time{}); got < 4*time.Millisecond || got > 6*time.Millisecond {
		t.Errorf("the second one ends at 6016, and is waited for %v from 6010 on", got)
	}
}

// A slow-down of the engine is followed, and so is its end.
func TestTheEngineSlowsDown(t *testing.T) {
	b := newBox(1, 2, 16, affine(5*time.Millisecond, time.Millisecond))
	for range 12 {
		b.add(25, 0, 1) // less than half of what it can
	}
	b.run(10 * time.Second)
	fast := b.times.Of(8)
	b.slow = 1.6
	b.run(5 * time.Second)
	fps, _ := b.measure(20 * time.Second)
	for _, f := range fps {
		within(t, "rate while slow", f, 25, 0.05)
	}
	b.slow = 1
	b.run(10 * time.Second)
	within(t, "time of a batch afterwards", b.times.Of(8).Seconds(), fast.Seconds(), 0.1)
}

// Where cameras give more than is taken of them, pictures are taken while the engine is
// free: they hardly wait at half of the load, though no camera knows of the others.
func TestPicturesMeetAFreeEngine(t *testing.T) {
	const took = 40 * time.Millisecond
	for seed := range uint64(4) {
		b := newBox(2, 1, 1, func(int) time.Duration { return took }) // 50 a second
		b.random = rand.New(rand.NewPCG(seed, seed))
		for range 24 {
			b.add(10, 1.2, 1)
		}
		b.run(10 * time.Second)
		fps, p95 := b.measure(60 * time.Second)
		for _, f := range fps {
			within(t, "rate", f, 1.2, 0.03)
		}
		if p95 > took*3/2 {
			t.Errorf("p95 %v, a run takes %v", p95, took)
		}
	}
}

// A camera whose pictures come late and in a burst loses them to its own newer ones, and
// to no engine that is slow. One that waits for an engine loses them to that.
func TestTurn(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const fps = 25
	cases := []struct {
		name        string
		apart       time.Duration
		n           int
		due, missed int
	}{
		{"a burst", time.Millisecond, 30, 1, 0},
		{"a burst that outlasts a picture", 2 * time.Millisecond, 101, 7, 6},
		{"an engine that takes nothing", 40 * time.Millisecond, 11, 11, 10},
		{"and a camera that jitters", 31 * time.Millisecond, 11, 11, 10},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var turn schedule.Turn
			due, missed := 0, 0
			for i := range c.n {
				d, m := turn.Offered(at.Add(time.Duration(i)*c.apart), i > 0, fps)
				if d {
					due++
				}
				if m {
					missed++
				}
			}
			if due != c.due || missed != c.missed {
				t.Errorf("%d due and %d missed, want %d and %d", due, missed, c.due, c.missed)
			}
		})
	}
	var turn schedule.Turn
	turn.Offered(at, false, 0)
	if _, missed := turn.Offered(at.Add(20*time.Millisecond), true, 0); missed {
		t.Error("a picture is missed after 20 ms, of a stream of which nothing is known")
	}
	if _, missed := turn.Offered(at.Add(40*time.Millisecond), true, 0); !missed {
		t.Error("no picture is missed after 40 ms, of a stream of which nothing is known")
	}
}
