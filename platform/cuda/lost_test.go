//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"edgecam/platform"
	"edgecam/platform/cuda"
)

// hasty is a limit for calls that are meant to overrun it.
const hasty = 20 * time.Millisecond

func wantLost(t *testing.T, err error, text, hint string) {
	t.Helper()
	var lost *cuda.LostError
	if !errors.As(err, &lost) {
		t.Fatalf("error %v (%T), want a *cuda.LostError", err, err)
	}
	if err.Error() != text {
		t.Errorf("got  %s\nwant %s", err, text)
	}
	contains(t, "hint", lost.Hint, hint)
}

func TestLostByHangingCall(t *testing.T) {
	f := newFake(t, "COUNT=2")
	dev := f.open(cuda.DeviceOptions{})
	const text = "gpu lost: infer: no answer for 20ms"

	f.block("cuStreamSynchronize")
	returned := make(chan struct{})
	err := dev.DoWithin(t.Context(), "infer", hasty, func(c *cuda.Context) error {
		defer close(returned)
		return c.Wait(0)
	})
	wantLost(t, err, text, "xid")
	var late *cuda.TimeoutError
	if !errors.As(err, &late) || late.Name != "infer" || late.Limit != hasty || cuda.Sticky(err) {
		t.Errorf("cause %+v, sticky %v", late, cuda.Sticky(err))
	}
	<-dev.Lost()
	wantLost(t, dev.Err(), text, "xid")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // at once, and before a context that has ended is looked at
		wantLost(t, dev.Do(ended, "next", func(*cuda.Context) error { t.Error("next ran"); return nil }), text, "xid")
	}
	for range 2 {
		wantLost(t, dev.Close(), text, "xid")
	}
	if f.lib.Stuck() != 1 {
		t.Errorf("%d threads stuck, want 1", f.lib.Stuck())
	}

	// Another one works, on another GPU or on the same, while the thread hangs.
	for i := range 2 {
		again := f.open(cuda.DeviceOptions{Index: i})
		do(t, again, func(c *cuda.Context) error { return c.Wait(0) })
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}

	select {
	case <-returned:
		t.Error("the call came back by itself")
	default:
	}
	f.release()
	<-dev.Ended() // the thread that was given up on finds its way out
	<-returned
	if f.lib.Stuck() != 0 || f.refs(0) != 0 {
		t.Errorf("%d threads stuck, context retained %d times", f.lib.Stuck(), f.refs(0))
	}
	if err := dev.Close(); err != nil {
		t.Errorf("close after that: %v", err)
	}
}

// The limit of the device holds where Do gives none.
func TestLostByCallTimeout(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{CallTimeout: time.Second}) // opening must not overrun it
	f.block("cuCtxSynchronize")
	wantLost(t, dev.Do(t.Context(), "infer", (*cuda.Context).Synchronize), "gpu lost: infer: no answer for 1s", "restart")
}

// Whoever waits for a turn when the device is lost does not wait any longer.
func TestLostWhileOthersWait(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	busy := make(chan struct{})
	let := make(chan struct{})
	const others = 7
	errs := make(chan error, 1+others)
	infer := func() {
		errs <- dev.DoWithin(t.Context(), "infer", 10*hasty, func(*cuda.Context) error {
			close(busy) // panics for a second one
			<-let
			return nil
		})
	}
	go infer()
	<-busy
	for range others {
		go infer()
	}
	for range 1 + others {
		wantLost(t, <-errs, "gpu lost: infer: no answer for 200ms", "xid")
	}
	close(let)
	wantLost(t, dev.Err(), "gpu lost: infer: no answer for 200ms", "xid") // coming back late changes nothing
	<-closed(dev)
}

// closed closes dev and gives its end.
func closed(dev *cuda.Device) <-chan struct{} {
	_ = dev.Close()
	return dev.Ended()
}

