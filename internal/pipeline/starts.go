package pipeline

import (
	"context"
	"sync"
	"time"

	"edgecam/capture/decode"
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
	apart func() time.Duration // between two of them, from what a set-up takes

	mu   sync.Mutex
	next time.Time // the first moment that is free
}

// newStarts is for decoders that are set up at this queue; nil = in no time.
func newStarts(q *decode.Queue) *starts {
	return &starts{apart: func() time.Duration {
		if q == nil {
			return startsApart
		}
		return min(max(q.SetUpTime(), startsApart), startsFarthest)
	}}
}

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
	s.next = at.Add(s.apart())
	return at.Sub(now)
}
