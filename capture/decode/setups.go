package decode

import (
	"slices"
	"sync"
	"time"
)

// SetUps is the place in which decoders of GPUs are set up and closed, one at a time
// and in the order in which they come. The driver holds its locks meanwhile, so that one
// place serves all cards of a process. A card that is lost does not keep it: whatever of
// it hangs there, the others go on. Safe for concurrent use.
type SetUps struct {
	mu      sync.Mutex
	inside  *comer        // guarded by mu; nil = the place is free
	waiting []*comer      // guarded by mu
	took    time.Duration // guarded by mu; that a set-up takes, smoothed
}

// comer is one that wants the place.
type comer struct {
	turn  chan struct{}   // closed when it has the place
	run   func()          // in place of turn: what is done there
	lost  <-chan struct{} // closed when its card is lost; nil = it has none
	left  chan struct{}   // closed when the place is somebody else's
	began time.Time       // when it got the place
}

// NewSetUps makes a place that is free.
func NewSetUps() *SetUps { return &SetUps{} }

// enter waits for the place, which leave gives back; nil where lost was closed before.
func (s *SetUps) enter(lost <-chan struct{}) (leave func()) {
	c := &comer{turn: make(chan struct{}), lost: lost, left: make(chan struct{})}
	s.come(c)
	select {
	case <-c.turn:
	case <-lost:
		s.withdraw(c)
		return nil
	}
	return func() { s.leave(c) }
}

// leave ends a set-up.
func (s *SetUps) leave(c *comer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside != c {
		return // its card was lost meanwhile, and it says nothing of others
	}
	took := time.Since(c.began)
	if s.took == 0 {
		s.took = took
	}
	s.took += (took - s.took) / 8
	s.passLocked(c)
}

// Later has f called on a goroutine of its own, when its turn comes. It is for
// closing decoders: one that closes makes room for one that is set up after it. lost is
// closed when their card is lost.
func (s *SetUps) Later(f func(), lost <-chan struct{}) {
	s.come(&comer{run: f, lost: lost, left: make(chan struct{})})
}

func (s *SetUps) come(c *comer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
	if s.inside == nil {
		s.nextLocked()
	}
}

// withdraw takes out one that waits, or that has just been given the place.
func (s *SetUps) withdraw(c *comer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, c); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
		return
	}
	s.passLocked(c)
}

// pass gives the place to the next one, if it is c's.
func (s *SetUps) pass(c *comer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passLocked(c)
}

func (s *SetUps) passLocked(c *comer) {
	if s.inside != c {
		return // its card was lost meanwhile
	}
	close(c.left)
	s.nextLocked()
}

func (s *SetUps) nextLocked() {
	s.inside = nil
	if len(s.waiting) == 0 {
		return
	}
	c := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.inside, c.began = c, time.Now()
	if c.lost != nil {
		go s.watch(c)
	}
	if c.run == nil {
		close(c.turn)
		return
	}
	go func() {
		c.run()
		s.pass(c)
	}()
}

// watch passes the place on when the card is lost of the one that has it.
func (s *SetUps) watch(c *comer) {
	select {
	case <-c.lost:
		s.pass(c)
	case <-c.left:
	}
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