func TestLostBySickContext(t *testing.T) {
	for _, c := range []struct {
		code       int32
		after      int32
		text, hint string
	}{
		{719, 3, "gpu lost: infer: call cuMemsetD8Async: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure", "Xid"},
		{999, 0, "gpu lost: infer: call cuMemsetD8Async: CUDA_ERROR_UNKNOWN (999): unknown error", "dmesg"},
		{214, 1, "gpu lost: infer: call cuMemsetD8Async: CUDA_ERROR_ECC_UNCORRECTABLE (214): uncorrectable ECC error encountered", "ECC"},
	} {
		t.Run(fmt.Sprint(c.code, " after ", c.after, " calls"), func(t *testing.T) {
			f := newFake(t)
			dev := f.open(cuda.DeviceOptions{})
			var p cuda.DevicePtr
			do(t, dev, func(c *cuda.Context) (err error) { p, err = c.Alloc(16); return err })
			f.fail("*", c.code, c.after)
			infer := func(ctx *cuda.Context) error { return ctx.Fill(p, 1, 16, 0) }
			for range c.after {
				if err := dev.Do(t.Context(), "infer", infer); err != nil {
					t.Fatal(err)
				}
			}
			wantLost(t, dev.Do(t.Context(), "infer", infer), c.text, c.hint)
			if err := dev.Do(t.Context(), "next", func(*cuda.Context) error { t.Error("next ran"); return nil }); !cuda.Sticky(err) {
				t.Errorf("next: %v", err)
			}
			<-dev.Lost()
			for range 2 { // the goroutine is well and ends
				if err := dev.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			<-dev.Ended()
			if f.lib.Stuck() != 0 || f.refs(0) != 0 {
				t.Errorf("%d threads stuck, context retained %d times", f.lib.Stuck(), f.refs(0))
			}
			// As nobody else holds the context, it is gone and the next one is well.
			do(t, f.open(cuda.DeviceOptions{}), func(c *cuda.Context) error { return c.Synchronize() })
		})
	}
}

// While a library holds a context that failed, nothing in this process helps.
func TestGoneContext(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	f.retain(0, 4)
	f.fail("cuCtxSynchronize", 719, 0)
	wantLost(t, dev.Do(t.Context(), "infer", (*cuda.Context).Synchronize),
		"gpu lost: infer: call cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure", "Xid")
	err := dev.Salvage(t.Context(), func(*cuda.Context) error { t.Error("it was asked"); return nil })
	if !errors.Is(err, cuda.ErrContextGone) || cuda.Code(err) != cuda.CodeLaunchFailed {
		t.Errorf("salvaged: %v", err)
	}
	<-closed(dev)
	same := f.open(cuda.DeviceOptions{})
	if err := same.Do(t.Context(), "infer", (*cuda.Context).Synchronize); !cuda.Sticky(err) {
		t.Errorf("in the same context: %v", err)
	}
	<-closed(same)
}

func TestLostWhileOpening(t *testing.T) {
	f := newFake(t)
	f.block("cuDevicePrimaryCtxRetain")
	_, err := f.lib.NewDevice(t.Context(), cuda.DeviceOptions{CallTimeout: hasty})
	wantLost(t, err, "open gpu 0: gpu lost: open: no answer for 20ms", "xid")
	if f.lib.Stuck() != 1 {
		t.Errorf("%d threads stuck", f.lib.Stuck())
	}
	dev := f.open(cuda.DeviceOptions{})
	do(t, dev, func(c *cuda.Context) error { return c.Synchronize() })
}

func TestCancelledWhileOpening(t *testing.T) {
	f := newFake(t)
	f.block("cuDevicePrimaryCtxRetain")
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := f.lib.NewDevice(ctx, cuda.DeviceOptions{CallTimeout: unhurried})
		result <- err
	}()
	f.awaitBlock()
	cancel()
	f.release()
	if err := <-result; !errors.Is(err, context.Canceled) || err.Error() != "open gpu 0: context canceled" {
		t.Errorf("error %v", err)
	}
	if f.refs(0) != 0 {
		t.Errorf("context retained %d times", f.refs(0))
	}
}

func TestLostWhileClosing(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{CallTimeout: time.Second})
	f.block("cuDevicePrimaryCtxRelease_v2")
	wantLost(t, dev.Close(), "gpu lost: release the context: no answer for 1s", "xid")
	wantLost(t, dev.Do(t.Context(), "next", nil), "gpu lost: release the context: no answer for 1s", "xid")
}

// A call that fails for good and whose release then hangs.
func TestLostTwice(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{CallTimeout: time.Second})
	f.fail("cuCtxSynchronize", 719, 0)
	const text = "gpu lost: infer: call cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure"
	wantLost(t, dev.Do(t.Context(), "infer", (*cuda.Context).Synchronize), text, "Xid")
	f.block("cuDevicePrimaryCtxRelease_v2")
	wantLost(t, dev.Close(), text, "Xid")
}

