package event

import (
	"context"
	"sync"
)

// Subscription is one reader of a broker. It holds at most one detection a
// camera, the newest. Next is for one goroutine; Close may be called from any.
type Subscription struct {
	broker *Broker
	filter map[string]bool // nil = every camera; never changed
	wake   chan struct{}   // depth 1: something is pending
	done   chan struct{}   // closed by end

	mu       sync.Mutex
	pending  []*Detection   // in the order in which the cameras became pending
	index    map[string]int // camera → place in pending
	replaced uint64
	closed   bool

	spare []*Detection // what the Next before returned; swapped with pending
}

func newSubscription(b *Broker, cameras []string) *Subscription {
	s := &Subscription{
		broker: b,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		index:  make(map[string]int),
	}
	if len(cameras) > 0 {
		s.filter = make(map[string]bool, len(cameras))
		for _, c := range cameras {
			s.filter[c] = true
		}
	}
	return s
}

func (s *Subscription) wants(camera string) bool {
	return s.filter == nil || s.filter[camera]
}

// put makes d the pending detection of its camera.
func (s *Subscription) put(d *Detection) {
	if !s.wants(d.Camera) {
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	if i, ok := s.index[d.Camera]; ok {
		// Keeps its place: a camera with many pictures must not push a slower
		// camera's back.
		s.pending[i] = d
		s.replaced++
		s.mu.Unlock()
		return
	}
	s.index[d.Camera] = len(s.pending)
	s.pending = append(s.pending, d)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next waits until at least one detection is pending and returns all that are,
// one a camera, the newest of each, the camera that waits longest first. The
// detections are shared and read-only; the slice is valid until the next call.
// When ctx ends it returns ctx's error and what is pending stays pending. After
// Close, or once the broker is closed, it returns ErrClosed.
func (s *Subscription) Next(ctx context.Context) ([]*Detection, error) {
	for {
		if out, err := s.take(); out != nil || err != nil {
			return out, err
		}
		select {
		case <-s.wake:
		case <-s.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns what is pending, or nil.
func (s *Subscription) take() ([]*Detection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if len(s.pending) == 0 {
		return nil, nil
	}
	out := s.pending
	clear(s.spare) // let go of detections that were read
	s.pending, s.spare = s.spare[:0], out
	clear(s.index)
	return out, nil
}

// Replaced returns how many detections this reader was too slow for.
func (s *Subscription) Replaced() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaced
}

// Close ends the subscription. It may be called twice.
func (s *Subscription) Close() {
	s.broker.drop(s)
	s.end()
}

// end marks the subscription closed and wakes its reader.
func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.pending, s.spare = nil, nil
	close(s.done)
}
