package capture_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
)

// patientDecoder says that it waits for its turn, and decodes nothing.
type patientDecoder struct {
	pictureDecoder

	since, until time.Time
}

func (d *patientDecoder) Queued() time.Duration {
	now := time.Now()
	if now.After(d.until) {
		now = d.until
	}
	return now.Sub(d.since)
}

// The time that a decoder waits for its turn is not held against the camera.
func TestFirstFrameLimitLeavesOutTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource { return playing(frame, 25, 0, nil) }, func(r *rig) {
			r.o.FirstFrameTimeout = 10 * time.Second
			r.o.NewDecoder = func(capture.StreamInfo) (capture.Decoder, error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.open++
				return &patientDecoder{
					pictureDecoder: pictureDecoder{rig: r, mute: true},
					since:          time.Now(), until: time.Now().Add(20 * time.Second),
				}, nil
			}
		})
		time.Sleep(29 * time.Second)
		if st := r.Status(); st.State != capture.Connecting {
			t.Errorf("after 20 s of waiting and 9 s of work: %s %q", st.State, st.Reason)
		}
		time.Sleep(1500 * time.Millisecond) // the next attempt begins a second after the limit
		if st := r.Status(); st.State != capture.Stalled {
			t.Errorf("after 20 s of waiting and 10.5 s of work: %s %q", st.State, st.Reason)
		}
		r.stop(t)
	})
}

// A camera that waits to be admitted has made no attempt, and no limit counts.
func TestAdmit(t *testing.T) {
	var started atomic.Int64
	admit := func(ctx context.Context) (func(), error) { return func() { started.Add(1) }, rest(ctx, time.Hour) }
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource { return playing(frame, 25, 0, nil) }, func(r *rig) {
			r.o.Admit = admit
		})
		time.Sleep(59 * time.Minute)
		if st := r.Status(); st.State != capture.Connecting || st.Attempts != 0 {
			t.Errorf("before: %+v", st)
		}
		time.Sleep(2 * time.Minute)
		if st := r.Status(); st.State != capture.Live || st.Attempts != 1 || started.Load() != 1 {
			t.Errorf("after: %+v, told %d times", st, started.Load())
		}
		r.stop(t)
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(int) scriptSource { return hanging }, func(r *rig) {
			r.o.Admit = admit
		})
		synctest.Wait()
		r.stop(t)
	})
	// An attempt that ends without a picture is over, too.
	synctest.Test(t, func(t *testing.T) {
		before := started.Load()
		r := start(t, func(int) scriptSource { return hanging }, func(r *rig) {
			r.o.Admit = func(context.Context) (func(), error) { return func() { started.Add(1) }, nil }
		})
		time.Sleep(time.Minute)
		attempts := r.Status().Attempts
		if n := started.Load() - before; attempts < 3 || n < int64(attempts)-1 || n > int64(attempts) {
			t.Errorf("told %d times in %d attempts", n, attempts)
		}
		r.stop(t)
	})
}

// A camera with a picture every 25 seconds is left in peace once it is known to
// be so slow; one of another rhythm that stops is not waited for any longer.
func TestPicturesFarApart(t *testing.T) {
	for _, gop := range []int{1, 1000} { // pictures from one key frame to the next
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(int) scriptSource { return playing(25*time.Second, gop, 0, nil) }, nil)
			time.Sleep(3 * time.Minute)
			before := r.Status()
			time.Sleep(10 * time.Minute)
			after := r.Status()
			if after.State != capture.Live || after.Attempts != before.Attempts || after.Frames < before.Frames+20 {
				t.Errorf("key frame each %d: %s with %d pictures in ten minutes, and %d attempts after %d",
					gop, after.State, after.Frames-before.Frames, after.Attempts, before.Attempts)
			}
			r.stop(t)
		})
	}
}
