package pipeline

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/framepool"
	"edgecam/internal/pipeline/schedule"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func testFrame(camera string, seq uint64) *framepool.Frame {
	return testFrameAt(camera, seq, time.Now())
}

func testFrameAt(camera string, seq uint64, received time.Time) *framepool.Frame {
	m := framepool.Meta{Camera: camera, Seq: seq, Received: received, Decoded: received, Format: framepool.Gray8, Width: 2, Height: 2, Stride: [3]int{2}}
	return framepool.NewHeapFrame(m, [][]byte{make([]byte, 4)})
}

// takeIdle takes as a worker that has nothing in flight.
func takeIdle(s *scheduler, dst []job) int {
	n, _ := s.take(dst, schedule.NewFlight(schedule.NewTimes(len(dst))), &alarm{})
	return n
}

func TestSchedulerServesTheLongestWaiting(t *testing.T) {
	c := newClock()
	s := newScheduler(c.now, time.Second)
	a, b := s.add(&analysis{cam: &camera{id: "a"}}), s.add(&analysis{cam: &camera{id: "b"}})
	s.offer(a, testFrameAt("a", 1, c.now()), rhythm{})
	c.advance(time.Millisecond)
	s.offer(b, testFrameAt("b", 1, c.now()), rhythm{})
	c.advance(time.Millisecond)
	// A newer frame takes the old one's place but not its turn.
	if !s.offer(a, testFrameAt("a", 2, c.now()), rhythm{}) {
		t.Error("the second frame of a replaced nothing")
	}
	jobs := make([]job, 1)
	for _, want := range []string{"a 2", "b 1"} {
		if n := takeIdle(s, jobs); n != 1 {
			t.Fatalf("took %d jobs, want 1", n)
		}
		m := jobs[0].frame.Meta()
		if got := fmt.Sprint(m.Camera, " ", m.Seq); got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		jobs[0].frame.Release()
		s.done(jobs[0].lane)
	}
	s.remove(a)
	s.remove(b)
}

func TestSchedulerKeepsOneFrameOfACameraInFlight(t *testing.T) {
	c := newClock()
	s := newScheduler(c.now, time.Second)
	a, b := s.add(&analysis{cam: &camera{id: "a"}}), s.add(&analysis{cam: &camera{id: "b"}})
	s.offer(a, testFrame("a", 1), rhythm{})
	jobs := make([]job, 4)
	if n := takeIdle(s, jobs); n != 1 {
		t.Fatalf("took %d jobs, want 1", n)
	}
	first := jobs[0]
	s.offer(a, testFrame("a", 2), rhythm{})
	s.offer(b, testFrame("b", 1), rhythm{})
	if n := takeIdle(s, jobs); n != 1 || jobs[0].lane != b {
		t.Fatalf("took %d jobs, want b alone: a has one in flight", n)
	}
	jobs[0].frame.Release()
	first.frame.Release()
	s.done(first.lane)
	if n := takeIdle(s, jobs); n != 1 || jobs[0].frame.Meta().Seq != 2 {
		t.Fatalf("took %d jobs, want the second frame of a", n)
	}
	jobs[0].frame.Release()
	s.remove(a)
	s.remove(b)
}

// A frame that is old gives way to one that is not due, and the worker waits for that, but
// not for a camera that sends no more.
func TestSchedulerWaitsForAYoungFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := newScheduler(time.Now, time.Second), time.Now()
		a := s.add(&analysis{cam: &camera{id: "a"}})
		r := rhythm{apart: 40 * time.Millisecond, due: 10}
		if f := testFrame("a", 1); s.newer(a, f, r) {
			t.Error("a frame is taken that is not due")
		} else {
			f.Release()
		}
		s.choose(schedule.Choice{Young: 5 * time.Millisecond, Most: 1, Width: 1})
		jobs, wake := make([]job, 4), alarm{}
		defer wake.stop()
		take := func(want uint64, at time.Duration) {
			t.Helper()
			n, _ := s.take(jobs, schedule.NewFlight(schedule.NewTimes(4)), &wake)
			if n != 1 {
				t.Fatalf("took %d jobs, want 1", n)
			}
			if seq, took := jobs[0].frame.Meta().Seq, time.Since(start); seq != want || took != at*time.Millisecond {
				t.Errorf("took frame %d after %v, want %d after %d ms", seq, took, want, at)
			}
			jobs[0].frame.Release()
			s.done(jobs[0].lane)
		}
		s.offer(a, testFrame("a", 2), r)
		time.Sleep(20 * time.Millisecond)
		time.AfterFunc(20*time.Millisecond, func() {
			if !s.newer(a, testFrame("a", 3), r) {
				t.Error("the newer frame is not taken")
			}
		})
		take(3, 40)
		s.offer(a, testFrame("a", 4), r)
		time.Sleep(20 * time.Millisecond)
		take(4, 100)
		s.offer(a, testFrame("a", 5), r)
		time.Sleep(20 * time.Millisecond)
		time.AfterFunc(time.Millisecond, func() { s.choose(schedule.Choice{}) })
		take(5, 121)
		s.remove(a)
	})
}

