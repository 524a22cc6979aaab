package capture_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
)

// recorderHost is a recorder with many channels at one address: it notes when
// each attempt began, and how many were being opened at once.
type recorderHost struct {
	rigs []*rig

	mu     sync.Mutex
	starts [][]time.Time // by channel
	all    []time.Time
	open   int
	most   int
}

// startRecorder supervises n cameras of one recorder, that each do sessions.
func startRecorder(t *testing.T, n int, session func(channel int, opened func()) scriptSource) *recorderHost {
	t.Helper()
	h := &recorderHost{starts: make([][]time.Time, n)}
	hosts := &capture.Hosts{}
	for channel := range n {
		h.rigs = append(h.rigs, start(t, func(int) scriptSource { return h.count(channel, session) }, func(r *rig) {
			r.o.Hosts, r.o.Host = hosts, "192.0.2.10:554"
		}))
	}
	return h
}

func (h *recorderHost) count(channel int, session func(channel int, opened func()) scriptSource) scriptSource {
	return func(ctx context.Context, sink capture.Sink) error {
		h.mu.Lock()
		h.starts[channel] = append(h.starts[channel], time.Now())
		h.all = append(h.all, time.Now())
		h.open++
		h.most = max(h.most, h.open)
		h.mu.Unlock()
		opened := sync.OnceFunc(func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.open--
		})
		defer opened()
		return session(channel, opened)(ctx, sink)
	}
}

// stop ends all cameras at once.
func (h *recorderHost) stop(t *testing.T) {
	t.Helper()
	for _, r := range h.rigs {
		r.cancel()
	}
	for _, r := range h.rigs {
		r.stop(t)
	}
}

func (h *recorderHost) leastGap() time.Duration {
	least := time.Hour
	for i := 1; i < len(h.all); i++ {
		least = min(least, h.all[i].Sub(h.all[i-1]))
	}
	return least
}

// A recorder that is down gets its sixteen cameras' attempts one by one, and
// every camera gets its turn.
func TestAttemptsAtOneHostAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startRecorder(t, 16, func(int, func()) scriptSource {
			return failing(&capture.RefusedError{Addr: "192.0.2.10:554"})
		})
		time.Sleep(30 * time.Second)
		h.stop(t)
		if gap := h.leastGap(); gap < 100*time.Millisecond {
			t.Errorf("two attempts came within %v", gap)
		}
		if n := len(h.all); n < 40 || n > 62 { // two a second at most, and not asleep either
			t.Errorf("%d attempts in 30s", n)
		}
		slices.SortFunc(h.starts, func(a, b []time.Time) int { return len(a) - len(b) })
		if fewest, most := len(h.starts[0]), len(h.starts[15]); fewest < 2 || most > fewest+2 {
			t.Errorf("the cameras had from %d to %d attempts", fewest, most)
		}
	})
}

// Channels that say nothing hold up the others for a moment, not for ever.
func TestSlowChannelsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		h := startRecorder(t, 16, func(channel int, opened func()) scriptSource {
			if channel < 15 {
				return hanging
			}
			return func(ctx context.Context, sink capture.Sink) error {
				opened()
				return playing(frame, 25, 0, nil)(ctx, sink)
			}
		})
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if st := h.rigs[15].Status(); st.State != capture.Live || st.Attempts != 1 {
			t.Errorf("the camera that answers is %+v", st)
		}
		h.stop(t)
		if took := h.starts[15][0].Sub(begin); took > 20*time.Second { // 15 before it, four at a time, 5 s each
			t.Errorf("the camera that answers was asked after %v", took)
		}
	})
}

