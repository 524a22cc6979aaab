package decode

import (
	"slices"
	"sync"
	"time"
)

// SetUps is the place in which decoders of GPUs are set up and closed, one at a time
// and in the order in which they come. The driver holds its locks meanwhile, so that one
// place serves all cards of a process. Safe for concurrent use.
type SetUps struct {
	mu      sync.Mutex
	taken   bool
	waiting []*comer
	took    time.Duration // that a set-up takes, smoothed
	began   time.Time     // of what is inside
}

// comer waits for the place.
type comer struct {
	turn chan struct{} // closed when it has the place
	run  func()        // in place of turn: what is done there
}

// NewSetUps makes a place that is free.
func NewSetUps() *SetUps { return &SetUps{} }

// enter waits for the place; false when lost was closed before: then leave is not called.
func (s *SetUps) enter(lost <-chan struct{}) bool {
	c := &comer{turn: make(chan struct{})}
	s.come(c)
	select {
	case <-c.turn:
	case <-lost:
		if !s.withdraw(c) {
			s.pass() // the place came at the same moment
		}
		return false
	}
	return true
}

// leave ends a set-up.
func (s *SetUps) leave() {
	s.mu.Lock()
	took := time.Since(s.began)
	if s.took == 0 {
		s.took = took
	}
	s.took += (took - s.took) / 8
	s.mu.Unlock()
	s.pass()
}

// Later has f called on a goroutine of its own, when its turn comes. It is for
// closing decoders: one that closes makes room for one that is set up after it.
func (s *SetUps) Later(f func()) { s.come(&comer{run: f}) }

func (s *SetUps) come(c *comer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
	if !s.taken {
		s.nextLocked()
	}
}

// withdraw takes out who waits; false when it has been given the place.
func (s *SetUps) withdraw(c *comer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting, c)
	if at < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	return true
}

// pass gives the place to the next one.
func (s *SetUps) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextLocked()
}

func (s *SetUps) nextLocked() {
	s.taken = len(s.waiting) > 0
	if !s.taken {
		return
	}
	c := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.began = time.Now()
	if c.run == nil {
		close(c.turn)
		return
	}
	go func() {
		c.run()
		s.pass()
	}()
}

// Takes is how long a set-up takes, of late; 0 before the first.
func (s *SetUps) Takes() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took
}

// Waiting is how many set-ups wait, and how many closings.
func (s *SetUps) Waiting() (setUps, closings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.waiting {
		if c.run == nil {
			setUps++
		}
	}
	return setUps, len(s.waiting) - setUps
}
