//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"math"
)

// Context makes the calls of one device. It is valid inside the function given
// to Device.Do and nowhere else.
type Context struct {
	calls  *calls
	device int32
	ctx    uintptr

	// What C reads and writes during a call lies here, on the heap: a goroutine
	// stack moves when it grows, and with it every address on it.
	out  [2]uint64
	text []byte
	jit  jitArgs
}

// answer is where C writes an answer of up to eight bytes.
func (c *Context) answer() uintptr {
	c.out[0] = 0
	return address(&c.out[0])
}

// open retains the primary context and makes it current on this thread.
func (c *Context) open(index int) error {
	if err := c.calls.do(deviceGet, c.answer(), uintptr(index)); err != nil {
		return err
	}
	c.device = int32(c.out[0])
	if err := c.calls.do(primaryCtxRetain, c.answer(), uintptr(c.device)); err != nil {
		return err
	}
	c.ctx = uintptr(c.out[0])
	if err := c.calls.do(ctxSetCurrent, c.ctx); err != nil {
		return errors.Join(err, c.calls.do(primaryCtxRelease, uintptr(c.device)))
	}
	return nil
}

func (c *Context) close() error {
	return errors.Join(c.calls.do(ctxSetCurrent, 0), c.calls.do(primaryCtxRelease, uintptr(c.device)))
}

// Handle is the CUcontext, for libraries that take one.
func (c *Context) Handle() uintptr { return c.ctx }

// Current makes the context current again on this thread; libraries that were
// called in between may have changed it.
func (c *Context) Current() error { return c.calls.do(ctxSetCurrent, c.ctx) }

// Synchronize waits for everything that was queued on the device.
func (c *Context) Synchronize() error { return c.calls.do(ctxSynchronize) }

// MemInfo gives the device's free and total memory in bytes.
func (c *Context) MemInfo() (free, total uint64, err error) {
	err = c.calls.do(memGetInfo, address(&c.out[0]), address(&c.out[1]))
	return c.out[0], c.out[1], err
}

// Stream is an ordered queue of work (CUstream).
type Stream uintptr

// Event marks a point in a stream (CUevent).
type Event uintptr

// NewStream makes a stream that does not wait for the default stream.
func (c *Context) NewStream() (Stream, error) {
	const nonBlocking = 1
	err := c.calls.do(streamCreate, c.answer(), nonBlocking)
	return Stream(c.out[0]), err
}

// FreeStream ends a stream once its work is done.
func (c *Context) FreeStream(s Stream) error { return c.calls.do(streamDestroy, uintptr(s)) }

// Wait blocks the thread until the stream is empty.
func (c *Context) Wait(s Stream) error { return c.calls.do(streamSynchronize, uintptr(s)) }

// After makes what is queued on s from now on wait for e.
func (c *Context) After(s Stream, e Event) error {
	return c.calls.do(streamWaitEvent, uintptr(s), uintptr(e), 0)
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

// FreeEvent gives an event back.
func (c *Context) FreeEvent(e Event) error { return c.calls.do(eventDestroy, uintptr(e)) }

// Record marks the point that s has reached when everything queued so far is done.
func (c *Context) Record(e Event, s Stream) error {
	return c.calls.do(eventRecord, uintptr(e), uintptr(s))
}

// Reached says whether the marked point has passed.
func (c *Context) Reached(e Event) (bool, error) {
	const notReady = 600
	switch r := c.calls.raw(eventQuery, uintptr(e)); r {
	case 0:
		return true, nil
	case notReady:
		return false, nil
	default:
		return false, c.calls.api.fail(symbols[eventQuery], r)
	}
}

// WaitEvent blocks the thread until the marked point has passed.
func (c *Context) WaitEvent(e Event) error { return c.calls.do(eventSynchronize, uintptr(e)) }

// ElapsedMS gives the time between two reached events made with timing, in
// milliseconds; the driver resolves half a microsecond.
func (c *Context) ElapsedMS(from, to Event) (float32, error) {
	err := c.calls.do(eventElapsed, c.answer(), uintptr(from), uintptr(to))
	return math.Float32frombits(uint32(c.out[0])), err
}

// wrap adds what was asked for to an error.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
