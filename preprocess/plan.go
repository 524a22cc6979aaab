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
	shape     shape
	transform Transform
	x, y      int // of the picture's first sample in the input
	luma      component
	chroma    [2]component // Cb and Cr; their columns are nil in grey pictures
	shift     uint         // of 16-bit words
}

// component says where the samples of Y, Cb or Cr lie.
type component struct {
	plane      int
	first      int   // byte of the first sample in its row
	next       int   // bytes from a column to the next, 0 if there is one column
	row        int   // rows from a row to the next, 0 if there is one row
	cols, rows []tap // columns in bytes, rows in rows
	width      int   // bytes of a row, up to the end of its last sample
}

func newPlan(s shape, spec infer.InputSpec) *plan {
	t := NewTransform(s.width, s.height, spec)
	p := &plan{shape: s, transform: t, x: int(t.PadX), y: int(t.PadY)}
	size := s.format.SampleBytes()
	if s.format == framepool.P010 {
		p.shift = 6
	}
	p.luma = p.component(0, 0, 0, 0, size)
	if s.format.Planes() < 2 {
		return p
	}
	sx, sy := s.format.ChromaShift()
	if s.format.SemiPlanar() {
		p.chroma[0] = p.component(1, 0, sx, sy, 2*size)
		p.chroma[1] = p.chroma[0]
		p.chroma[1].first = size
		p.chroma[1].width += size
	} else {
		p.chroma[0] = p.component(1, 0, sx, sy, size)
		p.chroma[1] = p.chroma[0]
		p.chroma[1].plane = 2
	}
	return p
}

// component makes the tables of a component that is subsampled by 1<<sx and
// 1<<sy and whose samples are step bytes apart.
func (p *plan) component(plane, first int, sx, sy uint, step int) component {
	w, h := p.shape.width, p.shape.height
	cw, ch := (w+1<<sx-1)>>sx, (h+1<<sy-1)>>sy
	size := p.shape.format.SampleBytes()
	c := component{
		plane: plane,
		first: first,
		next:  step,
		row:   1,
		cols:  axis(int(p.transform.Width), cw, float64(w)/float64(int(1)<<sx), step),
		rows:  axis(int(p.transform.Height), ch, float64(h)/float64(int(1)<<sy), 1),
		width: first + (cw-1)*step + size,
	}
	if cw == 1 {
		c.next = 0
	}
	if ch == 1 {
		c.row = 0
	}
	return c
}
