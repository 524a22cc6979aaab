package capture

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// How a camera that went away is found again.
const (
	// probePeriod is the time between two looks at a port that does not answer.
	probePeriod = time.Second
	// probeTimeout bounds one look.
	probeTimeout = time.Second
	// probeOpenMax bounds the time between two looks at a port that answers.
	probeOpenMax = 16 * time.Second
	// probeAgain is how long a camera that answered again, and gave no picture,
	// is left to its waits.
	probeAgain = retryMax
)

// Prober looks whether hosts answer while cameras wait, so that a camera that
// comes back is not left waiting. A look is a TCP connection, closed at once.
// There is one at a time and about one a second for a host's port, however many
// cameras are behind it; a port that answers is looked at ever more rarely. Its
// methods may be called concurrently.
type Prober struct {
	dial func(ctx context.Context, addr string) error

	mu    sync.Mutex
	ports map[string]*port
}

// port is what several waits share.
type port struct {
	cancel  context.CancelFunc
	ended   chan struct{}
	waiters int // guarded by Prober.mu

	back chan struct{} // closed when the port answered and had not before
	shut bool          // guarded by Prober.mu; the last look found it closed
}

// NewProber makes a prober that dials.
func NewProber() *Prober {
	return &Prober{dial: dialPort, ports: map[string]*port{}}
}

func dialPort(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// wait waits until ctx ends, or a port that did not answer does: then it says
// true. closed says that the port is known not to answer.
func (p *Prober) wait(ctx context.Context, addr string, closed bool) bool {
	one := p.join(addr, closed)
	defer p.leave(addr, one)
	select {
	case <-ctx.Done():
		return false
	case <-one.back:
		return true
	}
}

func (p *Prober) join(addr string, closed bool) *port {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.ports[addr]
	if one == nil {
		ctx, cancel := context.WithCancel(context.Background())
		one = &port{cancel: cancel, ended: make(chan struct{}), back: make(chan struct{})}
		p.ports[addr] = one
		go p.look(ctx, addr, one)
	}
	one.waiters++
	one.shut = one.shut || closed
	return one
}

// leave ends the looking with the last wait, and waits for its end.
func (p *Prober) leave(addr string, one *port) {
	p.mu.Lock()
	one.waiters--
	last := one.waiters == 0
	if last && p.ports[addr] == one {
		delete(p.ports, addr)
	}
	p.mu.Unlock()
	if last {
		one.cancel()
		<-one.ended
	}
}

// look looks at a port until ctx ends or it has come back.
func (p *Prober) look(ctx context.Context, addr string, one *port) {
	defer close(one.ended)
	wait := probePeriod / 2 // another wait may just have ended, shortly before it would have looked
	for {
		// not all hosts in the same moment
		sleep(ctx, wait*3/4+rand.N(wait/2)) //nolint:gosec // no secret
		if ctx.Err() != nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, probeTimeout)
		err := p.dial(limited, addr)
		cancel()
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		was := one.shut
		one.shut = err != nil
		if err == nil && was {
			delete(p.ports, addr) // whoever waits from now on looks anew
			close(one.back)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if wait = min(2*wait, probeOpenMax); err != nil {
			wait = probePeriod
		}
	}
}

// away says whether a failure means that the port did not answer, and at which
// address. A name that does not resolve is no matter of ports.
func away(err error) (addr string, silent, ok bool) {
	var refused *RefusedError
	var unreachable *UnreachableError
	switch {
	case errors.As(err, &refused):
		return refused.Addr, false, true
	case errors.As(err, &unreachable) && unreachable.Obstacle != ObstacleName:
		return unreachable.Addr, true, true
	default:
		return "", false, false
	}
}

// rest waits before the next attempt. It ends early when a camera that was away
// answers again. again says that the wait is over and the host was still silent
// a moment ago: an attempt would only wait for it.
func (s *Supervisor) rest(ctx context.Context, wait time.Duration, err error, w *waits) (again bool) {
	addr, silent, gone := away(err)
	if !gone {
		addr = s.o.Host
	}
	if !s.mayProbe(err) || addr == "" {
		sleep(ctx, wait)
		return false
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if !s.o.Prober.wait(limited, addr, gone) {
		return silent && wait > 2*(probePeriod+probeTimeout)
	}
	s.probed, s.seen = time.Now(), s.frames.Load()
	w.network.reset()
	return false
}

// mayProbe says whether to look out for the camera. One that waits for other
// reasons than the network's is left alone, and so is one that answered before
// and then gave no picture: it is up to its waits, which grow.
func (s *Supervisor) mayProbe(err error) bool {
	var failure Failure
	var status *StatusError
	var silent *SilentError
	if errors.As(err, &failure) && !failure.Temporary() || errors.As(err, &status) || errors.As(err, &silent) {
		return false
	}
	return s.probed.IsZero() || s.frames.Load() > s.seen || time.Since(s.probed) >= probeAgain
}
