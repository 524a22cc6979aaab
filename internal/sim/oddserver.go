package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// addOdd adds the camera where it has faults.
func (s *Server) addOdd(c Camera, clip *ClipData, specs []Spec, seed uint64, index, of int) (bool, error) {
	// Cameras differ, and are the same each time for the same seed.
	own := seed<<16 ^ uint64(index) //nolint:gosec // an index is not negative
	faults, err := faultsOf(specs, c, rand.New(rand.NewPCG(own, 0)))
	if err != nil || len(faults) == 0 {
		return false, err
	}
	odd := &oddCamera{
		Camera: c, clip: clip, faults: faults, pos: startAt(clip, index, of), seed: own, methods: s.methods,
		log: s.log.With("path", c.Path), spare: &s.spare, start: time.Now(),
	}
	if err := odd.readFiles(); err != nil {
		return false, err
	}
	s.odd["/"+c.Path] = odd
	return true, nil
}

// closedFor says whether the port has no reason to be open: all cameras are
// odd, and closed holds for each.
func (s *Server) closedFor(closed func(*oddCamera) bool) bool {
	for _, c := range s.odd {
		if !closed(c) {
			return false
		}
	}
	return len(s.cameras) == 0
}

// runOdd runs cameras of which some have faults.
func (s *Server) runOdd(ctx context.Context) error {
	listener := s.takeListener()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errClosed
	}
	if listener == nil && s.closedFor((*oddCamera).alwaysRefuse) {
		<-ctx.Done()
		return nil
	}
	start := time.Now()
	for _, c := range s.odd {
		c.start = start
	}
	r := newRouter(s.odd, s.log)
	defer r.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	failed := make(chan error, 2)
	if len(s.cameras) > 0 {
		healthy := &handed{addr: s.addr, conns: r.healthy, done: make(chan struct{})}
		wg.Go(func() { failed <- s.serve(ctx, healthy) })
	} else {
		for _, c := range s.odd {
			r.alone = c
		}
	}
	wg.Go(func() { failed <- s.keepPort(ctx, r, listener) })
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// portCheck is how soon a port follows its schedule.
const portCheck = 20 * time.Millisecond

// keepPort accepts connections while the port is to be open, until ctx ends.
// listener is nil where it begins closed.
func (s *Server) keepPort(ctx context.Context, r *router, listener net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ended := make(chan error, 1)
	open := func(l net.Listener) {
		listener = l
		wg.Go(func() {
			if err := r.accept(ctx, l); err != nil {
				select {
				case ended <- fmt.Errorf("run simulated cameras: %w", err):
				default:
				}
			}
		})
	}
	shut := func() {
		if listener != nil {
			_ = listener.Close() // ends accept
			listener = nil
		}
	}
	defer shut()
	if listener != nil {
		open(listener)
	}
	check := time.NewTicker(portCheck)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-check.C:
		}
		closed := s.closedFor(func(c *oddCamera) bool { return c.now().has(faultRefuse) })
		switch {
		case closed && listener != nil:
			shut()
			r.cut()
		case !closed && listener == nil:
			l, err := net.Listen("tcp", s.addr.String())
			if err != nil {
				return fmt.Errorf("run simulated cameras: open the port again: %w", err)
			}
			open(l)
		}
	}
}
