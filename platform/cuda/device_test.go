//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"edgecam/platform"
	"edgecam/platform/cuda"
)

func TestOpen(t *testing.T) {
	f := newFake(t, "COUNT=2", "V2")
	log, text := journal()
	dev := f.open(cuda.DeviceOptions{Index: 1, Logger: log})
	g := dev.GPU()
	if g.Index != 1 || g.UUID != "MIG-02a1a2a3-a4a5-a6a7-a8a9-aaabacadae65" || g.ComputeCapability != "8.9" || g.PCIAddress != "10000:18:02.0" {
		t.Errorf("GPU %+v", g)
	}
	if f.refs(0) != 0 || f.refs(1) != 1 {
		t.Errorf("contexts retained: %d and %d", f.refs(0), f.refs(1))
	}
	if f.flags(1) != 4 {
		t.Errorf("flags %d, want 4: waiting threads sleep, and FFmpeg takes no other", f.flags(1))
	}
	free, total, err := dev.MemInfo(t.Context())
	if free != 12<<30 || total != 12<<30 || err != nil {
		t.Errorf("memory %d of %d, error %v", free, total, err)
	}
	do(t, dev, func(c *cuda.Context) error {
		if c.Handle() == 0 {
			t.Error("no handle")
		}
		return errors.Join(c.Current(), c.Synchronize())
	})
	for range 2 {
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if f.refs(1) != 0 {
		t.Errorf("context retained %d times after close", f.refs(1))
	}
	if text.Len() != 0 {
		t.Errorf("log %s", text)
	}
	for _, err := range []error{
		dev.Do(t.Context(), "late", func(*cuda.Context) error { t.Error("run"); return nil }),
		second(dev.MemInfo(t.Context())),
	} {
		if !errors.Is(err, cuda.ErrDeviceClosed) {
			t.Errorf("error %v", err)
		}
	}
	if dev.Err() != nil {
		t.Errorf("err %v", dev.Err())
	}
}

func second(_, _ uint64, err error) error { return err }

// Drivers of JetPack 4 lack the names that came with CUDA 11.
func TestOpenCUDA10(t *testing.T) {
	f := newFake(t, "CUDA10")
	dev := f.open(cuda.DeviceOptions{})
	if err := dev.Close(); err != nil || f.flags(0) != 4 || f.refs(0) != 0 {
		t.Errorf("error %v, flags %d, retained %d", err, f.flags(0), f.refs(0))
	}
}

func TestOpenHeldContext(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags uint32
		text  string
	}{
		{"with our flags", 4, ""},
		{"with others", 0, "NVDEC may be refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			log, text := journal()
			f.retain(0, c.flags)
			dev := f.open(cuda.DeviceOptions{Logger: log})
			if f.flags(0) != c.flags || f.refs(0) != 2 || f.calls("cuDevicePrimaryCtxSetFlags_v2") != 0 {
				t.Errorf("flags %d, retained %d, flags set %d times", f.flags(0), f.refs(0), f.calls("cuDevicePrimaryCtxSetFlags_v2"))
			}
			if (c.text == "") != (text.Len() == 0) {
				t.Errorf("log %q", text)
			}
			contains(t, "log", text.String(), c.text)
			if err := dev.Close(); err != nil || f.refs(0) != 1 {
				t.Errorf("error %v, retained %d after close", err, f.refs(0))
			}
		})
	}
	t.Run("since just now", func(t *testing.T) {
		f := newFake(t)
		log, text := journal()
		f.fail("cuDevicePrimaryCtxSetFlags_v2", 708, 0)
		f.open(cuda.DeviceOptions{Logger: log})
		contains(t, "log", text.String(), "NVDEC may be refused")
	})
}

func TestOpenFails(t *testing.T) {
	for _, c := range []struct{ name, call, text string }{
		{"query", "cuDeviceGet", "open gpu 0: call cuDeviceGet: CUDA_ERROR_UNKNOWN (999): unknown error"},
		{"state", "cuDevicePrimaryCtxGetState", "open gpu 0: call cuDevicePrimaryCtxGetState: CUDA_ERROR_UNKNOWN (999): unknown error"},
		{"flags", "cuDevicePrimaryCtxSetFlags_v2", "open gpu 0: call cuDevicePrimaryCtxSetFlags_v2: CUDA_ERROR_UNKNOWN (999): unknown error"},
		{"retain", "cuDevicePrimaryCtxRetain", "open gpu 0: call cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN (999): unknown error"},
		{"current", "cuCtxSetCurrent", "open gpu 0: call cuCtxSetCurrent: CUDA_ERROR_UNKNOWN (999): unknown error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.fail(c.call, 999, 0)
			dev, err := f.lib.NewDevice(t.Context(), cuda.DeviceOptions{})
			if dev != nil || err == nil || err.Error() != c.text {
				t.Errorf("device %v, error %v", dev, err)
			}
			if f.refs(0) != 0 {
				t.Errorf("context retained %d times", f.refs(0))
			}
		})
	}
	t.Run("no such device", func(t *testing.T) {
		_, err := newFake(t).lib.NewDevice(t.Context(), cuda.DeviceOptions{Index: 7})
		if cuda.Code(err) != 101 || err.Error() != "open gpu 7: call cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("driver refuses", func(t *testing.T) {
		_, err := newFake(t, "INIT=803").lib.NewDevice(t.Context(), cuda.DeviceOptions{})
		if cuda.Code(err) != platform.CodeSystemDriverDiffer {
			t.Errorf("error %v", err)
		}
	})
	t.Run("driver lacks a call", func(t *testing.T) {
		f := newFake(t, "NO_LAUNCH")
		if _, err := f.lib.Devices(); err != nil {
			t.Errorf("devices: %v", err)
		}
		_, err := f.lib.NewDevice(t.Context(), cuda.DeviceOptions{})
		var missing *platform.UnavailableError
		if !errors.As(err, &missing) || missing.Hint == "" {
			t.Fatalf("error %v", err)
		}
		contains(t, "error", err.Error(), "find symbol cuLaunchKernel")
	})
}

