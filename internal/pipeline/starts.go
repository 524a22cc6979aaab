package pipeline

import (
	"context"
	"sync"
	"time"
)

// The bounds of the time between two cameras' first calls.
const (
	startsApart    = 5 * time.Millisecond   // what a session costs to open
	startsFarthest = 100 * time.Millisecond // an odd set-up must not hold up all others
)

// starts spreads the attempts to reach cameras, so that hundreds which start at
// once do not stream into their queues while their decoders are still set up
// one after another.
type starts struct {
	setUp func() time.Duration // what the set-up of a decoder takes, 0 = no time

	mu   sync.Mutex
	next time.Time // the first moment that is free
}

func newStarts(setUp func() time.Duration) *starts { return &starts{setUp: setUp} }

// admit waits for the caller's moment; the error is ctx's.
func (s *starts) admit(ctx context.Context) error {
	wait := s.book(time.Now())
	if wait <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// book takes the next moment and gives the time until then.
func (s *starts) book(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.next
	if at.Before(now) {
		at = now
	}
	s.next = at.Add(min(max(s.setUp(), startsApart), startsFarthest))
	return at.Sub(now)
}

// setUpTime is the time from the set-up of one decoder to that of the next. Cards share
// it: the driver sets one up after the other.
func (p *Pipeline) setUpTime() time.Duration {
	var longest time.Duration
	for _, s := range p.stations() {
		if q := s.gpu.decoderQueue(); q != nil {
			longest = max(longest, q.SetUps().Every())
		}
	}
	return longest
}
