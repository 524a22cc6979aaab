package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Context makes the calls of one device. It is valid inside the function given
// to Device.Do and nowhere else. Errors are *platform.DriverError, wrapped; an
// error of queued work comes out of a later call.
type Context struct {
	calls  *calls
	device int32
	ctx    uintptr
	out    [2]uint64   // where C writes answers; a Context lies on the heap
	args   [11]uintptr // of queue
}

// queue is calls.do for the calls that each batch makes: it allocates nothing.
// For that it gives up the guard over Go pointers: no argument may point into a
// goroutine's stack.
func (c *Context) queue(f call, args ...uintptr) error {
	if code := invoke(c.calls.fn[f], c.args[:copy(c.args[:], args)]...); code != 0 {
		return c.calls.api.fail(f.String(), code)
	}
	return nil
}

// schedBlockingSync makes threads that wait for the device sleep rather than
// spin: a spinning wait costs a core for each thread that waits. FFmpeg takes a
// primary context that is in use only with exactly these flags, no others.
const schedBlockingSync = 4

// open retains the primary context and makes it current on this thread. foreign
// says that others hold it already, with flags that are not ours.
func (c *Context) open(index int) (foreign bool, err error) {
	if err := c.calls.do(deviceGet, c.answer(), uintptr(index)); err != nil {
		return false, err
	}
	c.device = int32(c.out[0])
	if foreign, err = c.setFlags(); err != nil {
		return foreign, err
	}
	if err := c.calls.do(primaryCtxRetain, c.answer(), uintptr(c.device)); err != nil {
		return foreign, err
	}
	c.ctx = uintptr(c.out[0])
	if err := errors.Join(c.Current(), c.mindOwnCaptures()); err != nil {
		return foreign, errors.Join(err, c.calls.do(primaryCtxRelease, uintptr(c.device)))
	}
	return foreign, nil
}

// mindOwnCaptures has the driver refuse this thread nothing because of others. While a
// library captures a CUDA graph in the usual mode, on whatever card, other threads
// else get errors from calls as plain as asking for an event.
func (c *Context) mindOwnCaptures() error {
	if c.calls.fn[threadCaptureMode] == 0 {
		return nil
	}
	const threadLocal = 1
	c.out[0] = threadLocal
	return c.calls.do(threadCaptureMode, uintptr(unsafe.Pointer(&c.out[0])))
}

// setFlags sets the flags of the primary context while nobody holds it.
func (c *Context) setFlags() (foreign bool, err error) {
	const primaryContextActive = 708
	c.out = [2]uint64{}
	err = c.calls.do(primaryCtxGetState, uintptr(c.device), uintptr(unsafe.Pointer(&c.out[0])), uintptr(unsafe.Pointer(&c.out[1])))
	switch flags, active := uint32(c.out[0]), c.out[1] != 0; {
	case err != nil:
		return false, err
	case flags == schedBlockingSync:
		return false, nil
	case active:
		return true, nil
	}
	err = c.calls.do(primaryCtxSetFlags, uintptr(c.device), schedBlockingSync)
	if Code(err) == primaryContextActive { // someone else was faster
		return true, nil
	}
	return false, err
}

func (c *Context) close() error {
	return errors.Join(c.calls.do(ctxSetCurrent, 0), c.calls.do(primaryCtxRelease, uintptr(c.device)))
}

// answer is where C writes an answer of up to eight bytes, little-endian.
func (c *Context) answer() uintptr {
	c.out[0] = 0
	return uintptr(unsafe.Pointer(&c.out[0]))
}

// Handle is the CUcontext, for libraries that take one.
func (c *Context) Handle() uintptr { return c.ctx }

// Current makes the context current again on this thread; libraries that were
// called in between may have changed it.
func (c *Context) Current() error { return c.queue(ctxSetCurrent, c.ctx) }

// Synchronize waits for everything that was queued on the device, by anyone. It
// gives the error of work that failed, also of work that other libraries queued.
func (c *Context) Synchronize() error { return c.calls.do(ctxSynchronize) }

