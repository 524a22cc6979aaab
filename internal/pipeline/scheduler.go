package pipeline

import (
	"sync"
	"time"

	"edgecam/framepool"
)

// lane is one camera's place in the scheduler: the newest frame that waits to
// be inferred, and whether an older one is in an engine right now. A camera has
// at most one frame in flight, so its results come in order and its tracker
// needs no lock.
type lane struct {
	cam *camera
	box *framepool.Mailbox

	// guarded by scheduler.mu
	waiting      bool      // box holds a frame
	waitingSince time.Time // since when the camera waits for a turn; kept when a newer frame replaces the old
	busy         bool      // a worker holds a frame of this lane
	closed       bool
}

// job is a frame that a worker is answerable for.
type job struct {
	lane  *lane
	frame *framepool.Frame
}

// scheduler hands the newest frame of each waiting camera to the workers, the
// camera that has waited longest first. Nothing queues behind it: a camera that
// is not served in time loses its older frame to the newer one.
type scheduler struct {
	now func() time.Time

	mu      sync.Mutex
	wake    *sync.Cond
	lanes   map[*lane]struct{}
	stopped bool
}

func newScheduler(now func() time.Time) *scheduler {
	s := &scheduler{now: now, lanes: map[*lane]struct{}{}}
	s.wake = sync.NewCond(&s.mu)
	return s
}

// add makes a lane for a camera.
func (s *scheduler) add(cam *camera) *lane {
	l := &lane{cam: cam, box: framepool.NewMailbox()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes[l] = struct{}{}
	return l
}

// remove takes a lane out and gives its waiting frame back. A frame that a
// worker holds is that worker's to finish.
func (s *scheduler) remove(l *lane) {
	s.mu.Lock()
	delete(s.lanes, l)
	l.closed, l.waiting = true, false
	s.mu.Unlock()
	l.box.Close()
}

// offer consumes f and reports whether an older frame had to give way.
func (s *scheduler) offer(l *lane, f *framepool.Frame) (replaced bool) {
	replaced = l.box.Put(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed {
		return replaced
	}
	if !l.waiting {
		l.waiting, l.waitingSince = true, s.now()
	}
	if !l.busy {
		s.wake.Signal()
	}
	return replaced
}

// take waits for work and fills dst with the frames of up to len(dst) cameras.
// It returns 0 once the scheduler has stopped.
func (s *scheduler) take(dst []job) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.stopped {
			return 0
		}
		n := 0
		for n < len(dst) {
			l := s.longestWaitingLocked()
			if l == nil {
				break
			}
			l.waiting = false
			f, ok := l.box.TryTake()
			if !ok {
				continue
			}
			l.busy = true
			dst[n] = job{lane: l, frame: f}
			n++
		}
		if n > 0 {
			return n
		}
		s.wake.Wait()
	}
}

// done ends a job's claim on its lane; the frame has been released by then.
func (s *scheduler) done(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.busy = false
	if l.waiting {
		s.wake.Signal()
	}
}

// stop wakes every worker for the last time.
func (s *scheduler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.wake.Broadcast()
}

func (s *scheduler) longestWaitingLocked() *lane {
	var best *lane
	for l := range s.lanes {
		if l.waiting && !l.busy && (best == nil || l.waitingSince.Before(best.waitingSince)) {
			best = l
		}
	}
	return best
}