// All calls come from one thread: the stand-in, as the driver, knows the current
// context per thread and gives 201 on any other.
func TestDoFromManyGoroutines(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	var inside, ran atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				err := dev.Do(t.Context(), "count", func(c *cuda.Context) error {
					if inside.Add(1) != 1 {
						t.Error("two at once")
					}
					defer inside.Add(-1)
					ran.Add(1)
					p, err := c.Alloc(64)
					if err != nil {
						return err
					}
					return c.Free(p)
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if ran.Load() != 1600 || f.live() != 0 {
		t.Errorf("%d ran, %d objects left", ran.Load(), f.live())
	}
}

func TestDoGivesError(t *testing.T) {
	dev := newFake(t).open(cuda.DeviceOptions{})
	mine := errors.New("mine")
	if err := dev.Do(t.Context(), "fail", func(*cuda.Context) error { return mine }); err != mine { //nolint:errorlint // the same one
		t.Errorf("error %v", err)
	}
	if dev.Err() != nil {
		t.Errorf("lost: %v", dev.Err())
	}
}

func TestDoCancelled(t *testing.T) {
	dev := newFake(t).open(cuda.DeviceOptions{})
	ctx, cancel := context.WithCancel(t.Context())

	busy, let := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- dev.Do(ctx, "first", func(*cuda.Context) error { close(busy); <-let; return nil })
	}()
	<-busy
	waiting := make(chan error, 1)
	go func() {
		waiting <- dev.Do(ctx, "second", func(*cuda.Context) error { t.Error("second ran"); return nil })
	}()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that waits: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the one that runs ended early: %v", err)
	default:
	}
	close(let)
	if err := <-first; err != nil {
		t.Errorf("the one that ran: %v", err)
	}
	for range 20 { // the device is idle and would take it
		if err := dev.Do(ctx, "third", func(*cuda.Context) error { t.Error("third ran"); return nil }); !errors.Is(err, context.Canceled) {
			t.Fatalf("with a context that has ended: %v", err)
		}
	}
}

func TestCloseWaitsForDo(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	busy, let := make(chan struct{}), make(chan struct{})
	first, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- dev.Do(t.Context(), "first", func(c *cuda.Context) error { close(busy); <-let; return c.Synchronize() })
	}()
	<-busy
	go func() { closed <- dev.Close() }()
	// It waits for its turn or comes too late for one, as Close is before or after.
	err := dev.Do(t.Context(), "later", func(*cuda.Context) error { t.Error("later ran"); return nil })
	if !errors.Is(err, cuda.ErrDeviceClosed) {
		t.Errorf("one that came later: %v", err)
	}
	select {
	case err := <-closed:
		t.Fatalf("closed during a Do: %v", err)
	default:
	}
	close(let)
	if err := errors.Join(<-first, <-closed); err != nil || f.refs(0) != 0 {
		t.Errorf("error %v, retained %d", err, f.refs(0))
	}
}

func TestCloseFails(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	f.fail("cuDevicePrimaryCtxRelease_v2", 201, 0)
	for range 2 {
		err := dev.Close()
		if err == nil || err.Error() != "close gpu: call cuDevicePrimaryCtxRelease_v2: CUDA_ERROR_INVALID_CONTEXT (201): invalid device context" {
			t.Errorf("error %v", err)
		}
	}
}

// A function that ends its goroutine (as t.FailNow does) takes the device with
// it, but nobody waits for ever.
func TestGoexitInDo(t *testing.T) {
	f := newFake(t)
	dev := f.open(cuda.DeviceOptions{})
	err := dev.Do(t.Context(), "leave", func(*cuda.Context) error { runtime.Goexit(); return nil })
	if !errors.Is(err, cuda.ErrDeviceClosed) || err.Error() != "leave: it ended the goroutine: gpu device closed" {
		t.Errorf("error %v", err)
	}
	if err := dev.Close(); err != nil || f.refs(0) != 0 {
		t.Errorf("close: %v, retained %d", err, f.refs(0))
	}
}
