package cuda_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"edgecam/platform/cuda"
)

func (f *fake) taken(t *testing.T, o cuda.DeviceOptions) *cuda.Device {
	t.Helper()
	dev := f.open(o)
	dev.Lose(errors.New("taken away"))
	return dev
}

// A card that is lost for a reason that lies elsewhere lets whoever salvages it close what
// is open on it; for everybody else it stays lost.
func TestSalvage(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	var s cuda.Stream
	do(t, dev, func(c *cuda.Context) (err error) { s, err = c.NewStream(); return err })
	dev.Lose(errors.New("taken away"))
	free := func(c *cuda.Context) error { return c.FreeStream(s) }
	if dev.Serves() {
		t.Error("it serves")
	}
	if err := dev.Do(t.Context(), "close", free); err == nil || err.Error() != "gpu lost: taken away" {
		t.Errorf("before: %v", err)
	}
	for range 2 {
		if err := dev.Salvage(t.Context(), (*cuda.Context).Synchronize); err != nil {
			t.Fatal(err)
		}
	}
	do(t, dev, free)
	if !dev.Serves() {
		t.Error("it does not serve")
	}
	if err := dev.Err(); err == nil || err.Error() != "gpu lost: taken away" {
		t.Errorf("error %v", err)
	}
	<-dev.Lost()
	if _, err := dev.Hold(); err == nil {
		t.Error("a library may open something there")
	}
	if err := dev.Close(); err != nil || f.refs(0) != 0 || f.live() != 0 {
		t.Errorf("close: %v, retained %d times, %d objects left", err, f.refs(0), f.live())
	}
	if err := dev.Salvage(t.Context(), (*cuda.Context).Synchronize); !errors.Is(err, cuda.ErrDeviceClosed) && err != nil {
		t.Errorf("after close: %v", err)
	}
}

// A call that hangs is waited for as long as the caller likes; once it has returned the
// card can be had, and can be lost again.
func TestSalvageAfterAHang(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{CallTimeout: time.Second})
	f.block("cuCtxSynchronize")
	if err := dev.DoWithin(t.Context(), "hang", hasty, (*cuda.Context).Synchronize); err == nil {
		t.Fatal("it did not hang")
	}
	soon, cancel := context.WithTimeout(t.Context(), hasty)
	defer cancel()
	err := dev.Salvage(soon, (*cuda.Context).Synchronize)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it hangs: %v", err)
	}
	contains(t, "error", err.Error(), "still hangs")
	f.release()
	if err := dev.Salvage(t.Context(), (*cuda.Context).Synchronize); err != nil {
		t.Fatal(err)
	}
	do(t, dev, (*cuda.Context).Synchronize)
	f.fail("cuCtxSynchronize", cuda.CodeLaunchFailed, 0)
	if err := dev.Do(t.Context(), "close", (*cuda.Context).Synchronize); !cuda.Sticky(err) {
		t.Errorf("the second loss: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

func TestSalvageFails(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		gone bool
	}{{"the context is gone", cuda.CodeIllegalAddress, true}, {"no memory", cuda.CodeOutOfMemory, false}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			dev := f.taken(t, cuda.DeviceOptions{})
			f.fail("cuCtxSynchronize", int32(c.code), 0)
			err := dev.Salvage(t.Context(), (*cuda.Context).Synchronize)
			if cuda.Code(err) != c.code || errors.Is(err, cuda.ErrContextGone) != c.gone {
				t.Errorf("error %v", err)
			}
			if err := dev.Do(t.Context(), "close", (*cuda.Context).Synchronize); err == nil {
				t.Error("it serves")
			}
			<-closed(dev)
		})
	}
	t.Run("not lost", func(t *testing.T) {
		dev := newFake(t).open(cuda.DeviceOptions{})
		if err := dev.Salvage(t.Context(), (*cuda.Context).Synchronize); err == nil {
			t.Error("salvaged")
		}
	})
	t.Run("closed", func(t *testing.T) {
		dev := newFake(t).taken(t, cuda.DeviceOptions{})
		<-closed(dev)
		if err := dev.Salvage(t.Context(), (*cuda.Context).Synchronize); !errors.Is(err, cuda.ErrDeviceClosed) {
			t.Errorf("error %v", err)
		}
	})
}
