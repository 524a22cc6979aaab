package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/track"
	"edgecam/internal/event"
	"edgecam/internal/pipeline/schedule"
)

// timedRunner is an engine that takes its time and nothing else. It queues as a
// card does: batches end one after another.
type timedRunner struct {
	deep int
	held bool // a batch is only worked on in finish
	cost func(n int) time.Duration
	fail func(batch int) error // by number, from 1

	free  time.Time
	ends  map[*batch]time.Time
	took  []time.Duration // of the batches that were worked on and are not finished
	sizes []int
	idle  time.Duration // between batches, since the first
}

func (r *timedRunner) depth() int { return r.deep }

func (r *timedRunner) begin(b *batch, threshold func(int) float32) (held bool, err error) {
	threshold(0)
	if r.ends == nil {
		r.ends = map[*batch]time.Time{}
	}
	if len(r.ends) == r.deep {
		return false, errors.New("one batch too many")
	}
	r.sizes = append(r.sizes, len(b.jobs))
	r.ends[b] = time.Time{}
	if !r.held {
		r.ends[b] = r.work(len(b.jobs))
	}
	return r.held, nil
}

// work gives when a batch of n ends that the engine comes to next.
func (r *timedRunner) work(n int) time.Time {
	now := time.Now()
	if len(r.sizes) > 1 && now.After(r.free) {
		r.idle += now.Sub(r.free)
	}
	if r.free.Before(now) {
		r.free = now
	}
	r.took = append(r.took, r.cost(n))
	r.free = r.free.Add(r.took[len(r.took)-1])
	return r.free
}

func (r *timedRunner) finish(b *batch) (took time.Duration, err error) {
	if r.held {
		r.ends[b] = r.work(len(b.jobs))
	}
	time.Sleep(time.Until(r.ends[b])) // the bubble's time
	delete(r.ends, b)
	took = r.took[0]
	r.took = r.took[1:]
	if r.fail != nil {
		return took, r.fail(len(r.sizes))
	}
	return took, nil
}

func (r *timedRunner) close() {}

// line is a station of a timed engine with cameras.
type line struct {
	*station

	runners []*timedRunner
	cameras []*camera
	jitter  bool // pictures come half an interval early or late
	choice  schedule.Choice
	broker  *event.Broker
}

func newLine(workers, most, cameras int, timed func() *timedRunner) *line {
	now := time.Now
	logger := slog.New(slog.DiscardHandler)
	p := &Pipeline{now: now, start: now(), broker: event.NewBroker(), logger: logger}
	l := &line{broker: p.broker, station: &station{
		now: now, start: p.start, logger: logger, most: most, sched: newScheduler(now, 80*time.Millisecond),
		health: newHealth(logger, now), stats: newEngineStats(), times: schedule.NewTimes(most), done: make(chan struct{}),
	}}
	var mu sync.Mutex
	l.open = func(context.Context) (runner, error) {
		mu.Lock()
		defer mu.Unlock()
		r := timed()
		l.runners = append(l.runners, r)
		return r, nil
	}
	l.governor.init(now())
	for range workers {
		l.workers = append(l.workers, l.newWorker(workers == 1))
	}
	for i := range cameras {
		c := &camera{id: fmt.Sprint("cam", i), p: p, logger: logger, inferred: newRate(now()), ages: newAges(), activity: newActivity(now())}
		c.raw, c.annotated = newFeed(c.id, false, p, logger), newFeed(c.id, true, p, logger)
		a := &analysis{cam: c, st: l.station, labels: []string{"person"}, tracker: track.New(track.Options{}), thresholds: []float32{0.5}}
		a.join()
		c.at.Store(a)
		l.cameras = append(l.cameras, c)
	}
	return l
}

// work runs the station: without its governor where the line has its choice.
func (l *line) work(ctx context.Context) error {
	if l.choice.Young == 0 {
		return l.run(ctx, func() []*camera { return nil })
	}
	l.sched.choose(l.choice)
	var workers errgroup.Group
	for _, w := range l.workers {
		workers.Go(func() error { return w.run(ctx) })
	}
	return workers.Wait()
}

