package framepool

import "fmt"

const (
	strideAlign = 64   // bytes; a cache line and the widest vector load
	slotAlign   = 4096 // bytes; slots start on pages of the smallest kind
	// maxSide bounds the samples of a side so that sizes fit an int32 and a
	// corrupt header cannot ask for the machine's memory.
	maxSide = 1 << 15
)

// NewLayout places the planes of a w × h picture one after another with
// strides that are multiples of 64 bytes. Decoders with rules of their own for
// edges and alignment make their Layout themselves.
func NewLayout(f PixelFormat, w, h int) (Layout, error) {
	if f.Planes() == 0 {
		return Layout{}, fmt.Errorf("lay out picture: pixel format %v", f)
	}
	if w < 1 || h < 1 || w > maxSide || h > maxSide {
		return Layout{}, fmt.Errorf("lay out picture: size %d×%d, want 1 to %d a side", w, h, maxSide)
	}
	l := Layout{Format: f, Width: w, Height: h}
	for i := range f.Planes() {
		cols, rows := f.PlaneSize(i, w, h)
		l.Offset[i] = l.Size
		l.Stride[i] = alignUp(cols*f.SampleBytes(), strideAlign)
		l.Size += l.Stride[i] * rows
	}
	return l, nil
}

// Validate says what keeps the layout from holding its picture: a plane that
// leaves the slot, rows that overlap, a stride that is no multiple of 64.
func (l Layout) Validate() error {
	if l.Format.Planes() == 0 {
		return fmt.Errorf("layout: pixel format %v", l.Format)
	}
	if l.Width < 1 || l.Height < 1 || l.Width > maxSide || l.Height > maxSide {
		return fmt.Errorf("layout: size %d×%d, want 1 to %d a side", l.Width, l.Height, maxSide)
	}
	for i := range l.Format.Planes() {
		if l.Stride[i]%strideAlign != 0 {
			return fmt.Errorf("layout: plane %d: stride %d is no multiple of %d", i, l.Stride[i], strideAlign)
		}
	}
	return fits(l.Format, l.Width, l.Height, l.Offset, l.Stride, l.Size)
}

// fits checks that every plane of a w × h picture lies in size bytes.
func fits(f PixelFormat, w, h int, offset, stride [3]int, size int) error {
	if w < 1 || h < 1 {
		return fmt.Errorf("picture of %d×%d samples", w, h)
	}
	for i := range f.Planes() {
		cols, rows := f.PlaneSize(i, w, h)
		row := cols * f.SampleBytes()
		if stride[i] < row {
			return fmt.Errorf("plane %d: stride %d is less than a row of %d bytes", i, stride[i], row)
		}
		if end := offset[i] + (rows-1)*stride[i] + row; offset[i] < 0 || end > size {
			return fmt.Errorf("plane %d: bytes %d to %d leave the slot of %d", i, offset[i], end, size)
		}
	}
	return nil
}

// planeBytes is what plane i takes from its first visible sample to the last.
func planeBytes(f PixelFormat, i, w, h, stride int) int {
	cols, rows := f.PlaneSize(i, w, h)
	if rows == 0 {
		return 0
	}
	return (rows-1)*stride + cols*f.SampleBytes()
}

func alignUp(n, a int) int { return (n + a - 1) / a * a }
