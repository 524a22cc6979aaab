//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"errors"
	"testing"
	"time"

	"edgecam/platform/cuda"
)

// measure takes two times, plain and held, and gives them with the number of
// calls that held the stream.
func measure(t *testing.T, f *fake) (plain, held time.Duration, holds int32) {
	t.Helper()
	do(t, f.open(cuda.DeviceOptions{}), func(c *cuda.Context) error {
		s, err := c.NewStream()
		if err != nil {
			return err
		}
		p, err := c.Alloc(64)
		if err != nil {
			return err
		}
		w, err := c.NewStopwatch()
		if err != nil {
			return err
		}
		queue := func() error { return c.Fill(p, 1, 64, s) }
		plain, err = w.Time(c, s, queue)
		if err != nil {
			return err
		}
		for range 3 { // the gate closes again each time
			if held, err = w.TimeHeld(c, s, queue); err != nil {
				return err
			}
		}
		return errors.Join(w.Close(c), c.Free(p), c.FreeStream(s))
	})
	if f.live() != 0 {
		t.Errorf("%d objects left", f.live())
	}
	return plain, held, f.calls("cuStreamWaitValue32_v2")
}

func TestStopwatch(t *testing.T) {
	const tick = 250 * time.Microsecond
	for name, c := range map[string]struct {
		fake  *fake
		holds int32
	}{
		"held":                       {newFake(t), 3},
		"a driver without it":        {newFake(t, "NO_WAIT_VALUE"), 0},
		"a device that cannot do it": {newFake(t), 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.fake.t = t
			if c.holds == 1 {
				c.fake.fail("cuStreamWaitValue32_v2", cuda.CodeNotSupported, 0)
			}
			plain, held, holds := measure(t, c.fake)
			if plain != tick || held != tick || holds != c.holds {
				t.Errorf("plain %v, held %v, the stream was held %d times, want %v, %v, %d", plain, held, holds, tick, tick, c.holds)
			}
		})
	}
}

// What cannot be queued is the error, and the stream goes on.
func TestStopwatchOpensTheGateAfterAnError(t *testing.T) {
	f := newFake(t)
	do(t, f.open(cuda.DeviceOptions{}), func(c *cuda.Context) error {
		w, err := c.NewStopwatch()
		if err != nil {
			return err
		}
		want := errors.New("no work")
		if _, err := w.TimeHeld(c, 0, func() error { return want }); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		if _, err := w.TimeHeld(c, 0, func() error { return nil }); err != nil { // the stand-in refuses a gate that is open
			t.Errorf("after an error: %v", err)
		}
		return w.Close(c)
	})
}