// play runs the line with cameras of fps for a time and gives what was published.
func (l *line) play(t *testing.T, fps int, d time.Duration) map[string][]*event.Detection {
	t.Helper()
	var running, sending sync.WaitGroup
	running.Go(func() {
		if err := l.work(t.Context()); err != nil {
			t.Error(err)
		}
	})
	sub := l.broker.Subscribe(nil)
	got := map[string][]*event.Detection{}
	running.Go(func() {
		for {
			found, err := sub.Next(context.Background())
			if err != nil {
				return
			}
			for _, d := range found {
				got[d.Camera] = append(got[d.Camera], d)
			}
		}
	})
	for i, c := range l.cameras {
		apart := func() time.Duration { return time.Second / time.Duration(fps) }
		if l.jitter {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			apart = func() time.Duration {
				return time.Duration((0.5 + random.Float64()) * float64(time.Second) / float64(fps))
			}
		}
		sending.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(fps*len(l.cameras)))
			for seq := uint64(1); seq <= uint64(float64(fps)*d.Seconds()); seq++ {
				c.emit(testFrame(c.id, seq))
				time.Sleep(apart())
			}
		})
	}
	sending.Wait()
	time.Sleep(time.Second)
	for _, c := range l.cameras {
		c.at.Load().leave()
	}
	l.stop()
	l.broker.Close()
	running.Wait()
	return got
}

// inOrder wants each camera's results in order, each once.
func inOrder(t *testing.T, got map[string][]*event.Detection) (n int) {
	t.Helper()
	for id, all := range got {
		for i, d := range all {
			if i > 0 && d.Seq <= all[i-1].Seq {
				t.Errorf("%s: %d after %d", id, d.Seq, all[i-1].Seq)
			}
		}
		n += len(all)
	}
	return n
}

// The worker of a card has the next batch begun when the one in flight ends; frames
// that come meanwhile are in it.
func TestWorkerKeepsTheCardAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := func(n int) time.Duration { return 10*time.Millisecond + time.Duration(n)*time.Millisecond }
		l := newLine(1, 16, 30, func() *timedRunner { return &timedRunner{deep: 2, cost: cost} })
		got := l.play(t, 20, 10*time.Second) // 600 a second of the 615 that it can do
		r := l.runners[0]
		if n := inOrder(t, got); n < 5900 {
			t.Errorf("%d of 6000 frames analysed", n)
		}
		if r.idle > 500*time.Millisecond {
			t.Errorf("the engine idled for %v of 10 s", r.idle)
		}
		if mean := float64(6000) / float64(len(r.sizes)); mean < 10 {
			t.Errorf("batches of %.1f", mean)
		}
	})
}

// agesFrom gives the ages in ms from a picture of each camera on, the youngest first.
func agesFrom(got map[string][]*event.Detection, seq uint64) (ages []float64) {
	for _, all := range got {
		for _, d := range all {
			if d.Seq >= seq {
				ages = append(ages, d.AgeMS)
			}
		}
	}
	slices.Sort(ages)
	return ages
}

// steps is an engine that runs any number of pictures as the next larger of its batches.
func steps(n int) time.Duration {
	for _, b := range []struct {
		n    int
		took time.Duration
	}{{1, 3900}, {2, 5400}, {4, 7950}, {8, 13700}} { // RT-DETR on a card, in µs
		if n <= b.n {
			return b.took * time.Microsecond
		}
	}
	return 25600 * time.Microsecond
}

// Near what the engine can do full batches keep pictures young, and a batch that only
// runs when somebody waits for it is not closed a whole run before.
func TestWorkerFillsItsBatches(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint("held ", held), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(1, 16, 16, func() *timedRunner { return &timedRunner{deep: 2, held: held, cost: steps} })
				l.jitter = true
				got := l.play(t, 30, 8*time.Second)
				inOrder(t, got)
				ages := agesFrom(got, 60)
				if n := len(ages); n < 16*179 { // of 181 each
					t.Errorf("%d frames analysed", n)
				}
				if p95 := ages[len(ages)*95/100]; p95 > 26 {
					t.Errorf("age p95 %.1f ms", p95)
				}
			})
		})
	}
}

