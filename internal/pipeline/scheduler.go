package pipeline

import (
	"sync"
	"time"

	"edgecam/framepool"
	"edgecam/internal/pipeline/schedule"
)

// lane is one camera's place in the scheduler: the newest frame that waits to
// be inferred, and how many older ones are in an engine right now.
type lane struct {
	cam *camera
	box *framepool.Mailbox

	// guarded by scheduler.mu
	turn    schedule.Turn[*lane] // queued while the lane waits and may be served
	waiting bool                 // box holds a frame
	due     time.Time            // deadline of the turn that is waited for; kept when a newer frame replaces the old
	held    int                  // frames of this lane that workers hold
	closed  bool
}

// job is a frame that a worker is answerable for.
type job struct {
	lane  *lane
	frame *framepool.Frame
}

// scheduler hands the newest frame of each waiting camera to the workers of one
// engine, the earliest deadline first. Nothing queues behind it: a camera that is
// not served in time loses its older frame to the newer one, and keeps its turn.
type scheduler struct {
	now    func() time.Time
	budget time.Duration // a frame should be done this long after it was received

	mu      sync.Mutex
	idle    *sync.Cond // workers without a batch wait here for the first frame
	collect *sync.Cond // those with one in flight, for more frames or the time to begin
	queue   schedule.Queue[*lane]
	perLane int // frames of one camera that may be held at once
	most    int // frames that the batch that is collected has room for
	stopped bool
}

func newScheduler(now func() time.Time, budget time.Duration) *scheduler {
	s := &scheduler{now: now, budget: budget, perLane: 1}
	s.idle, s.collect = sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	return s
}

// ordered allows n frames of one camera to be held at once, for a worker that is
// the only one and ends its batches in order: results then come in order, and a
// camera's tracker needs no lock.
func (s *scheduler) ordered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perLane = n
}

// add makes a lane for a camera.
func (s *scheduler) add(cam *camera) *lane {
	l := &lane{cam: cam, box: framepool.NewMailbox()}
	l.turn.Of = l
	return l
}

// remove takes a lane out and gives its waiting frame back. A frame that a
// worker holds is that worker's to finish.
func (s *scheduler) remove(l *lane) {
	s.mu.Lock()
	l.closed, l.waiting = true, false
	s.queue.Remove(&l.turn)
	s.mu.Unlock()
	l.box.Close()
}

// offer consumes f and reports whether an older frame had to give way.
func (s *scheduler) offer(l *lane, f *framepool.Frame) (replaced bool) {
	due := f.Meta().Received.Add(s.budget)
	replaced = l.box.Put(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed {
		return replaced
	}
	if !l.waiting {
		l.waiting, l.due = true, due
	}
	s.readyLocked(l)
	return replaced
}

// readyLocked queues a lane that waits and may be served, and wakes who cares: a
// worker that collects a batch only when that changes when it is begun.
func (s *scheduler) readyLocked(l *lane) {
	if !l.waiting || l.held >= s.perLane || l.turn.Waiting() {
		return
	}
	s.queue.Push(&l.turn, l.due)
	s.idle.Signal()
	if n := s.queue.Len(); n == 1 || n >= s.most {
		s.collect.Broadcast()
	}
}

// take fills dst with frames that are to be begun now, and waits for them: without
// a batch in flight for the first one, otherwise as long as the one in flight
// allows. It gives 0 when that has to be looked after, and false once the scheduler
// has stopped.
func (s *scheduler) take(dst []job, f *schedule.Flight, a *alarm) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.stopped {
		busy := f.Depth() > 0
		wait := time.Duration(0)
		if busy && s.queue.Len() < len(dst) {
			wait = s.waitLocked(f)
		}
		if wait <= 0 {
			if n := s.fillLocked(dst); n > 0 || busy {
				return n, true
			}
			s.idle.Wait()
			continue
		}
		a.set(s, wait)
		s.most = len(dst)
		s.collect.Wait()
	}
	return 0, false
}

// waitLocked is how long the batch that is collected may stay open.
func (s *scheduler) waitLocked(f *schedule.Flight) time.Duration {
	now := s.now()
	if first := s.queue.First(); first != nil {
		return f.CloseAt(now, s.queue.Len(), first.Due()).Sub(now)
	}
	return f.NextAt().Sub(now)
}

func (s *scheduler) fillLocked(dst []job) (n int) {
	for n < len(dst) {
		first := s.queue.First()
		if first == nil {
			break
		}
		l := first.Of
		s.queue.Remove(first)
		l.waiting = false
		f, ok := l.box.TryTake()
		if !ok {
			continue
		}
		l.held++
		dst[n] = job{lane: l, frame: f}
		n++
	}
	return n
}

// done ends a job's claim on its lane; the frame has been released by then.
func (s *scheduler) done(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.held--
	if !l.closed {
		s.readyLocked(l)
	}
}

// stop wakes every worker for the last time.
func (s *scheduler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.idle.Broadcast()
	s.collect.Broadcast()
}

// alarm wakes the worker that collects a batch when it is time to begin it. It
// belongs to the worker.
type alarm struct{ timer *time.Timer }

func (a *alarm) set(s *scheduler, d time.Duration) {
	if a.timer != nil {
		a.timer.Reset(d)
		return
	}
	a.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.collect.Broadcast()
	})
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
