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
	b = b[:(c.width-1)*c.step+c.bytes]
	done := 0
	switch {
	case c.step == 2 && c.bytes == 1:
		done = everySecond(out, b)
	case c.step == 2:
		done = narrow(out, b, c.shift)
	}
	half := uint(1) << c.shift >> 1
	for i := done; i < len(out); i++ {
		if at := i * c.step; c.bytes == 1 {
			out[i] = b[at]
		} else {
			v := uint(binary.LittleEndian.Uint16(b[at:]))
			out[i] = byte(min((v+half)>>c.shift, 255))
		}
	}
	return out
}

// everySecond takes the first of each pair of bytes, four at a time, and says how
// many it took.
func everySecond(out, b []byte) (n int) {
	for ; len(out) >= 4 && len(b) >= 8; n += 4 {
		v := binary.LittleEndian.Uint64(b) & 0x00ff00ff00ff00ff
		binary.LittleEndian.PutUint32(out, pack(v))
		out, b = out[4:], b[8:]
	}
	return n
}

// narrow rounds 16-bit words to bytes by leaving shift bits off, four at a time, and
// says how many it did. A word that would round to 256 becomes 255.
func narrow(out, b []byte, shift uint) (n int) {
	half := uint64(0x0001000100010001) << shift >> 2
	for ; len(out) >= 4 && len(b) >= 8; n += 4 {
		// One bit leaves first, so that adding half cannot carry into the next word.
		v := binary.LittleEndian.Uint64(b) >> 1 & 0x7fff7fff7fff7fff
		v = (v + half) >> ((shift - 1) & 15) & 0x01ff01ff01ff01ff
		v -= v >> 8 & 0x0001000100010001
		binary.LittleEndian.PutUint32(out, pack(v))
		out, b = out[4:], b[8:]
	}
	return n
}

// pack moves the low bytes of four words together.
func pack(v uint64) uint32 {
	v = (v | v>>8) & 0x0000ffff0000ffff
	return uint32(v | v>>16)
}