// Under overload frames are as young as those that meet a free engine, on a card and on a
// processor, and every camera has what it is left.
func TestWorkerChoosesYoungFrames(t *testing.T) {
	const fps, seconds = 30, 12
	cases := map[string]struct {
		workers, most, depth, cameras int
		limit                         float64
		choice                        schedule.Choice
		cost                          func(int) time.Duration
		p95                           float64
	}{
		"card":             {1, 16, 2, 26, 9, schedule.Choice{Young: 5 * time.Millisecond, Most: 2, Width: 1}, steps, 13},
		"two workers":      {2, 1, 1, 10, 7, schedule.Choice{Young: 6 * time.Millisecond, Most: 1, Width: 2}, oneRun, 28},
		"one of these two": {2, 1, 1, 10, 4, schedule.Choice{Young: 6 * time.Millisecond, Most: 1, Width: 1}, oneRun, 28},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(c.workers, c.most, c.cameras, func() *timedRunner { return &timedRunner{deep: c.depth, cost: c.cost} })
				l.choice = c.choice
				for i, cam := range l.cameras {
					cam.limit.set(c.limit, "overload")
					cam.pace = schedule.NewPace(0, schedule.Phase(i))
				}
				got := l.play(t, fps, seconds*time.Second)
				inOrder(t, got)
				for id, all := range got {
					if n, want := float64(len(all)), seconds*c.limit; n < 0.95*want-1 || n > 1.05*want+1 {
						t.Errorf("%s: %.0f analysed, want %.0f", id, n, want)
					}
				}
				if ages := agesFrom(got, fps); ages[len(ages)*95/100] > c.p95 {
					t.Errorf("age p95 %.1f ms", ages[len(ages)*95/100])
				}
				for _, r := range l.runners {
					if len(r.sizes) > 0 && slices.Max(r.sizes) > c.choice.Most {
						t.Errorf("batches of %d", slices.Max(r.sizes))
					}
				}
				// Frames that give way to others that are not due are no loss.
				lost := uint64(0)
				for _, cam := range l.cameras {
					lost += cam.drops.n[dropBusy].Load()
				}
				if due := l.load.due.Load(); lost > uint64(due)/50 || l.load.sent.Load() != fps*seconds*int64(c.cameras) {
					t.Errorf("%d of %d lost; %d sent", lost, due, l.load.sent.Load())
				}
			})
		})
	}
}

func oneRun(int) time.Duration { return 20 * time.Millisecond }

// An engine that was slow for a while is not waited for any longer than it takes now:
// whoever begins the next batch when this one is predicted to end finds it ended, and
// must not take that moment for its end.
func TestWorkerForgetsASlowEngine(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint("held ", held), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				cost := func(int) time.Duration {
					if time.Since(start) < 5*time.Second {
						return 60 * time.Millisecond
					}
					return 4 * time.Millisecond
				}
				l := newLine(1, 16, 8, func() *timedRunner { return &timedRunner{deep: 2, held: held, cost: cost} })
				got := l.play(t, 30, 12*time.Second)
				inOrder(t, got)
				ages := agesFrom(got, 8*30)
				if n := len(ages); n < 900 { // of 960
					t.Fatalf("%d frames analysed", n)
				}
				if p95 := ages[len(ages)*95/100]; p95 > 12 {
					t.Errorf("age p95 %.1f ms three seconds after the engine was at its speed again", p95)
				}
			})
		})
	}
}

// One camera on a card is served at once: nothing waits for a batch to fill.
func TestWorkerServesOneCameraAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 16, 1, func() *timedRunner {
			return &timedRunner{deep: 2, cost: func(int) time.Duration { return 10 * time.Millisecond }}
		})
		got := l.play(t, 25, 4*time.Second)
		if n := inOrder(t, got); n != 100 {
			t.Errorf("%d of 100 frames analysed", n)
		}
		for _, d := range got["cam0"] {
			if d.AgeMS > 10.5 {
				t.Errorf("frame %d was %v ms old", d.Seq, d.AgeMS)
			}
		}
	})
}

// A camera whose rate is more than the batches' gets a place in each: with two in
// flight it may have a frame in both.
func TestWorkerTakesACameraIntoBothBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 4, 1, func() *timedRunner {
			return &timedRunner{deep: 2, cost: func(int) time.Duration { return 20 * time.Millisecond }}
		})
		if n := inOrder(t, l.play(t, 50, 4*time.Second)); n < 190 {
			t.Errorf("%d of 200 frames analysed", n)
		}
	})
}