// A worker that hangs in its engine with the only place keeps no other from working.
func TestSchedulerGoesOnBesideAHungWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(time.Now, time.Second)
		s.choose(schedule.Choice{Young: 5 * time.Millisecond, Most: 1, Width: 1})
		hung, well := s.add(&analysis{cam: &camera{}}), s.add(&analysis{cam: &camera{}})
		jobs := make([]job, 1)
		s.offer(hung, testFrame("", 0), rhythm{})
		if n := takeIdle(s, jobs); n != 1 {
			t.Fatalf("%d taken", n)
		}
		stuck := jobs[0]
		var taken atomic.Int64
		go func() {
			for n := takeIdle(s, jobs); n > 0; n = takeIdle(s, jobs) {
				taken.Add(1)
				jobs[0].frame.Release()
				s.done(jobs[0].lane)
			}
		}()
		for i := range 10 {
			s.offer(well, testFrame("", uint64(i)), rhythm{})
			time.Sleep(500 * time.Millisecond)
		}
		if n := taken.Load(); n < 7 {
			t.Errorf("%d frames were taken beside a worker that hangs", n)
		}
		stuck.frame.Release()
		s.done(hung)
		s.stop()
		synctest.Wait()
		s.remove(hung)
		s.remove(well)
	})
}

// Of two workers one rests where one suffices.
func TestSchedulerLetsWorkersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(time.Now, time.Second)
		s.choose(schedule.Choice{Young: time.Second, Most: 1, Width: 1})
		took := make(chan job, 4)
		var working sync.WaitGroup
		for range 2 {
			working.Go(func() {
				jobs := make([]job, 1)
				for n := takeIdle(s, jobs); n > 0; n = takeIdle(s, jobs) {
					took <- jobs[0]
					time.Sleep(10 * time.Millisecond) // the engine
					jobs[0].frame.Release()
					s.done(jobs[0].lane)
				}
			})
		}
		lanes := []*lane{}
		for i := range 3 {
			l := s.add(&analysis{cam: &camera{}})
			lanes = append(lanes, l)
			s.offer(l, testFrame("", uint64(i)), rhythm{})
		}
		for _, want := range []int{1, 1, 1, 0} {
			synctest.Wait()
			if n := len(took); n != want {
				t.Errorf("%d frames are begun, want %d", n, want)
			}
			for range len(took) {
				<-took
			}
			time.Sleep(10 * time.Millisecond)
		}
		s.choose(schedule.Choice{})
		for _, l := range lanes {
			s.offer(l, testFrame("", 9), rhythm{})
		}
		synctest.Wait()
		if n := len(took); n != 2 {
			t.Errorf("%d frames are begun without a choice, want 2", n)
		}
		time.Sleep(time.Second)
		for _, l := range lanes {
			s.remove(l)
		}
		s.stop()
		working.Wait()
	})
}

func TestSchedulerGivesFramesOfARemovedCameraBack(t *testing.T) {
	s := newScheduler(time.Now, time.Second)
	a := s.add(&analysis{cam: &camera{id: "a"}})
	s.offer(a, testFrame("a", 1), rhythm{})
	s.remove(a)
	s.offer(a, testFrame("a", 2), rhythm{}) // a decoder's last picture may come late
	s.stop()
	if n := takeIdle(s, make([]job, 1)); n != 0 {
		t.Errorf("took %d jobs of a stopped scheduler", n)
	}
}

// Whatever the order of offers, choices, takes and removals: every frame is released
// once, a camera is never served twice at once, and its frames come in order.
func TestSchedulerUnderLoad(t *testing.T) {
	s := newScheduler(time.Now, time.Second)
	const cameras, frames, workers = 6, 400, 3
	type watch struct {
		mu   sync.Mutex
		busy bool
		last uint64
	}
	watches := map[*lane]*watch{}
	var lanes []*lane
	for i := range cameras {
		l := s.add(&analysis{cam: &camera{id: fmt.Sprint(i)}})
		lanes = append(lanes, l)
		watches[l] = &watch{}
	}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			jobs := make([]job, 2)
			for n := takeIdle(s, jobs); n > 0; n = takeIdle(s, jobs) {
				for _, j := range jobs[:n] {
					w := watches[j.lane]
					w.mu.Lock()
					seq := j.frame.Meta().Seq
					if w.busy || seq <= w.last {
						t.Errorf("frame %d of camera %s: busy %v, last %d", seq, j.lane.of.cam.id, w.busy, w.last)
					}
					w.busy, w.last = true, seq
					w.mu.Unlock()
					j.frame.Release()
					w.mu.Lock()
					w.busy = false
					w.mu.Unlock()
					s.done(j.lane)
				}
			}
		})
	}
	var offering sync.WaitGroup
	for i, l := range lanes {
		offering.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			removeAt := uint64(frames)
			if i%2 == 0 {
				removeAt = uint64(r.IntN(frames))
			}
			for seq := uint64(1); seq <= frames; seq++ {
				if seq == removeAt {
					s.remove(l)
				}
				switch f, r := testFrame(l.of.cam.id, seq), (rhythm{apart: time.Millisecond, due: 300}); {
				case seq%3 == 0:
					s.offer(l, f, r)
				case !s.newer(l, f, r):
					f.Release()
				}
				if seq%50 == 0 { // the governor's doing
					s.choose(schedule.Choice{Young: time.Duration(seq%100) * 10 * time.Microsecond, Most: 2, Width: 2})
				}
			}
			s.remove(l)
		})
	}
	offering.Wait()
	s.stop()
	working.Wait()
}
