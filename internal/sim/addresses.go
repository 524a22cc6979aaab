package sim

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
)

// perNetwork is how many addresses of a /24 are used, from .1 on.
const perNetwork = 250

// loopback is the loopback address of camera i, from 127.0.0.1 on.
func loopback(i int) netip.Addr {
	n := i / perNetwork
	return netip.AddrFrom4([4]byte{127, byte(n >> 8), byte(n), byte(i%perNetwork + 1)})
}

// apart listens on one port at the loopback addresses of n cameras. A listener that is
// bound to all addresses would let the whole network in.
func apart(listen string, n int) (net.Listener, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, err
	}
	if host != loopback(0).String() {
		return nil, fmt.Errorf("cameras have addresses of their own behind %v only, not behind %q", loopback(0), host)
	}
	// A port that is free at one address may be taken at another.
	const tries = 16
	var s *several
	for range tries {
		if s, err = listenAt(port, n); err == nil || port != "0" {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func listenAt(port string, n int) (*several, error) {
	s := &several{accepted: make(chan net.Conn), failed: make(chan error, n), done: make(chan struct{})}
	for i := range n {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback(i).String(), port))
		if err != nil {
			for _, open := range s.all {
				_ = open.Close() // nothing was accepted
			}
			return nil, err
		}
		s.all = append(s.all, l)
		if i == 0 {
			port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // it is TCP
		}
	}
	return s, nil
}

// several is one listener at several addresses.
type several struct {
	all      []net.Listener
	accepted chan net.Conn
	failed   chan error
	done     chan struct{}
	begin    sync.Once
	end      sync.Once
	accepts  sync.WaitGroup
}

// Accept implements net.Listener.
func (s *several) Accept() (net.Conn, error) {
	s.begin.Do(func() {
		for _, l := range s.all {
			s.accepts.Go(func() { s.accept(l) })
		}
	})
	select {
	case c := <-s.accepted:
		return c, nil
	case err := <-s.failed:
		return nil, err
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *several) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			s.failed <- err // there is a place for each
			return
		}
		select {
		case s.accepted <- c:
		case <-s.done:
			_ = c.Close() // nobody has seen it
			return
		}
	}
}

// Close implements net.Listener.
func (s *several) Close() error {
	var first error
	s.end.Do(func() {
		close(s.done)
		for _, l := range s.all {
			if err := l.Close(); err != nil && first == nil {
				first = err
			}
		}
	})
	s.accepts.Wait()
	return first
}

// Addr implements net.Listener: the address of the first.
func (s *several) Addr() net.Addr { return s.all[0].Addr() }
