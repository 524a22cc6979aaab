package ort

import (
	"context"
	"errors"
	"sync"
)

// builds has the cards of one kind in a process build an engine once: a build takes
// a minute of the processor and of the card.
type builds struct {
	mu    sync.Mutex
	under map[string]*building // by the key's stem; those that somebody wants
}

var theBuilds = &builds{under: map[string]*building{}} //nolint:gochecknoglobals // cards of all pipelines of the process

// building is an engine that some cards want.
type building struct {
	wanted  int           // guarded by builds.mu
	turn    chan struct{} // holds a token while nobody is inside
	content []byte        // of whoever is inside: the engine that was got last
}

// join says that a card wants the engine of a key; leave goes with it.
func (s *builds) join(key engineKey) *building {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.under[key.stem()]
	if b == nil {
		b = &building{turn: make(chan struct{}, 1)}
		b.turn <- struct{}{}
		s.under[key.stem()] = b
	}
	b.wanted++
	return b
}

func (s *builds) leave(key engineKey, b *building) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.wanted--; b.wanted == 0 {
		delete(s.under, key.stem())
	}
}

// enter waits for the others; exit goes with it.
func (b *building) enter(ctx context.Context, lost <-chan struct{}) error {
	select {
	case <-b.turn:
		return nil
	case <-lost:
		return errors.New("build engine: the gpu is lost")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *building) exit() { b.turn <- struct{}{} }
