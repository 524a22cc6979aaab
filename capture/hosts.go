package capture

import (
	"context"
	"sync"
	"time"
)

// How sessions with one host are opened. A recorder serves dozens of channels
// and takes few log-ins at a time; one that just started, or is overloaded,
// gets up only if it is left alone for a moment.
const (
	hostOpening    = 4                      // sessions on their way to a description at once
	hostGap        = 100 * time.Millisecond // between the starts of two
	hostGapFailing = 500 * time.Millisecond // the same while sessions fail: two a second, however many cameras wait

	// hostPatience is how long a session that is slow to open counts: one
	// silent channel does not hold up the others.
	hostPatience = 5 * time.Second

	// hostForget is beyond the waits between two attempts of a camera that
	// cannot be reached.
	hostForget = time.Minute
)

// Hosts spreads attempts to reach the cameras behind one address. All
// supervisors of a process share one. Who waits longest is next. The zero
// value is ready; a nil one lets everybody through.
type Hosts struct {
	mu    sync.Mutex
	hosts map[string]*host // guarded by mu; by host:port
}

// host is guarded by Hosts.mu.
type host struct {
	opening int
	next    time.Time // of the next start
	failing bool
	line    Line
}

// enter waits for its turn. leave must be called, with whether the camera
// described its stream; only its first call counts. The error is ctx's.
func (h *Hosts) enter(ctx context.Context, addr string, wait func()) (leave func(described bool), err error) {
	if h == nil || addr == "" {
		return func(bool) {}, nil
	}
	h.mu.Lock()
	one := h.hostLocked(addr)
	wake := one.line.Join()
	for waited := false; ; waited = true {
		left, first := one.turnLocked(wake)
		if first && left <= 0 {
			break
		}
		h.mu.Unlock()
		if !waited && wait != nil {
			wait()
		}
		Pause(ctx, wake, first, left)
		h.mu.Lock()
		if ctx.Err() != nil {
			one.line.Leave(wake)
			h.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	defer h.mu.Unlock()
	one.line.Leave(wake)
	one.startLocked(time.Now())
	return h.leaver(one), nil
}

// leaver gives a start's place back: after hostPatience, or when it is told
// what came of it.
func (h *Hosts) leaver(one *host) func(described bool) {
	free := sync.OnceFunc(func() {
		one.opening--
		one.line.Wake()
	})
	t := time.AfterFunc(hostPatience, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		free()
	})
	var told sync.Once
	return func(described bool) {
		told.Do(func() {
			t.Stop()
			h.mu.Lock()
			defer h.mu.Unlock()
			one.failing = !described
			if described {
				one.next = minTime(one.next, time.Now().Add(hostGap))
			}
			free()
		})
	}
}

func (h *Hosts) hostLocked(addr string) *host {
	if h.hosts == nil {
		h.hosts = map[string]*host{}
	}
	one := h.hosts[addr]
	if one == nil {
		h.forgetLocked(time.Now())
		one = &host{}
		h.hosts[addr] = one
	}
	return one
}

// forgetLocked drops the addresses of cameras that are gone.
func (h *Hosts) forgetLocked(now time.Time) {
	for addr, o := range h.hosts {
		if o.opening == 0 && o.line.Len() == 0 && now.Sub(o.next) > hostForget {
			delete(h.hosts, addr)
		}
	}
}

// turnLocked says whether wake is the next in line, and how long it has to wait.
func (o *host) turnLocked(wake chan struct{}) (left time.Duration, first bool) {
	if !o.line.First(wake) {
		return 0, false
	}
	if o.opening >= hostOpening {
		return hostPatience, true
	}
	return time.Until(o.next), true
}

func (o *host) startLocked(now time.Time) {
	o.opening++
	gap := hostGap
	if o.failing {
		gap = hostGapFailing
	}
	o.next = now.Add(gap)
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
