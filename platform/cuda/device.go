package cuda

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/platform"
)

// defaultCallTimeout is how long a call may take before the GPU counts as lost. The
// promise is that inference is unhealthy within 5 s; half a second of that is left for
// timers on a machine that is short of processors. It is no less, as a healthy card
// can be held up by whoever else holds the driver's locks: a few hundred decoders that
// were closed at once took 3 s. The slowest healthy call by itself is loading PTX on a
// Jetson, well under a second.
const defaultCallTimeout = 4500 * time.Millisecond

// DeviceOptions say which device is opened and how it is watched.
type DeviceOptions struct {
	Index int // ordinal of Driver.Devices
	// CallTimeout is the longest that one Do may take. It defaults to 4.5 s.
	CallTimeout time.Duration
	// CPUs are the processors near the device: its goroutine's thread stays on them.
	// Empty means any.
	CPUs   []int
	Logger *slog.Logger // it defaults to discarding
}

// Device is one GPU in use: one goroutine, locked to its thread, that holds the
// primary context and makes every call. Methods are safe for concurrent use.
type Device struct {
	timeout time.Duration
	logger  *slog.Logger
	gpu     platform.GPU // set before NewDevice returns

	// in
	work    chan *task
	salvage chan *task // for a lost one
	quit    chan struct{}
	// out
	loss  *loss                // for everybody
	after atomic.Pointer[loss] // that of a salvaged device; nil = it was not salvaged
	done  chan struct{}        // closed last, when the goroutine has ended

	watch    watchdog
	users    func(n int64) // counts on the driver what uses the device's context
	closing  sync.Once
	released error // set before done is closed
}

type task struct {
	name  string
	limit time.Duration
	run   func(*Context) error
	err   error         // set before done is closed
	done  chan struct{} // run has returned
}

// NewDevice retains the primary context of a device, the one that FFmpeg and
// ONNX Runtime use too, so that memory, streams and events are shared. Open it
// before those libraries touch the GPU: whoever is first decides how waiting
// threads wait, and FFmpeg takes no other way than ours.
//
// The error is a *platform.UnavailableError, a *platform.DriverError, a
// *LostError where the driver does not answer, or ctx's; ctx ends with the call.
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
		work: make(chan *task), salvage: make(chan *task), quit: make(chan struct{}), loss: newLoss(), done: make(chan struct{}),
	}
	dev.watch.late, dev.watch.stuck = dev.hang, &d.stuck
	dev.users = func(n int64) { d.use(o.Index, n) }
	dev.users(1)
	opened := make(chan error, 1)
	go dev.run(table, o, opened)
	if err := dev.awaitOpen(ctx, opened); err != nil {
		return nil, fmt.Errorf("open gpu %d: %w", o.Index, err)
	}
	return dev, nil
}

func (dev *Device) awaitOpen(ctx context.Context, opened <-chan error) error {
	select {
	case err := <-opened:
		if err != nil {
			<-dev.done
			return err
		}
	case <-dev.loss.lost:
		_ = dev.Close() // what lost it says more
		return dev.loss.reason
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		_ = dev.Close() // waits as long as the watchdog allows
	}
	return ctx.Err()
}

// GPU is the device as the driver describes it; the bus is left to
// platform.Detect.
func (dev *Device) GPU() platform.GPU { return dev.gpu }