// Several workers share the cameras, and none works on a camera that another has in
// hand.
func TestWorkersShareCameras(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(3, 1, 9, func() *timedRunner {
			return &timedRunner{deep: 1, cost: func(int) time.Duration { return 30 * time.Millisecond }}
		})
		got := l.play(t, 10, 10*time.Second) // 90 of the 100 that they can do
		inOrder(t, got)
		counts := []int{}
		for _, c := range l.cameras {
			counts = append(counts, len(got[c.id]))
		}
		if slices.Min(counts) < 90 {
			t.Errorf("analysed of 100 each: %v", counts)
		}
	})
}

// A batch that fails gives nothing, and the next ones go on.
func TestWorkerGoesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 4, 2, func() *timedRunner {
			return &timedRunner{
				deep: 2, cost: func(int) time.Duration { return 5 * time.Millisecond },
				fail: func(n int) error {
					if n%5 == 0 {
						return &infer.UnhealthyError{Output: "scores"}
					}
					return nil
				},
			}
		})
		n := inOrder(t, l.play(t, 20, 5*time.Second))
		failed := l.cameras[0].drops.n[dropUnhealthy].Load() + l.cameras[1].drops.n[dropUnhealthy].Load()
		if n+int(failed) != 200 || failed < 20 {
			t.Errorf("%d analysed and %d failed of 200", n, failed)
		}
	})
}

// The load that the governor is told of is what was done.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 16, 4, func() *timedRunner {
			return &timedRunner{deep: 2, cost: func(int) time.Duration { return 10 * time.Millisecond }}
		})
		l.play(t, 10, 10*time.Second) // and a second of silence; govern has taken it in all the while
		state, _ := l.governor.state()
		if state.Reducing {
			t.Errorf("state %+v", state)
		}
		var sum load
		for range 10 {
			sum.ran(2, 10*time.Millisecond)
			now := time.Now()
			sum.published(&framepool.Meta{Received: now.Add(-30 * time.Millisecond), Decoded: now}, now)
		}
		sum.due.Add(25)
		sum.lost.Add(5)
		w, busy := sum.take(time.Second, 4*time.Millisecond, 2)
		if w.Due != 25 || w.Lost != 5 || w.Analysed != 20 || w.Ages != 10 || w.Use < 0.039 || w.Use > 0.041 || busy != 0.05 {
			t.Errorf("window %+v, busy %v", w, busy)
		}
		if again, busy := sum.take(time.Second, time.Millisecond, 1); again.Due+again.Analysed+again.Ages != 0 || busy != 0 {
			t.Errorf("window %+v afterwards", again)
		}
	})
}

// Pictures that a decoder gives in a burst give way to each other, and the engine missed
// none; those that come at their time it did.
func TestLoadOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(1, 1, 1, nil)
		c, seq := l.cameras[0], uint64(0)
		emit := func(n int, apart time.Duration) (due, lost int64) {
			for range n {
				time.Sleep(apart)
				seq++
				c.emit(testFrame(c.id, seq))
			}
			return l.load.due.Swap(0), l.load.lost.Swap(0)
		}
		if due, lost := emit(20, time.Millisecond); due != 1 || lost != 0 {
			t.Errorf("a burst: %d due, %d lost", due, lost)
		}
		if due, lost := emit(10, time.Second/30); due != 10 || lost != 10 {
			t.Errorf("an engine that takes nothing: %d due, %d lost", due, lost)
		}
		if n := c.drops.n[dropBusy].Load(); n != 29 {
			t.Errorf("%d gave way, want 29", n)
		}
		l.sched.remove(c.lane())
	})
}

// BenchmarkScheduler is what a frame costs the scheduler when 300 cameras send as
// fast as they are served.
func BenchmarkScheduler(b *testing.B) {
	s := newScheduler(time.Now, 80*time.Millisecond)
	s.ordered(2)
	flight, wake := schedule.NewFlight(schedule.NewTimes(64)), alarm{}
	lanes := make([]*lane, 300)
	frames := make([]*framepool.Frame, len(lanes))
	for i := range lanes {
		lanes[i] = s.add(&analysis{cam: &camera{}})
		frames[i] = testFrame("cam", 1)
		s.offer(lanes[i], frames[i].Retain(), rhythm{})
	}
	jobs := make([]job, 64)
	b.ReportAllocs()
	for done := 0; done < b.N; {
		n, _ := s.take(jobs, flight, &wake)
		for _, j := range jobs[:n] {
			s.done(j.lane)
			s.offer(j.lane, j.frame, rhythm{}) // the next frame, without the cost of making one
		}
		done += n
	}
	b.StopTimer()
	for i, l := range lanes {
		s.remove(l)
		frames[i].Release()
	}
}

