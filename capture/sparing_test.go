package capture_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/capture"
	"edgecam/framepool"
)

// sparingDecoder decodes key pictures only, and says so if it is honest.
type sparingDecoder struct {
	pictureDecoder

	honest bool
}

func (d *sparingDecoder) Decode(au *capture.AccessUnit, emit func(*framepool.Frame)) error {
	if !au.RandomAccess {
		return nil
	}
	return d.pictureDecoder.Decode(au, emit)
}

func (d *sparingDecoder) Sparse() bool { return d.honest }

// A limit that is shorter than the distance of key pictures does not end a session in
// which only those are decoded; video that is dead still does.
func TestStallLimitOfASparingDecoder(t *testing.T) {
	const gop = 225 // 9 s
	for _, honest := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, func(int) scriptSource { return playing(frame, gop, 4*gop, nil) }, func(r *rig) {
				r.o.StallTimeout = 3 * time.Second
				r.o.NewDecoder = func(capture.StreamInfo) (capture.Decoder, error) {
					r.mu.Lock()
					defer r.mu.Unlock()
					r.open++
					return &sparingDecoder{pictureDecoder: pictureDecoder{rig: r}, honest: honest}, nil
				}
			})
			time.Sleep(25 * time.Second)
			if st := r.Status(); (st.State == capture.Live && st.Attempts == 1) != honest {
				t.Errorf("honest %v: %s %q after %d attempts", honest, st.State, st.Reason, st.Attempts)
			}
			r.stop(t)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		dead := func(ctx context.Context, sink capture.Sink) error {
			if err := playing(frame, gop, 2*gop+1, nil)(ctx, sink); err != nil {
				return err
			}
			for { // no key picture comes any more
				sink.AccessUnit(unit(false))
				if err := rest(ctx, frame); err != nil {
					return err
				}
			}
		}
		r := start(t, func(int) scriptSource { return dead }, func(r *rig) {
			r.o.StallTimeout = 3 * time.Second
			r.o.NewDecoder = func(capture.StreamInfo) (capture.Decoder, error) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.open++
				return &sparingDecoder{pictureDecoder: pictureDecoder{rig: r}, honest: true}, nil
			}
		})
		time.Sleep(18*time.Second + 25*time.Second) // two groups, then twice their length and a second
		if st := r.Status(); st.Attempts != 2 {
			t.Errorf("dead video was not given up: %+v", st)
		}
		r.stop(t)
	})
}