// MemInfo gives the device's free and total memory in bytes.
func (dev *Device) MemInfo(ctx context.Context) (free, total uint64, err error) {
	m := new([2]uint64) // its own, as a call that is given up on may still write
	err = dev.Do(ctx, "ask for free memory", func(c *Context) (err error) {
		m[0], m[1], err = c.MemInfo()
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return m[0], m[1], nil
}

// Do runs f on the device's goroutine and waits for it. Nothing of the Context
// may be kept, and f must not call Do or Close. A lost device answers every Do
// at once with a *LostError, also those that wait; f may then be stuck in the
// driver and still use what it was given, so leave that alone. ctx ends the
// wait for f's turn, not f.
func (dev *Device) Do(ctx context.Context, name string, f func(*Context) error) error {
	return dev.DoWithin(ctx, name, dev.timeout, f)
}

// DoWithin is Do for work that may take longer than DeviceOptions.CallTimeout,
// such as loading an engine. Everyone else waits for as long.
func (dev *Device) DoWithin(ctx context.Context, name string, limit time.Duration, f func(*Context) error) error {
	l := dev.now()
	if err := dev.refuse(ctx, l); err != nil {
		return err
	}
	t := &task{name: name, limit: limit, run: f, done: make(chan struct{})}
	select {
	case dev.work <- t:
	case <-l.lost:
		return l.reason
	case <-dev.quit:
		return ErrDeviceClosed
	case <-dev.done: // without quit: a task ended the goroutine
		return ErrDeviceClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-t.done:
		return t.err
	case <-l.lost:
		return l.reason
	case <-dev.done:
		return dev.unfinished(t)
	}
}

// refuse says why a task need not be tried. It comes first because select takes
// any of the channels that are ready.
func (dev *Device) refuse(ctx context.Context, l *loss) error {
	if err := l.err(); err != nil {
		return err
	}
	select {
	case <-dev.quit:
		return ErrDeviceClosed
	default:
		return ctx.Err()
	}
}

// unfinished is the answer to a task that was taken by a goroutine which has
// ended.
func (dev *Device) unfinished(t *task) error {
	select {
	case <-t.done:
		return t.err
	default:
		return fmt.Errorf("%s: it ended the goroutine: %w", t.name, ErrDeviceClosed)
	}
}

// Close releases the context and ends the goroutine, after the Do that is on.
// Free memory, streams, events and modules first: others may hold the context.
// On a device that is lost by a hanging call Close returns the *LostError at
// once and leaves the thread behind, as nothing can end it (Driver.Stuck counts
// it); should the call return, the thread ends. Close may be called again.
func (dev *Device) Close() error {
	dev.closing.Do(func() { close(dev.quit) })
	l := dev.now()
	select {
	case <-dev.done:
		return dev.released
	case <-l.hung:
	}
	select {
	case <-dev.done:
		return dev.released
	default:
		return l.reason
	}
}

// Hold says that a library works in the device's context, or has something open there,
// on a thread that is not the device's, until end is called: Driver.Users counts it. The
// error is the *LostError of a lost device.
func (dev *Device) Hold() (end func(), err error) {
	dev.users(1)
	if err := dev.Err(); err != nil {
		dev.users(-1)
		return nil, err
	}
	return sync.OnceFunc(func() { dev.users(-1) }), nil
}

// run is the device's goroutine. CUDA keeps the current context per thread, so
// it must not move; the thread ends with it, as the driver's state for it would
// otherwise meet the next goroutine.
func (dev *Device) run(table *calls, o DeviceOptions, opened chan<- error) {
	runtime.LockOSThread()
	defer close(dev.done)
	defer dev.users(-1)
	if err := stayOn(o.CPUs); err != nil {
		dev.logger.Warn("the GPU's thread is not kept near it", "err", err)
	}
	c := &Context{calls: table}
	if err := dev.open(c, o); err != nil {
		opened <- err
		return
	}
	defer dev.release(c)
	opened <- nil
	for dev.next(c) {
	}
}

func (dev *Device) open(c *Context, o DeviceOptions) (err error) {
	dev.watch.arm("open", dev.timeout)
	defer dev.watch.disarm()
	if dev.gpu, err = c.calls.api.device(int32(o.Index)); err != nil {
		return err
	}
	foreign, err := c.open(o.Index)
	if err != nil {
		return err
	}
	if foreign {
		dev.logger.Warn("the GPU's context was made by other code: waits may burn processor time, NVDEC may be refused", "gpu", dev.gpu.UUID)
	}
	return nil
}

// next serves one task. It is false when the device is closed; a lost one waits for
// that, or to be salvaged.
func (dev *Device) next(c *Context) bool {
	work := dev.work
	if dev.now().err() != nil {
		work = nil
	}
	select {
	case <-dev.quit:
		return false
	case t := <-work:
		dev.serve(c, t)
	case t := <-dev.salvage:
		dev.serve(c, t)
	}
	return true
}

func (dev *Device) serve(c *Context, t *task) {
	dev.watch.arm(t.name, t.limit)
	t.err = t.run(c)
	dev.watch.disarm()
	if Sticky(t.err) {
		dev.lose(fmt.Errorf("%s: %w", t.name, t.err))
		t.err = dev.now().reason
	}
	close(t.done)
}

// release gives the context back. What a lost one says to that is no news.
func (dev *Device) release(c *Context) {
	dev.watch.arm("release the context", dev.timeout)
	defer dev.watch.disarm()
	if err := c.close(); err != nil && dev.Err() == nil {
		dev.released = fmt.Errorf("close gpu: %w", err)
	}
}
