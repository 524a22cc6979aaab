package capture_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
)

const addr = "192.0.2.1:554"

// host is a port of which a test says whether it answers.
type host struct {
	mu    sync.Mutex
	open  bool
	looks int
}

func (h *host) dial(context.Context, string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks++
	if !h.open {
		return errors.New("refused")
	}
	return nil
}

func (h *host) set(open bool) (looks int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = open
	looks, h.looks = h.looks, 0
	return looks
}

// source is a camera behind the host: away with err while it is closed.
func (h *host) source(away error, then scriptSource) scriptSource {
	return func(ctx context.Context, sink capture.Sink) error {
		h.mu.Lock()
		open := h.open
		h.mu.Unlock()
		if !open {
			return away
		}
		return then(ctx, sink)
	}
}

// A camera that was away for however long is seen again within two seconds of
// its return.
func TestBackSoonAfterReturn(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		away time.Duration
	}{
		{"refused", &capture.RefusedError{Addr: addr}, 4*time.Minute + 700*time.Millisecond},
		{"no answer", &capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleTimeout}, 20*time.Minute + 300*time.Millisecond},
		{"no route", &capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleRoute}, 10 * time.Minute},
		{"the session ended", &capture.ClosedError{}, 47 * time.Second}, // found by looking at Host
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &host{}
				r := start(t, func(int) scriptSource { return h.source(tt.err, playing(frame, 25, 0, nil)) }, func(r *rig) {
					r.o.Host = addr
					capture.SetDial(&r.o, h.dial)
				})
				time.Sleep(tt.away)
				h.set(true)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if st := r.Status(); st.State != capture.Live {
					t.Errorf("2s after the return: %s %q, next at %v", st.State, st.Reason, time.Until(st.RetryAt))
				}
				r.stop(t)
			})
		})
	}
}

// While a host does not answer there is about one look a second at it, however
// many cameras are behind it, and no look at all where looking is of no use.
func TestLooksAreFew(t *testing.T) {
	for _, tt := range []struct {
		name     string
		err      error
		open     bool
		min, max int // looks in ten minutes
	}{
		{name: "refused", err: &capture.RefusedError{Addr: addr}, min: 500, max: 800},
		{name: "wrong password", err: &capture.AuthError{User: "a"}, open: true},
		{name: "not found", err: &capture.StatusError{Code: 404}, open: true},
		{name: "busy", err: &capture.StatusError{Code: 453}, open: true},
		{name: "codec", err: &capture.UnsupportedError{What: "codec"}, open: true},
		{name: "says nothing", err: &capture.SilentError{Addr: addr}, open: true},
		// the port answers: no more looks than attempts
		{name: "hangs up", err: &capture.ClosedError{}, open: true, min: 1, max: 120},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &host{open: tt.open}
				var rigs []*rig
				prober := capture.NewProber()
				capture.SetProberDial(prober, h.dial)
				for range 16 {
					rigs = append(rigs, start(t, func(int) scriptSource { return failing(tt.err) }, func(r *rig) { r.o.Host, r.o.Prober = addr, prober }))
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := h.set(tt.open); n < tt.min || n > tt.max {
					t.Errorf("%d looks in ten minutes of 16 cameras, want %d to %d", n, tt.min, tt.max)
				}
				for _, r := range rigs {
					r.stop(t)
				}
			})
		})
	}
}

// A port that opens and closes in front of a camera that never gives a picture
// does not make us call again and again.
func TestFlappingPortIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		r := start(t, func(int) scriptSource { return failing(&capture.RefusedError{Addr: addr}) }, func(r *rig) {
			capture.SetDial(&r.o, func(ctx context.Context, addr string) error {
				h.mu.Lock()
				h.open = !h.open
				h.mu.Unlock()
				return h.dial(ctx, addr)
			})
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// every half minute one that looked good, and those of the waits: 1, 2, 4, …
		if n := len(r.starts); n > 120 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		r.stop(t)
	})
}

// The wall clock may be set by days: what is shown follows it, and nothing else
// does.
func TestWallClockIsSet(t *testing.T) {
	for _, step := range []time.Duration{-3 * 24 * time.Hour, 3 * 24 * time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var offset time.Duration
				wall := func() time.Time {
					mu.Lock()
					defer mu.Unlock()
					return time.Now().Add(offset)
				}
				stamped := func(ctx context.Context, sink capture.Sink) error {
					if err := sink.Stream(info); err != nil {
						return err
					}
					for i := 0; ; i++ {
						au := unit(i%25 == 0)
						au.PTS, au.CapturedAt = time.Duration(i)*frame, wall() // the host's clock steps with it
						sink.AccessUnit(au)
						if err := rest(ctx, frame); err != nil {
							return err
						}
					}
				}
				rigs := map[string]*rig{
					"live":   start(t, func(int) scriptSource { return stamped }, func(r *rig) { capture.SetWall(&r.o, wall) }),
					"wait":   start(t, func(int) scriptSource { return failing(&capture.AuthError{User: "a"}) }, func(r *rig) { capture.SetWall(&r.o, wall) }),
					"silent": start(t, func(int) scriptSource { return hanging }, func(r *rig) { capture.SetWall(&r.o, wall) }),
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				before := map[string]capture.Status{}
				for name, r := range rigs {
					before[name] = r.Status()
				}
				mu.Lock()
				offset = step
				mu.Unlock()
				time.Sleep(4 * time.Second) // all limits are further away than that
				synctest.Wait()
				for name, r := range rigs {
					st, was := r.Status(), before[name]
					if st.State != was.State || st.Attempts != was.Attempts {
						t.Errorf("%s: %s with %d attempts became %s %q with %d", name, was.State, was.Attempts, st.State, st.Reason, st.Attempts)
					}
					if got := st.Since.Sub(was.Since); got != step {
						t.Errorf("%s: since moved by %v with the clock, want %v", name, got, step)
					}
					if got := st.RetryAt.Sub(was.RetryAt); !was.RetryAt.IsZero() && got != step {
						t.Errorf("%s: the next attempt moved by %v, want %v", name, got, step)
					}
					if name == "live" && st.Dropped[capture.DropOverflow] > 0 {
						t.Errorf("dropped: %v", st.Dropped)
					}
				}
				// the limit of the silent one is 15 s by the monotonic clock
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if st := rigs["silent"].Status(); st.State != capture.Backoff {
					t.Errorf("the silent camera is %s %q", st.State, st.Reason)
				}
				for _, r := range rigs {
					r.stop(t)
				}
			})
		})
	}
}