// A recorder that is well has all its cameras soon, and is never asked for many
// at once.
func TestHealthyHostStartsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		h := startRecorder(t, 16, func(_ int, opened func()) scriptSource {
			return func(ctx context.Context, sink capture.Sink) error {
				if err := rest(ctx, 300*time.Millisecond); err != nil { // to log in
					return err
				}
				opened()
				return playing(frame, 25, 0, nil)(ctx, sink)
			}
		})
		time.Sleep(500 * time.Millisecond)
		waiting := 0
		for _, r := range h.rigs {
			if st := r.Status(); st.State == capture.Connecting && st.Reason == "Waiting its turn: other cameras at 192.0.2.10:554 are connecting" {
				waiting++
			}
		}
		if waiting < 8 {
			t.Errorf("%d cameras say that they wait", waiting)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for i, r := range h.rigs {
			if st := r.Status(); st.State != capture.Live || st.Attempts != 1 {
				t.Errorf("camera %d is %s %q", i, st.State, st.Reason)
			}
		}
		h.stop(t)
		if took := h.all[15].Sub(begin); took > 2*time.Second {
			t.Errorf("the last of 16 cameras was asked after %v", took)
		}
		if h.most > 4 || h.leastGap() < 100*time.Millisecond {
			t.Errorf("%d sessions were opened at once, %v apart", h.most, h.leastGap())
		}
	})
}

// One failure slows a host down; the first session that opens ends that.
func TestHostRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		h := startRecorder(t, 16, func(_ int, opened func()) scriptSource {
			if time.Since(begin) < 20*time.Second {
				return failing(&capture.RefusedError{Addr: "192.0.2.10:554"})
			}
			return func(ctx context.Context, sink capture.Sink) error {
				opened()
				return playing(frame, 25, 0, nil)(ctx, sink)
			}
		})
		time.Sleep(90 * time.Second)
		synctest.Wait()
		for i, r := range h.rigs {
			if st := r.Status(); st.State != capture.Live {
				t.Errorf("camera %d is %s %q", i, st.State, st.Reason)
			}
		}
		h.stop(t)
	})
}

// Who stops while it waits leaves at once, and leaves no gap in the line.
func TestStopWhileWaitingItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startRecorder(t, 8, func(int, func()) scriptSource { return hanging })
		time.Sleep(time.Second)
		stopped := map[int]bool{}
		for i, r := range h.rigs {
			if h.asked(i) == 0 && len(stopped) < 2 {
				stopped[i] = true
				r.stop(t)
			}
		}
		if len(stopped) != 2 {
			t.Fatalf("%d cameras waited", len(stopped))
		}
		time.Sleep(6 * time.Second)
		for i, r := range h.rigs {
			if h.asked(i) > 0 == stopped[i] {
				t.Errorf("camera %d was asked %d times, stopped %v", i, h.asked(i), stopped[i])
			}
			if !stopped[i] {
				r.stop(t)
			}
		}
	})
}

func (h *recorderHost) asked(channel int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts[channel])
}

// Cameras at other addresses do not wait for each other.
func TestHostsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := &capture.Hosts{}
		begin := time.Now()
		var rigs []*rig
		for _, host := range []string{"192.0.2.10:554", "192.0.2.11:554", "192.0.2.10:8554", ""} {
			rigs = append(rigs, start(t, func(int) scriptSource { return hanging }, func(r *rig) { r.o.Hosts, r.o.Host = hosts, host }))
		}
		synctest.Wait()
		if now := time.Now(); !now.Equal(begin) {
			t.Fatal("the bubble's clock moved")
		}
		for i, r := range rigs {
			r.mu.Lock()
			n := len(r.starts)
			r.mu.Unlock()
			if n != 1 {
				t.Errorf("camera %d had to wait", i)
			}
			r.stop(t)
		}
	})
}

// A wrong password costs a handful of attempts in ten minutes: cameras lock
// accounts that see more.
func TestWrongPasswordIsTriedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource { return failing(&capture.AuthError{User: "admin", Method: "DESCRIBE"}) }, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		st := r.Status()
		if st.State != capture.AuthFailed || st.Attempts > 3 || st.Attempts < 2 || time.Until(st.RetryAt) <= 0 {
			t.Errorf("after ten minutes: %+v", st)
		}
		r.stop(t)
	})
}
