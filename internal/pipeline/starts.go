package pipeline

import (
	"context"
	"sync"
	"time"

	"edgecam/capture"
)

const (
	// startsApart is the time between two cameras' first calls: what a session costs to
	// open.
	startsApart = 5 * time.Millisecond
	// mostStarting is how many cameras may be on their way to their first picture at
	// once where cards decode: they need some time to connect and to send a key frame,
	// in which the decoders of others are set up.
	mostStarting = 16
	// mostSetUps is how many of those may wait for their decoder. What a camera sends
	// meanwhile must be decoded afterwards: with hundreds that wait, cards were so busy
	// with pictures of the past that nothing was set up in time, and live cameras stood.
	mostSetUps = 4
	// startPatience is how long a start counts: a camera that is away, or sends key
	// frames seldom, holds the others up no longer.
	startPatience = time.Second
	// mostHeld is how long the next camera waits for set-ups at most: those that hang
	// on a card concern neither other cards nor cameras that need none.
	mostHeld = 5 * time.Second
)

// starts has cameras called a few at a time, so that hundreds which start at once do
// not stream into their queues while their decoders are still set up one after another.
// Who came first is called first.
type starts struct {
	// setUps is how many decoders wait to be set up on cards; cards says whether any
	// decodes.
	setUps func() (waiting int, cards bool)

	mu       sync.Mutex
	starting int          // guarded by mu
	next     time.Time    // guarded by mu; the first moment that is free
	line     capture.Line // guarded by mu
}

func newStarts(setUps func() (waiting int, cards bool)) *starts { return &starts{setUps: setUps} }

// admit waits for the caller's turn; the error is ctx's. started is called when the
// camera has its first picture, and when its attempt is over.
func (s *starts) admit(ctx context.Context) (started func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wake := s.line.Join()
	defer s.line.Leave(wake)
	var since time.Time // when it became the first
	for {
		first, wait := s.line.First(wake), time.Duration(0)
		if first {
			if since.IsZero() {
				since = time.Now()
			}
			if wait = s.turnLocked(since); wait <= 0 {
				break
			}
		}
		s.mu.Unlock()
		capture.Pause(ctx, wake, first, wait)
		s.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	s.next = time.Now().Add(startsApart)
	s.starting++
	return s.leaver(), nil
}

// turnLocked is how long one that is the first since a moment waits at least, unless it is
// woken; 0 = it may be called now. Nobody tells of a set-up that ended without a picture.
func (s *starts) turnLocked(since time.Time) time.Duration {
	waiting, cards := s.setUps()
	switch {
	case time.Since(since) >= mostHeld:
		return 0
	case cards && (s.starting >= mostStarting || waiting >= mostSetUps):
		return startPatience
	}
	return time.Until(s.next)
}

// leaver ends a start, by itself after startPatience. Whenever a camera has its first
// picture its decoder is set up, and the next one may be called.
func (s *starts) leaver() func() {
	left := false
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !left {
			left = true
			s.starting--
		}
		s.line.Wake()
	}
	t := time.AfterFunc(startPatience, leave)
	return func() {
		t.Stop()
		leave()
	}
}

// setUps is how many decoders wait to be set up, and whether any card decodes.
func (p *Pipeline) setUps() (waiting int, cards bool) {
	for _, s := range p.stations() {
		if q := s.gpu.decoderQueue(); q != nil {
			n, _ := q.SetUps().Waiting()
			waiting, cards = max(waiting, n), true
		}
	}
	return waiting, cards
}