func TestActivity(t *testing.T) {
	start := time.Now()
	plane := make([]byte, 64*36)
	frame := func(at time.Duration) *framepool.Frame {
		m := framepool.Meta{Format: framepool.Gray8, Width: 64, Height: 36, Stride: [3]int{64}, Received: start.Add(at)}
		return framepool.NewHeapFrame(m, [][]byte{slices.Clone(plane)})
	}
	a := newActivity(start)
	note := func(at time.Duration, found bool) {
		f := frame(at)
		a.note(f, found)
		f.Release()
	}
	for at := time.Duration(0); at <= 10*time.Second; at += 100 * time.Millisecond {
		for i := range plane {
			plane[i] = byte(100 + (i+int(at/time.Millisecond))%7) // noise
		}
		note(at, false)
		if want := at > idleAfter; a.idle() != want {
			t.Fatalf("a scene of noise alone after %v: idle %v", at, !want)
		}
	}
	for y := 10; y < 20; y++ { // somebody comes
		for x := 20; x < 30; x++ {
			plane[64*y+x] = 200
		}
	}
	for at := 11; at <= 18; at++ {
		note(time.Duration(at)*time.Second, false)
		if want := at > 16; a.idle() != want {
			t.Errorf("motion at 11 s, now it is %d s: idle %v", at, !want)
		}
	}
	for at := 20; at < 80; at += 20 { // looked at once in 20 s
		note(time.Duration(at)*time.Second, true)
		if a.idle() {
			t.Errorf("objects are seen at %d s", at)
		}
	}
	for at, want := range []bool{false, false, true} {
		if note(time.Duration(80+20*at)*time.Second, false); a.idle() != want {
			t.Errorf("look %d at a scene without objects: idle %v", at+1, !want)
		}
	}
	wide := framepool.NewHeapFrame(framepool.Meta{Format: framepool.Gray10, Width: 64, Height: 36, Stride: [3]int{128}, Received: start.Add(150 * time.Second)}, [][]byte{make([]byte, 128*36)})
	a.note(wide, false) // 10 bits are read too
	wide.Release()
	if v := sample([]byte{0, 0, 0x54, 0x03}, 1, 2, 2); v != 0xd5 {
		t.Errorf("sample %#x", v)
	}
}

// A stream of ten pictures a second is one, also while, and shortly after, most of
// them are left out.
func TestSparedRate(t *testing.T) {
	now := time.Now()
	var s spared
	for i, c := range []struct {
		leaving            bool
		decoded, all, want float64
	}{{false, 9, 10, 9}, {true, 9, 10, 10}, {true, 0.5, 10, 10}, {false, 0.5, 10, 10}, {false, 2, 10, 10}, {false, 11, 10, 11}} {
		now = now.Add(time.Second)
		if got := s.fps(now, c.leaving, c.decoded, c.all); got != c.want {
			t.Errorf("step %d: %v, want %v", i, got, c.want)
		}
	}
	if got := s.fps(now.Add(sparedFor), false, 4, 10); got != 4 {
		t.Errorf("long after: %v", got)
	}
}

func TestLimit(t *testing.T) {
	var l limit
	for _, c := range []struct{ limit, asked, want float64 }{{0, 10, 10}, {0, 0, 0}, {3, 10, 3}, {3, 0, 3}, {12, 10, 10}} {
		l.set(c.limit, "too much")
		if got := l.of(c.asked); got != c.want {
			t.Errorf("limit %v of %v asked: %v, want %v", c.limit, c.asked, got, c.want)
		}
		if limited := l.reason() != ""; limited != (c.limit > 0) {
			t.Errorf("limit %v: reason %q", c.limit, l.reason())
		}
	}
}
