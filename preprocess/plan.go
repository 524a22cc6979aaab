package preprocess

import (
	"edgecam/framepool"
	"edgecam/infer"
)

// shape is what the tables depend on.
type shape struct {
	width, height int
	format        framepool.PixelFormat
}

// plan holds the tables of one shape of pictures.
type plan struct {
	shape         shape
	transform     Transform
	x, y          int // of the picture's first sample in the input
	width, height int // of the picture there
	luma          sampling
	chroma        sampling
	cb, cr        place
	colour        bool // chroma, cb and cr are set
	deep          bool // samples are 16-bit words
	shift         uint // of their codes
}

// place says where a component begins.
type place struct {
	plane int
	first int // byte of the first sample in its row
}

// sampling says which samples of a component make those of the input.
type sampling struct {
	next       int   // bytes from a column to the next, 0 if there is one column
	row        int   // rows from a row to the next, 0 if there is one row
	cols, rows []tap // columns in bytes, rows in rows
	width      int   // bytes from the first sample of a row to the end of its last
	reader     reader
}

func newPlan(s shape, spec infer.InputSpec) *plan {
	t := NewTransform(s.width, s.height, spec)
	p := &plan{
		shape: s, transform: t,
		x: int(t.PadX), y: int(t.PadY), width: int(t.Width), height: int(t.Height),
	}
	size := s.format.SampleBytes()
	p.deep = size == 2
	if s.format == framepool.P010 {
		p.shift = 6
	}
	p.luma = p.sample(0, 0, size, size)
	p.colour = s.format.Planes() > 1
	if !p.colour {
		return p
	}
	sx, sy := s.format.ChromaShift()
	if s.format.SemiPlanar() {
		p.chroma = p.sample(sx, sy, 2*size, size)
		p.cb, p.cr = place{1, 0}, place{1, size}
		return p
	}
	p.chroma = p.sample(sx, sy, size, size)
	p.cb, p.cr = place{1, 0}, place{2, 0}
	return p
}

// vectorise lets the assembly read what it can.
func (p *plan) vectorise() {
	size := p.shape.format.SampleBytes()
	p.luma.reader = newReader(&p.luma, size, p.shift, false)
	if p.colour {
		pair := p.cb.plane == p.cr.plane && p.cr.first == p.cb.first+size
		p.chroma.reader = newReader(&p.chroma, size, p.shift, pair)
	}
}

// sample makes the tables of a component that is subsampled by 1<<sx and 1<<sy
// and whose samples of size bytes are step bytes apart.
func (p *plan) sample(sx, sy uint, step, size int) sampling {
	w, h := p.shape.width, p.shape.height
	cols, rows := (w+1<<sx-1)>>sx, (h+1<<sy-1)>>sy
	s := sampling{
		next:  step,
		row:   1,
		cols:  axis(p.width, cols, float64(w)/float64(int(1)<<sx), step),
		rows:  axis(p.height, rows, float64(h)/float64(int(1)<<sy), 1),
		width: (cols-1)*step + size,
	}
	if cols == 1 {
		s.next = 0
	}
	if rows == 1 {
		s.row = 0
	}
	return s
}

// rows gives the two rows of a component that output row i lies between, and the
// weight of the second.
func (p *plan) rows(f *framepool.Frame, at place, s *sampling, i int) (rows, uint32) {
	plane, stride := f.Plane(at.plane), f.Stride(at.plane)
	t := s.rows[i]
	top := int(t.at)*stride + at.first
	bottom := top + s.row*stride
	return rows{plane[top:][:s.width], plane[bottom:][:s.width]}, t.w
}

// gatherLuma interpolates Y of output row i.
func (p *plan) gatherLuma(dst []uint32, f *framepool.Frame, i int) {
	y, w := p.rows(f, place{}, &p.luma, i)
	p.weighLuma(dst, y, w)
}

// weighLuma is gatherLuma of two rows: with vectors as far as they reach.
func (p *plan) weighLuma(dst []uint32, y rows, wy uint32) {
	n := p.luma.reader.gather(dst, y, p.luma.cols, wy)
	dst, taps := dst[n:], p.luma.cols[n:]
	if p.deep {
		gather16(dst, y, p.luma.next, taps, wy, p.shift)
		return
	}
	gather8(dst, y, p.luma.next, taps, wy)
}

// gatherChroma interpolates Cb and Cr of output row i.
func (p *plan) gatherChroma(dst []uint64, f *framepool.Frame, i int) {
	u, w := p.rows(f, p.cb, &p.chroma, i)
	v, _ := p.rows(f, p.cr, &p.chroma, i)
	p.weighChroma(dst, u, v, w)
}

// weighChroma is gatherChroma of two rows.
func (p *plan) weighChroma(dst []uint64, u, v rows, wy uint32) {
	n := p.chroma.reader.gatherPair(dst, u, v, p.chroma.cols, wy)
	dst, taps := dst[n:], p.chroma.cols[n:]
	if p.deep {
		gatherPair16(dst, u, v, p.chroma.next, taps, wy, p.shift)
		return
	}
	gatherPair8(dst, u, v, p.chroma.next, taps, wy)
}
