//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"edgecam/platform"
)

// defaultCallTimeout is how long a call may take before the GPU counts as lost.
// The slowest healthy one is loading PTX on a Jetson, well under a second.
const defaultCallTimeout = 5 * time.Second

// DeviceOptions say which device is opened and how it is watched.
type DeviceOptions struct {
	Index int // ordinal of Driver.Devices
	// CallTimeout is the longest that one Do may take. It defaults to 5 s.
	CallTimeout time.Duration
	Logger      *slog.Logger // it defaults to discarding
}

// Device is one GPU in use: one goroutine, locked to its thread, that holds the
// primary context and makes every call. Methods are safe for concurrent use.
type Device struct {
	timeout time.Duration
	logger  *slog.Logger

	// in
	work chan task
	quit chan struct{}
	// out
	lost chan struct{}
	done chan struct{} // closed last, when the goroutine has ended

	closing sync.Once
	losing  sync.Once
	reason  error // set before lost is closed
}

type task struct {
	name string
	run  func(*Context) error
	err  chan error // cap 1
}

// LostError says that the GPU does not answer any more: a call hangs, or failed
// in a way after which CUDA serves no further ones in this context. The device
// must be closed; a new one may work.
type LostError struct{ Cause error }

// Error implements error.
func (e *LostError) Error() string { return "gpu lost: " + e.Cause.Error() }

// Unwrap gives what lost it.
func (e *LostError) Unwrap() error { return e.Cause }

// ErrDeviceClosed is the answer of a device after Close.
var ErrDeviceClosed = errors.New("gpu device closed")

// NewDevice retains the primary context of a device, the one that FFmpeg and
// ONNX Runtime use too, so that memory, streams and events are shared.
func (d *Driver) NewDevice(ctx context.Context, o DeviceOptions) (*Device, error) {
	table, err := d.calls()
	if err != nil {
		return nil, err
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = defaultCallTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dev := &Device{
		timeout: o.CallTimeout, logger: o.Logger,
		work: make(chan task), quit: make(chan struct{}),
		lost: make(chan struct{}), done: make(chan struct{}),
	}
	opened := make(chan error, 1)
	go dev.run(table, o.Index, opened)
	select {
	case err := <-opened:
		if err != nil {
			<-dev.done
			return nil, fmt.Errorf("open gpu %d: %w", o.Index, err)
		}
		return dev, nil
	case <-ctx.Done():
		dev.Close() //nolint:errcheck // the caller asked to stop
		return nil, ctx.Err()
	}
}

// Do runs f on the device's goroutine and waits for it. f and what it got from
// the context belong to that goroutine; nothing of the Context may be kept. A
// lost device answers every Do at once with a *LostError, also those that wait.
func (dev *Device) Do(ctx context.Context, name string, f func(*Context) error) error {
	t := task{name: name, run: f, err: make(chan error, 1)}
	select {
	case dev.work <- t:
	case <-dev.lost:
		return dev.lostError()
	case <-dev.done:
		return ErrDeviceClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	// The task is running: ctx no longer ends the wait, as f may use the
	// caller's memory until it returns. The watchdog bounds it.
	select {
	case err := <-t.err:
		return err
	case <-dev.lost:
		return dev.lostError()
	}
}

// Lost is closed when the device does not answer any more.
func (dev *Device) Lost() <-chan struct{} { return dev.lost }

// Close releases the context and ends the goroutine. On a lost device whose
// call hangs it leaves the thread behind: nothing can end it. It may be called
// twice.
func (dev *Device) Close() error {
	dev.closing.Do(func() { close(dev.quit) })
	select {
	case <-dev.done:
		return nil
	case <-dev.lost:
	}
	// The last call may have failed rather than hung: then the goroutine ends.
	grace := time.NewTimer(dev.timeout / 10)
	defer grace.Stop()
	select {
	case <-dev.done:
		return nil
	case <-grace.C:
		return dev.lostError()
	}
}

func (dev *Device) lostError() error { return &LostError{Cause: dev.reason} }

func (dev *Device) lose(cause error) {
	dev.losing.Do(func() {
		dev.reason = cause
		dev.logger.Error("gpu lost", "err", cause)
		close(dev.lost)
	})
}

// run is the device's goroutine. CUDA keeps the current context per thread, so
// it must not move; the thread is not given back, as the driver's thread state
// would come with it.
func (dev *Device) run(table *calls, index int, opened chan<- error) {
	runtime.LockOSThread()
	defer close(dev.done)
	c := &Context{calls: table}
	watch := dev.watch("open")
	err := c.open(index)
	watch()
	opened <- err
	if err != nil {
		return
	}
	defer dev.release(c)
	for {
		select {
		case <-dev.quit:
			return
		case t := <-dev.work:
			dev.serve(c, t)
		}
	}
}

func (dev *Device) serve(c *Context, t task) {
	watch := dev.watch(t.name)
	err := t.run(c)
	watch()
	if err != nil && Sticky(err) {
		dev.lose(fmt.Errorf("%s: %w", t.name, err))
	}
	t.err <- err
}

// watch arms the watchdog for one task; the answer disarms it.
func (dev *Device) watch(name string) (stop func()) {
	timer := time.AfterFunc(dev.timeout, func() {
		dev.lose(fmt.Errorf("%s: no answer for %s", name, dev.timeout))
	})
	return func() { timer.Stop() }
}

func (dev *Device) release(c *Context) {
	defer dev.watch("release context")()
	if err := c.close(); err != nil {
		dev.logger.Warn("release gpu context", "err", err)
	}
}

// Sticky says whether an error means that the context serves no more calls:
// illegal access, launch failures, uncorrectable memory errors, a GPU that has
// fallen off the bus, and the driver's "unknown"
// (https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html).
func Sticky(err error) bool {
	var e *platform.DriverError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case 4, 201, 214, 219, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 720, 721, 999:
		return true
	}
	return false
}
