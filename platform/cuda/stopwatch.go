package cuda

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"
)

// Stopwatch measures what is queued on a stream, by the device's clock. It
// belongs to the goroutine of its Device.
type Stopwatch struct {
	from, to Event
	gate     Host   // a word that held streams wait for; none where the driver holds no streams
	turn     uint32 // what the gate was opened to last
}

// NewStopwatch makes one.
func (c *Context) NewStopwatch() (*Stopwatch, error) {
	w := &Stopwatch{}
	if err := w.open(c); err != nil {
		return nil, errors.Join(err, w.Close(c))
	}
	return w, nil
}

func (w *Stopwatch) open(c *Context) (err error) {
	for _, e := range []*Event{&w.from, &w.to} {
		if *e, err = c.NewEvent(true); err != nil {
			return err
		}
	}
	if c.calls.fn[streamWaitValue] == 0 {
		return nil
	}
	if w.gate, err = c.HostAlloc(4); err != nil {
		return err
	}
	clear(w.gate.Bytes)
	return nil
}

// Time gives the time on the device between the first command that queue puts on
// s and the last. What the device waits for the processor in between counts.
func (w *Stopwatch) Time(c *Context, s Stream, queue func() error) (time.Duration, error) {
	return w.finish(c, w.put(c, s, queue))
}

// TimeHeld is Time with the device held until all is queued, where the driver can
// do that: the commands follow one another as they do behind other work, and the
// processor's speed does not count. queue must not wait for s, and must have run
// once before: the driver may want the device idle to load a kernel.
func (w *Stopwatch) TimeHeld(c *Context, s Stream, queue func() error) (time.Duration, error) {
	if err := w.hold(c, s); err != nil {
		return 0, err
	}
	err := w.put(c, s, queue)
	w.release()
	return w.finish(c, err)
}

func (w *Stopwatch) put(c *Context, s Stream, queue func() error) error {
	if err := c.Record(w.from, s); err != nil {
		return err
	}
	if err := queue(); err != nil {
		return err
	}
	return c.Record(w.to, s)
}

func (w *Stopwatch) finish(c *Context, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	if err := c.WaitEvent(w.to); err != nil {
		return 0, err
	}
	ms, err := c.ElapsedMS(w.from, w.to)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// hold makes s wait for release.
func (w *Stopwatch) hold(c *Context, s Stream) error {
	if w.gate.Bytes == nil {
		return nil
	}
	const atLeast = 0 // CU_STREAM_WAIT_VALUE_GEQ
	w.turn++
	err := c.queue(streamWaitValue, uintptr(s), uintptr(w.gate.Device), uintptr(w.turn), atLeast)
	if Code(err) == CodeNotSupported {
		gate := w.gate
		w.gate = Host{}
		return c.HostFree(gate)
	}
	return err
}

func (w *Stopwatch) release() {
	if w.gate.Bytes != nil {
		atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(w.gate.Bytes))), w.turn)
	}
}

// Close gives back what NewStopwatch took, once the stream is idle.
func (w *Stopwatch) Close(c *Context) error {
	err := errors.Join(c.FreeEvent(w.from), c.FreeEvent(w.to), c.HostFree(w.gate))
	*w = Stopwatch{}
	return err
}
