package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"edgecam/framepool"
	"edgecam/internal/pipeline/schedule"
)

// lane is one camera's place in the scheduler: the newest frame that waits to
// be inferred, and how many older ones are in an engine right now.
type lane struct {
	of    *analysis
	box   *framepool.Mailbox
	place schedule.Lane[*lane] // guarded by scheduler.mu
}

// job is a frame that a worker is answerable for.
type job struct {
	lane  *lane
	frame *framepool.Frame
}

// rhythm is how a camera's pictures come. The zero value says that nothing is known.
type rhythm struct {
	apart time.Duration // from the picture before
	due   float64       // of them a second, 0 = all
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
	board   schedule.Board[*lane]
	stopped bool
	most    int       // frames in a batch, while the engine chooses
	room    int       // frames that the batch that is collected holds
	resting int       // workers in idle
	width   int       // workers that may be busy at once, while the engine chooses; 0 = all
	held    int       // frames that workers have
	stuck   int       // of those, that they do not get on with
	took    time.Time // when one took some last

	choosing atomic.Bool // what board.Choosing says, for those without the lock
}

func newScheduler(now func() time.Time, budget time.Duration) *scheduler {
	s := &scheduler{now: now, budget: budget}
	s.idle, s.collect = sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	return s
}

// ordered allows n frames of one camera to be held at once, for a worker that is
// the only one and ends its batches in order: results then come in order, and a
// camera's tracker needs no lock.
func (s *scheduler) ordered(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board.PerLane = n
}

// add makes a lane for a camera's pictures.
func (s *scheduler) add(a *analysis) *lane {
	l := &lane{of: a, box: framepool.NewMailbox()}
	l.place.Of = l
	return l
}

// remove takes a lane out and gives its waiting frame back. A frame that a
// worker holds is that worker's to finish.
func (s *scheduler) remove(l *lane) {
	s.mu.Lock()
	s.board.Remove(&l.place)
	s.mu.Unlock()
	l.box.Close()
}

// choose has the engine choose among the frames, or no more.
func (s *scheduler) choose(c schedule.Choice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.board.Choose(c)
	s.most, s.width = c.Most, c.Width
	s.choosing.Store(s.board.Choosing())
	s.idle.Broadcast() // who waits for a young frame may not need one any more
	s.collect.Broadcast()
}

// offer consumes f, which is due. It reports whether an older frame had to give way, and
// a turn with it.
func (s *scheduler) offer(l *lane, f *framepool.Frame, r rhythm) (missed bool) {
	sent := s.sent(f.Meta(), r)
	replaced := l.box.Put(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	ready, owed := s.board.Offer(&l.place, sent)
	if ready || s.board.Choosing() {
		s.wakeLocked()
	}
	return replaced && !owed
}

// newer offers a frame that is not due. It consumes it if it is taken all the same, as
// an engine that chooses takes the newest. The frame that gives way to it was due, and
// counts as this one does not: nothing is lost.
func (s *scheduler) newer(l *lane, f *framepool.Frame, r rhythm) (taken bool) {
	if !s.choosing.Load() {
		return false
	}
	s.mu.Lock()
	if taken = s.board.Newer(&l.place, s.sent(f.Meta(), r)); !taken {
		s.mu.Unlock()
		return false
	}
	old, ok := l.box.TryTake() // so that it is released without the lock
	l.box.Put(f)
	s.wakeLocked()
	s.mu.Unlock()
	if ok {
		old.Release()
	}
	return true
}

// sent is what the board is told of a frame.
func (s *scheduler) sent(m *framepool.Meta, r rhythm) schedule.Sent {
	return schedule.Sent{Received: m.Received, Decoded: m.Decoded, Due: m.Received.Add(s.budget), Apart: r.apart, Rate: r.due}
}

// crowded says whether workers, of batches of up to most, have enough to do.
func (s *scheduler) crowded(workers, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return schedule.Crowded(s.board.Len(), workers-s.resting, workers, most)
}

// wakeLocked wakes who cares for one more lane that may be served: a worker that
// collects a batch only when that changes when it is begun.
func (s *scheduler) wakeLocked() {
	s.idle.Signal()
	if n := s.board.Len(); n == 1 || n >= s.room {
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
		now, room := s.now(), s.roomLocked(dst)
		pressing, due := s.board.Pressing()
		if wait := f.Wait(now, pressing, room, due); wait > 0 {
			a.set(s, wait)
			s.room = room
			s.collect.Wait()
			continue
		}
		if f.Depth() > 0 || s.mayLocked(now) {
			waiting, later := s.board.Ready(now)
			if n := s.fillLocked(dst[:f.Fill(waiting, room)], now); n > 0 || f.Depth() > 0 {
				return n, true
			}
			if !later.IsZero() {
				a.set(s, later.Sub(now))
			}
		}
		s.resting++
		s.idle.Wait()
		s.resting--
	}
	return 0, false
}

// mayLocked says whether one more worker may be busy. Those that are must get on with
// it: one that hangs in its engine, or never came up, keeps no other from working.
func (s *scheduler) mayLocked(now time.Time) bool {
	if s.width == 0 || s.held-s.stuck < s.width*s.most {
		return true
	}
	if now.Sub(s.took) <= maxFrameAge {
		return false
	}
	s.stuck = s.held
	return true
}

// roomLocked is how many frames the next batch holds.
func (s *scheduler) roomLocked(dst []job) int {
	if s.most > 0 {
		return min(s.most, len(dst))
	}
	return len(dst)
}

func (s *scheduler) fillLocked(dst []job, now time.Time) (n int) {
	for n < len(dst) {
		next := s.board.Next(now)
		if next == nil {
			break
		}
		f, ok := next.Of.box.TryTake()
		if !ok {
			s.board.Done(next) // it was taken with the turn before
			continue
		}
		dst[n] = job{lane: next.Of, frame: f}
		n++
	}
	if s.held += n; n > 0 {
		s.took = now
	}
	return n
}

// done ends a job's claim on its lane; the frame has been released by then.
func (s *scheduler) done(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.stuck = min(s.stuck, s.held)
	if s.board.Done(&l.place) || s.width > 0 {
		s.wakeLocked()
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

// alarm wakes the worker that collects a batch when it is time to begin it, or one that
// waits for a young frame when there will be none. It belongs to the worker.
type alarm struct{ timer *time.Timer }

func (a *alarm) set(s *scheduler, d time.Duration) {
	if a.timer != nil {
		a.timer.Reset(d)
		return
	}
	a.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle.Broadcast()
		s.collect.Broadcast()
	})
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