func TestSticky(t *testing.T) {
	refusal := func(code int) error { return &platform.DriverError{Code: code} }
	for _, c := range []struct {
		name   string
		err    error
		code   int
		sticky bool
	}{
		{"nil", nil, 0, false},
		{"another kind", errors.New("no"), 0, false},
		{"out of memory", refusal(2), 2, false},
		{"too large a grid for a cooperative launch", refusal(720), 720, false},
		{"not ready", refusal(600), 600, false},
		{"wrapped", fmt.Errorf("a: %w", fmt.Errorf("b: %w", refusal(700))), 700, true},
		{"joined, first", errors.Join(refusal(719), errors.New("no")), 719, true},
		{"joined, last", fmt.Errorf("a: %w", errors.Join(refusal(801), errors.New("no"), refusal(999))), 801, true},
		{"two, neither", fmt.Errorf("a: %w, %w", refusal(1), refusal(2)), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if cuda.Code(c.err) != c.code || cuda.Sticky(c.err) != c.sticky {
				t.Errorf("code %d, sticky %v, want %d and %v", cuda.Code(c.err), cuda.Sticky(c.err), c.code, c.sticky)
			}
		})
	}
	var all []int
	for code := range 1000 {
		if cuda.Sticky(refusal(code)) {
			all = append(all, code)
		}
	}
	if got, want := fmt.Sprint(all), "[4 201 214 220 226 700 702 709 710 714 715 716 717 718 719 721 810 911 999]"; got != want {
		t.Errorf("sticky codes %s, want %s", got, want)
	}
}

// What uses a context is counted until it is over, for each card: a thread that hangs,
// and what a library has open there. A lost card lets nobody in any more.
func TestUsers(t *testing.T) {
	f := newFake(t, "COUNT=2")
	dev, other := f.open(cuda.DeviceOptions{}), f.open(cuda.DeviceOptions{Index: 1})
	users := func(want ...int) {
		t.Helper()
		if got := []int{f.lib.Users(0), f.lib.Users(1)}; !slices.Equal(got, want) {
			t.Errorf("users %v, want %v", got, want)
		}
	}
	end, err := dev.Hold()
	if err != nil {
		t.Fatal(err)
	}
	users(2, 1)
	f.block("cuCtxSynchronize")
	_ = dev.DoWithin(t.Context(), "hang", hasty, (*cuda.Context).Synchronize)
	<-dev.Lost()
	_ = dev.Close()
	if _, err := dev.Hold(); !errors.As(err, new(*cuda.LostError)) {
		t.Errorf("held: %v", err)
	}
	end()
	end()
	users(1, 1)
	f.release()
	<-dev.Ended()
	users(0, 1)
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	users(0, 0)
}

// Failures that only their names are known of.
func TestNamed(t *testing.T) {
	for name, want := range map[string][2]bool{ // sticky, the context is gone
		"CUDA_ERROR_CONTEXT_IS_DESTROYED": {true, true},
		"CUDA_ERROR_INVALID_CONTEXT":      {true, true},
		"CUDA_ERROR_DEINITIALIZED":        {true, true},
		"CUDA_ERROR_LAUNCH_FAILED":        {true, false},
		"CUDA_ERROR_UNKNOWN":              {true, false},
		"CUDA_ERROR_OUT_OF_MEMORY":        {},
		"CUDA_ERROR_INVALID_VALUE":        {},
		"":                                {},
	} {
		e := cuda.StickyNamed("cuvidMapVideoFrame", name, "text")
		if e == nil {
			if want[0] {
				t.Errorf("%s is not sticky", name)
			}
			continue
		}
		lost := &cuda.LostError{Cause: e}
		if got := [2]bool{cuda.Sticky(lost), cuda.ContextGone(lost)}; got != want || e.Name != name || e.Call != "cuvidMapVideoFrame" || e.Hint == "" {
			t.Errorf("%s: %v, %+v", name, got, e)
		}
	}
}

// A card is given up for a reason from elsewhere, once.
func TestLose(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	dev.Lose(errors.New("its decoder"))
	dev.Lose(errors.New("again"))
	<-dev.Lost()
	if err := dev.Do(t.Context(), "next", func(*cuda.Context) error { return nil }); err == nil || err.Error() != "gpu lost: its decoder" {
		t.Errorf("error %v", err)
	}
}

func TestFaulted(t *testing.T) {
	for code, want := range map[int]bool{700: true, 719: true, 999: true, 201: false, 709: false, 2: false, 101: false, 214: false} {
		err := fmt.Errorf("infer: %w", &platform.DriverError{Call: "cuEventQuery", Code: code})
		if got := cuda.Faulted(&cuda.LostError{Cause: err}); got != want {
			t.Errorf("%d: %v", code, got)
		}
	}
	if cuda.Faulted(nil) || cuda.Faulted(&cuda.LostError{Cause: &cuda.TimeoutError{}}) {
		t.Error("what no kernel did")
	}
}
