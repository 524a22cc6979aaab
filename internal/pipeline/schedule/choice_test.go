package schedule_test

import (
	"testing"
	"time"

	"edgecam/internal/pipeline/schedule"
)

// An engine that is asked for too much runs batches that are as small as they may be, as
// few at once as suffice, and of frames young enough to be that many.
func TestChoice(t *testing.T) {
	card := schedule.NewTimes(16)
	for n, took := range map[int]int{1: 3900, 2: 5400, 4: 7950, 8: 13700, 16: 25600} {
		card.Observe(n, time.Duration(took)*time.Microsecond)
	}
	cores := schedule.NewTimes(1)
	cores.Observe(1, 20*time.Millisecond)
	cases := []struct {
		name          string
		times         *schedule.Times
		workers, sent int
		allowed       float64
		want          schedule.Choice
	}{
		{"one by one", card, 1, 780, 190, schedule.Choice{Young: 2564 * time.Microsecond, Most: 1, Width: 1}},
		{"by two", card, 1, 780, 231, schedule.Choice{Young: 5128 * time.Microsecond, Most: 2, Width: 1}},
		{"by four", card, 1, 780, 370, schedule.Choice{Young: 10256 * time.Microsecond, Most: 4, Width: 1}},
		{"more than it can do", card, 1, 2000, 900, schedule.Choice{Young: 16 * time.Millisecond, Most: 16, Width: 1}},
		{"many cameras", card, 1, 20000, 190, schedule.Choice{Young: time.Millisecond, Most: 1, Width: 1}},
		{"one worker suffices", cores, 3, 300, 35, schedule.Choice{Young: 4 * time.Millisecond, Most: 1, Width: 1}},
		{"and two", cores, 3, 200, 50, schedule.Choice{Young: 5 * time.Millisecond, Most: 1, Width: 2}},
		{"no more than there are", cores, 1, 300, 50, schedule.Choice{Young: 4 * time.Millisecond, Most: 1, Width: 1}},
		{"nothing known", schedule.NewTimes(1), 2, 100, 30, schedule.Choice{Young: 10 * time.Millisecond, Most: 1, Width: 1}},
		{"not enough to wait for on cores", cores, 2, 100, 40, schedule.Choice{}},
		{"hardly more than are analysed", cores, 2, 60, 50, schedule.Choice{}},
		{"no overload", cores, 2, 300, 0, schedule.Choice{}},
		{"nothing sent", cores, 2, 0, 40, schedule.Choice{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := schedule.GovernorState{Reducing: c.allowed > 0, Allowed: c.allowed}
			got := c.times.Choice(s, schedule.Window{Length: 2 * time.Second, Sent: 2 * c.sent, Apart: c.times == card}, c.workers)
			if got.Young = got.Young.Truncate(time.Microsecond); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestLeaveCores(t *testing.T) {
	for _, c := range []struct{ workers, processors, want int }{{1, 1, 1}, {2, 2, 1}, {4, 4, 3}, {8, 8, 6}, {16, 16, 12}, {2, 64, 2}, {48, 64, 48}, {4, 1, 1}} {
		if got := schedule.LeaveCores(c.workers, c.processors); got != c.want {
			t.Errorf("%d workers on %d processors: %d, want %d", c.workers, c.processors, got, c.want)
		}
	}
}

// chooser is a board that chooses, of frames that leave their decoders after 2 ms, and a
// time in ms.
type chooser struct {
	schedule.Board[string]

	start time.Time
	lanes map[string]*schedule.Lane[string]
}

func newChooser() *chooser {
	c := &chooser{start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), lanes: map[string]*schedule.Lane[string]{}}
	for _, name := range []string{"a", "b", "c"} {
		c.lanes[name] = &schedule.Lane[string]{Of: name}
	}
	c.Choose(schedule.Choice{Young: 5 * time.Millisecond})
	return c
}

func (c *chooser) at(ms int) time.Time { return c.start.Add(time.Duration(ms) * time.Millisecond) }

// sent is a frame that is received at a time, of a camera that sends one every 40 ms, of which two
// of five are due.
func (c *chooser) sent(ms int) schedule.Sent {
	return schedule.Sent{Received: c.at(ms), Decoded: c.at(ms + 2), Due: c.at(ms + 80), Apart: 40 * time.Millisecond, Rate: 10}
}

// due offers a frame that is due, other one that is not.
func (c *chooser) due(name string, ms int) (owed bool) {
	_, owed = c.Offer(c.lanes[name], c.sent(ms))
	return owed
}

func (c *chooser) other(name string, ms int) bool { return c.Newer(c.lanes[name], c.sent(ms)) }

// next wants these to be taken at a time, and no other; all are done at once.
func (c *chooser) next(t *testing.T, ms int, want ...string) {
	t.Helper()
	if n, _ := c.Ready(c.at(ms)); n != len(want) {
		t.Errorf("at %d ms %d may be taken, want %q", ms, n, want)
	}
	for _, name := range append(want, "") {
		l := c.Next(c.at(ms))
		if l == nil {
			l = &schedule.Lane[string]{}
		} else {
			defer c.Done(l)
		}
		if l.Of != name {
			t.Fatalf("at %d ms %q is taken, want %q", ms, l.Of, name)
		}
	}
}

// A frame that grows old gives way to a newer one of its camera, which has its turn.
func TestOldFramesWaitForNewerOnes(t *testing.T) {
	c := newChooser()
	if c.other("a", 0) {
		t.Error("a frame is taken that is not due, and no turn is waited for")
	}
	c.due("a", 10)
	c.due("b", 20)
	c.next(t, 23, "b") // a's is 13 ms old
	if n, due := c.Pressing(); n != 0 || !due.IsZero() {
		t.Errorf("%d frames have a batch begun before the engine is free", n)
	}
	if !c.other("a", 50) {
		t.Error("a newer frame is not taken")
	}
	c.due("c", 49)
	c.next(t, 53, "a", "c") // by deadline, and a's is that of its turn
	c.next(t, 54)
}

// Nobody waits for a camera that sends no more.
func TestASilentCameraIsNotWaitedFor(t *testing.T) {
	c := newChooser()
	c.due("a", 0)
	for _, ms := range []int{10, 50} {
		if _, later := c.Ready(c.at(ms)); !later.Equal(c.at(62)) { // 2 + 1.5 · 40
			t.Errorf("at %d ms it is to be taken from %v on", ms, later)
		}
		c.next(t, ms)
	}
	c.next(t, 62, "a")
	if _, later := c.Ready(c.at(62)); !later.IsZero() {
		t.Errorf("nothing waits until %v", later)
	}
	// One of which nothing is known, as a single frame, is not waited for at all.
	s := c.sent(100)
	s.Apart = 0
	c.Offer(c.lanes["b"], s)
	c.next(t, 130, "b")
}

// A camera all of whose pictures are due has none to spare, and one that sends few has not
// soon.
func TestACameraWithoutSparePicturesIsNotWaitedFor(t *testing.T) {
	for rate, apart := range map[float64]time.Duration{0: 40, 20: 40, 25: 40, 0.2: 1000} {
		c := newChooser()
		s := c.sent(0)
		s.Rate, s.Apart = rate, apart*time.Millisecond
		c.Offer(c.lanes["a"], s)
		c.next(t, 30, "a")
	}
}

// A turn does not go on for ever: the more newer pictures have come, the older a frame may
// be.
func TestATurnEnds(t *testing.T) {
	c := newChooser()
	c.due("a", 0)
	for tries := range 40 {
		if n, _ := c.Ready(c.at(40*tries + 30)); n > 0 {
			if tries != 24 { // 28 ms more than usual: 8 times as old as at first
				t.Errorf("it is taken after %d newer ones, want 24", tries)
			}
			return
		}
		c.other("a", 40*(tries+1))
	}
	t.Error("it is never taken")
}

// Turns that were missed while a frame waited are made up for with frames that are not due,
// two and no more.
func TestMissedTurnsAreOwed(t *testing.T) {
	c := newChooser()
	for i, want := range []bool{false, true, true, false} {
		if owed := c.due("a", 40*i); owed != want {
			t.Errorf("turn %d: owed %v", i, owed)
		}
	}
	c.next(t, 123, "a")
	for _, at := range []int{160, 200} {
		if !c.other("a", at) {
			t.Error("a turn that is owed is not taken up")
		}
		c.next(t, at+3, "a")
	}
	if c.other("a", 240) {
		t.Error("another one is")
	}
	c.due("a", 280)
	c.due("a", 320)
	c.Remove(c.lanes["a"])
	if c.other("a", 360) {
		t.Error("a lane that is gone takes a frame")
	}
}

// An engine that does what it is asked for takes what was due, whatever its age.
func TestNoChoiceWithoutOverload(t *testing.T) {
	c := newChooser()
	c.due("a", 0)
	c.next(t, 30)
	c.Choose(schedule.Choice{})
	if c.Choosing() || c.other("a", 40) || c.due("b", 10) || c.due("b", 20) {
		t.Error("it still chooses")
	}
	if n, due := c.Pressing(); n != 2 || !due.Equal(c.at(80)) {
		t.Errorf("%d frames press, the first by %v", n, due)
	}
	c.next(t, 60, "a", "b")
}

// A camera whose decoder is always late has frames as young as they get.
func TestALateDecoderIsUsual(t *testing.T) {
	c := newChooser()
	late := func(ms int) schedule.Sent {
		s := c.sent(ms)
		s.Decoded = s.Received.Add(300 * time.Millisecond)
		return s
	}
	l := c.lanes["a"]
	c.Offer(l, late(0))
	c.next(t, 303, "a")
	c.Offer(l, late(1000))
	c.next(t, 1304, "a")
}

// What held a decoder up at first is not usual for long, also where few frames are due.
func TestALateStartIsForgotten(t *testing.T) {
	c := newChooser()
	l := c.lanes["a"]
	s := c.sent(0)
	s.Decoded = s.Received.Add(300 * time.Millisecond)
	c.Offer(l, s)
	c.next(t, 303, "a")
	for i := range 40 {
		c.other("a", 400+40*i)
	}
	c.due("a", 2000)
	c.next(t, 2030) // 28 ms old, where 2 are usual
}

// Cameras that stop one after the other, an engine that takes long: nobody starves.
func TestNobodyStarvesOfAChoice(t *testing.T) {
	for name, r := range rehearsals() {
		t.Run(name, func(t *testing.T) {
			b := r.machine(1)
			for i := range r.loaded {
				b.add(r.fps, r.asked, []float64{1, 10}[i%2])
			}
			b.run(20 * time.Second)
			slow := b.add(0.5, 0, 10)
			b.slow = 1.5
			b.run(30 * time.Second)
			if !b.board.Choosing() {
				t.Fatalf("it does not choose: %+v", b.governor.State())
			}
			fps, _ := b.measure(80 * time.Second)
			sum, _ := b.totals(fps)
			for i, f := range fps[:r.loaded] { // 1 part or 10 for each two of them
				if share := sum / float64(r.loaded) * []float64{2, 20}[i%2] / 11; f < 0.7*share {
					t.Errorf("camera %d has %.2f pictures a second of %.2f", i, f, share)
				}
			}
			if slow.analysed < 36 {
				t.Errorf("%d of 40 pictures of a camera that sends few", slow.analysed)
			}
		})
	}
}

// Sizes that are not run for a while get slower and faster with those that are.
func TestSizesThatRestFollow(t *testing.T) {
	x := schedule.NewTimes(16)
	run := func(n int, took time.Duration) {
		for range 60 {
			x.Observe(n, took)
		}
	}
	run(16, 24*time.Millisecond)
	run(4, 12*time.Millisecond)
	run(4, 24*time.Millisecond)
	within(t, "time of a large batch of an engine that got slower", x.Of(16).Seconds(), 0.048, 0.02)
	run(4, 6*time.Millisecond)
	within(t, "time of a large batch of an engine that got faster", x.Of(16).Seconds(), 0.012, 0.02)
	run(16, 30*time.Millisecond)
	within(t, "time of a small batch", x.Of(4).Seconds(), 0.006, 0.02)
}
