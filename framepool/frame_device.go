package framepool

import (
	"fmt"
	"sync/atomic"
)

// deviceMemory is a picture that lies in GPU memory, outside of any pool: a
// decoder's surface. All handles of the picture share it.
type deviceMemory struct {
	planes  [3]uintptr // of the first visible samples
	refs    atomic.Int64
	release func()
}

// NewDeviceFrame makes a frame of a picture in GPU memory. planes are the
// device's addresses of the first visible samples, rows are m.Stride[i] apart;
// m.Offset is set to 0. release is called once, when the last handle goes, on
// the goroutine that released it: it gives the surface back and must neither
// block nor use the frame. NewDeviceFrame panics where a plane or release is
// missing or a row is longer than its stride.
func NewDeviceFrame(m Meta, planes [3]uintptr, release func()) *Frame {
	m.Offset = [3]int{}
	if m.Format.Planes() == 0 || m.Width < 1 || m.Height < 1 || release == nil {
		panic(fmt.Sprintf("framepool: device frame of %dx%d in format %v (release %t)", m.Width, m.Height, m.Format, release != nil))
	}
	for i := range m.Format.Planes() {
		cols, _ := m.Format.PlaneSize(i, m.Width, m.Height)
		if planes[i] == 0 || m.Stride[i] < cols*m.Format.SampleBytes() {
			panic(fmt.Sprintf("framepool: device frame: plane %d at %#x with rows of %d bytes, %d apart", i, planes[i], cols*m.Format.SampleBytes(), m.Stride[i]))
		}
	}
	d := &deviceMemory{planes: planes, release: release}
	d.refs.Store(1)
	f := &published{meta: m}
	f.frame.meta, f.frame.device = &f.meta, d
	live.Add(1)
	trackFrame(&f.frame)
	return &f.frame
}

// drop ends one handle's share.
func (d *deviceMemory) drop() {
	if d.refs.Add(-1) == 0 {
		d.release()
	}
}
