package framepool

import (
	"fmt"
	"sync/atomic"
)

// live counts the handles (frames and buffers) of the process. It is the one
// variable of the package: leak tests need the sum over all pools, also those
// that a test has lost.
var live atomic.Int64 //nolint:gochecknoglobals // see above

// Live is the number of Frame and Buffer handles that are not released yet, in
// the whole process.
func Live() int64 { return live.Load() }

// Frame is a handle of a published picture: shared, read-only for ever. The
// methods but Release may be called by several goroutines; Release ends the
// handle, and every later call on it panics.
type Frame struct {
	pool     *Pool         // nil for a heap or device frame
	planes   [][]byte      // of a heap frame
	device   *deviceMemory // of a device frame
	meta     *Meta
	slot     int
	gen      uint32
	released atomic.Bool
	track    tracker
}

// published is a first handle together with the description that all handles
// of the picture share.
type published struct {
	frame Frame
	meta  Meta
}

// publish makes the first handle of a slot whose reference the caller gives up.
func publish(to *published, p *Pool, slot int, gen uint32, m Meta) *Frame {
	to.meta = m
	f := &to.frame
	f.pool, f.slot, f.gen, f.meta = p, slot, gen, &to.meta
	live.Add(1)
	trackFrame(f)
	return f
}

// NewHeapFrame makes a frame of bytes in ordinary memory, for synthetic
// sources and tests. Plane i starts with its first visible sample and rows are
// m.Stride[i] apart; m.Offset is set to 0. It panics where a plane is missing
// or too short.
func NewHeapFrame(m Meta, planes [][]byte) *Frame {
	m.Offset = [3]int{}
	n := m.Format.Planes()
	if n == 0 || len(planes) != n {
		panic(fmt.Sprintf("framepool: heap frame of format %v with %d planes", m.Format, len(planes)))
	}
	f := &published{meta: m}
	f.frame.meta = &f.meta
	f.frame.planes = make([][]byte, n)
	for i, b := range planes {
		want := planeBytes(m.Format, i, m.Width, m.Height, m.Stride[i])
		if m.Stride[i] < 0 || len(b) < want {
			panic(fmt.Sprintf("framepool: heap frame: plane %d has %d bytes, want %d", i, len(b), want))
		}
		f.frame.planes[i] = b[:want:want]
	}
	live.Add(1)
	trackFrame(&f.frame)
	return &f.frame
}

func (f *Frame) check(verb string) {
	if f.released.Load() {
		panic(fmt.Sprintf("framepool: %s of frame %s/%d after its release", verb, f.meta.Camera, f.meta.Seq))
	}
}

// Retain makes another handle of the same picture, to be released on its own.
func (f *Frame) Retain() *Frame {
	f.check("retain")
	if f.pool != nil && !retainWord(f.pool.region.word(f.slot), f.gen) {
		panic(fmt.Sprintf("framepool: retain of frame %s/%d: generation %d is stale", f.meta.Camera, f.meta.Seq, f.gen))
	}
	if f.device != nil {
		f.device.refs.Add(1) // this handle keeps it above 0
	}
	n := &Frame{pool: f.pool, planes: f.planes, device: f.device, meta: f.meta, slot: f.slot, gen: f.gen}
	live.Add(1)
	trackFrame(n)
	return n
}

// Release ends the handle. The last one of a picture frees its slot, unless a
// decoder still needs it as a reference.
func (f *Frame) Release() {
	if f.released.Swap(true) {
		panic(fmt.Sprintf("framepool: frame %s/%d released twice", f.meta.Camera, f.meta.Seq))
	}
	live.Add(-1)
	f.track.end()
	switch {
	case f.pool != nil:
		f.pool.drop(f.slot, f.gen)
	case f.device != nil:
		f.device.drop()
	}
}

// Meta describes the picture. It is shared by all handles: do not write it.
func (f *Frame) Meta() *Meta {
	f.check("meta")
	return f.meta
}

// Plane gives plane i from its first visible sample to its last, with rows
// Stride(i) apart; nil for a plane that the format lacks and for a picture in
// device memory. It is valid until the handle is released. Do not write it.
func (f *Frame) Plane(i int) []byte {
	f.check("plane")
	m := f.meta
	if i < 0 || i >= m.Format.Planes() || f.device != nil {
		return nil
	}
	if f.pool == nil {
		return f.planes[i]
	}
	o := f.slot*f.pool.slotStride + m.Offset[i]
	e := o + planeBytes(m.Format, i, m.Width, m.Height, m.Stride[i])
	return f.pool.region.pixels[o:e:e]
}

// Span gives all planes in one piece, from the first sample of the first to the
// last of the last, with what lies between them, and where each plane begins in
// it. It is nil where they do not lie in one piece in the order of the format. It
// is valid until the handle is released. Do not write it.
func (f *Frame) Span() (all []byte, begins [3]int) {
	f.check("span")
	m := f.meta
	if f.device != nil || f.pool == nil {
		return nil, begins
	}
	last := m.Format.Planes() - 1
	for i := 1; i <= last; i++ {
		if m.Offset[i] <= m.Offset[i-1] {
			return nil, begins
		}
		begins[i] = m.Offset[i] - m.Offset[0]
	}
	slot := f.slot * f.pool.slotStride
	o, e := slot+m.Offset[0], slot+m.Offset[last]+planeBytes(m.Format, last, m.Width, m.Height, m.Stride[last])
	return f.pool.region.pixels[o:e:e], begins
}

// Stride is the distance of two rows of plane i in bytes.
func (f *Frame) Stride(i int) int {
	f.check("stride")
	return f.meta.Stride[i]
}

// Memory says where the samples lie.
func (f *Frame) Memory() MemoryKind {
	f.check("memory kind")
	switch {
	case f.device != nil:
		return MemoryDevice
	case f.pool == nil:
		return MemoryHeap
	default:
		return f.pool.memory()
	}
}

// DevicePlane gives the device's address of the first visible sample of plane
// i, and false where no GPU sees it. It is valid until the handle is released:
// hold the handle until the device has finished.
func (f *Frame) DevicePlane(i int) (uintptr, bool) {
	f.check("device plane")
	if i < 0 || i >= f.meta.Format.Planes() {
		return 0, false
	}
	if f.device != nil {
		return f.device.planes[i], true
	}
	if f.pool == nil || !f.pool.onDevice {
		return 0, false
	}
	return f.pool.device + uintptr(f.slot*f.pool.slotStride+f.meta.Offset[i]), true
}
