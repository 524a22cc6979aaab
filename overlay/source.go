package overlay

import (
	"encoding/binary"

	"edgecam/framepool"
)

// component reads the samples of Y, Cb or Cr of one frame as 8-bit rows.
type component struct {
	plane         []byte
	stride        int
	width, height int // samples
	first, step   int // bytes to the first sample of a row and from one to the next
	bytes         int // of a sample
	shift         uint
	row8          []byte // room for a row that does not lie in the plane as it is needed
}

// open points the component at number i (0 Y, 1 Cb, 2 Cr) of a frame.
func (c *component) open(f *framepool.Frame, i int) {
	m := f.Meta()
	plane, first, step := i, 0, m.Format.SampleBytes()
	c.bytes = step
	c.width, c.height = m.Width, m.Height
	if i > 0 {
		sx, sy := m.Format.ChromaShift()
		c.width, c.height = (m.Width+1<<sx-1)>>sx, (m.Height+1<<sy-1)>>sy
		if m.Format.SemiPlanar() {
			plane, first, step = 1, (i-1)*step, 2*step
		}
	}
	c.plane, c.stride, c.first, c.step = f.Plane(plane), f.Stride(plane), first, step
	c.shift = 2
	if m.Format == framepool.P010 {
		c.shift = 8
	}
	if len(c.row8) < c.width {
		c.row8 = make([]byte, c.width)
	}
}

// row gives row y: where it lies, if it lies there as bytes in sequence. It is
// valid until the next call.
func (c *component) row(y int) []byte {
	b := c.plane[y*c.stride+c.first:]
	if c.step == 1 {
		return b[:c.width]
	}
	out := c.row8[:c.width]
	if c.bytes == 1 {
		b = b[:2*len(out)-1]
		for i := range out {
			out[i] = b[2*i]
		}
		return out
	}
	half := uint(1) << c.shift >> 1
	for i := range out {
		v := uint(binary.LittleEndian.Uint16(b[i*c.step:]))
		out[i] = byte(min((v+half)>>c.shift, 255))
	}
	return out
}