// MemInfo gives the device's free and total memory in bytes.
func (c *Context) MemInfo() (free, total uint64, err error) {
	err = c.calls.do(memGetInfo, uintptr(unsafe.Pointer(&c.out[0])), uintptr(unsafe.Pointer(&c.out[1])))
	if err != nil {
		return 0, 0, err
	}
	return c.out[0], c.out[1], nil
}

// Stream is an ordered queue of work (CUstream). 0 is the default stream.
type Stream uintptr

// Event marks a point in a stream (CUevent). 0 is none.
type Event uintptr

// NewStream makes a stream that does not wait for the default stream.
func (c *Context) NewStream() (Stream, error) {
	const nonBlocking = 1
	err := c.calls.do(streamCreate, c.answer(), nonBlocking)
	return Stream(c.out[0]), err
}

// NewUrgentStream makes a stream whose kernels the device begins before those of
// NewStream's streams, where both wait: the others run in the gaps that it leaves.
func (c *Context) NewUrgentStream() (Stream, error) {
	const nonBlocking = 1
	err := c.calls.do(ctxGetStreamPriorityRange, uintptr(unsafe.Pointer(&c.out[0])), uintptr(unsafe.Pointer(&c.out[1])))
	if err != nil {
		return 0, err
	}
	greatest := uintptr(uint32(c.out[1])) // a C int, negative; 0 where there is one priority
	err = c.calls.do(streamCreateWithPriority, c.answer(), nonBlocking, greatest)
	return Stream(c.out[0]), err
}

// FreeStream ends a stream; what is queued on it is still done. 0 is nothing.
func (c *Context) FreeStream(s Stream) error {
	if s == 0 {
		return nil
	}
	return c.calls.do(streamDestroy, uintptr(s))
}

// Wait blocks the thread until the stream is empty.
func (c *Context) Wait(s Stream) error { return c.queue(streamSynchronize, uintptr(s)) }

// After makes what is queued on s from now on wait for e.
func (c *Context) After(s Stream, e Event) error {
	return c.queue(streamWaitEvent, uintptr(s), uintptr(e), 0)
}

// NewEvent makes an event. Without timing it is cheaper; either kind lets the
// waiting thread sleep rather than spin.
func (c *Context) NewEvent(timing bool) (Event, error) {
	const blockingSync, disableTiming = 1, 2
	flags := uintptr(blockingSync)
	if !timing {
		flags |= disableTiming
	}
	err := c.calls.do(eventCreate, c.answer(), flags)
	return Event(c.out[0]), err
}

// FreeEvent gives an event back. 0 is nothing.
func (c *Context) FreeEvent(e Event) error {
	if e == 0 {
		return nil
	}
	return c.calls.do(eventDestroy, uintptr(e))
}

// Record marks the point that s has reached when everything queued so far is done.
func (c *Context) Record(e Event, s Stream) error {
	return c.queue(eventRecord, uintptr(e), uintptr(s))
}

// Reached says whether the marked point has passed; it has for an event that was
// never recorded.
func (c *Context) Reached(e Event) (bool, error) {
	const notReady = 600
	c.args[0] = uintptr(e)
	switch r := invoke(c.calls.fn[eventQuery], c.args[:1]...); r {
	case 0:
		return true, nil
	case notReady: // an answer, not worth making an error of
		return false, nil
	default:
		return false, c.calls.api.fail(eventQuery.String(), r)
	}
}

// WaitEvent blocks the thread until the marked point has passed.
func (c *Context) WaitEvent(e Event) error { return c.queue(eventSynchronize, uintptr(e)) }

// ElapsedMS gives the time between two reached events made with timing, in
// milliseconds; the driver resolves half a microsecond.
func (c *Context) ElapsedMS(from, to Event) (float32, error) {
	err := c.calls.do(eventElapsed, c.answer(), uintptr(from), uintptr(to))
	if err != nil {
		return 0, err
	}
	return math.Float32frombits(uint32(c.out[0])), nil // C wrote four of the bytes
}

// wrap adds what was asked for to an error.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
