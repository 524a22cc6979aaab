package overlay_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"edgecam/framepool"
	"edgecam/overlay"
)

var formats = []framepool.PixelFormat{
	framepool.I420, framepool.I422, framepool.I444, framepool.Gray8,
	framepool.I420P10, framepool.I422P10, framepool.I444P10, framepool.Gray10,
	framepool.NV12, framepool.P010,
}

// picture is a picture as plain numbers, the codes of Y, Cb and Cr by row and
// column, and subX by subY luma samples for each of chroma.
type picture struct {
	format     framepool.PixelFormat
	w, h       int
	subX, subY int // 0 in grey pictures
	deep       bool
	codes      [3][][]int
}

// newPicture asks at for every code, 8 bit; 10-bit pictures get four times as much.
func newPicture(f framepool.PixelFormat, w, h int, at func(component, x, y int) int) *picture {
	p := &picture{format: f, w: w, h: h, subX: 2, subY: 2}
	switch f {
	case framepool.I422, framepool.I422P10:
		p.subY = 1
	case framepool.I444, framepool.I444P10:
		p.subX, p.subY = 1, 1
	case framepool.Gray8, framepool.Gray10:
		p.subX, p.subY = 0, 0
	}
	switch f {
	case framepool.I420P10, framepool.I422P10, framepool.I444P10, framepool.Gray10, framepool.P010:
		p.deep = true
	}
	for c := range p.codes {
		cw, ch := w, h
		if c > 0 {
			if p.subX == 0 {
				break
			}
			cw, ch = (w+p.subX-1)/p.subX, (h+p.subY-1)/p.subY
		}
		p.codes[c] = make([][]int, ch)
		for y := range p.codes[c] {
			p.codes[c][y] = make([]int, cw)
			for x := range p.codes[c][y] {
				v := at(c, x, y)
				if p.deep {
					v *= 4
				}
				p.codes[c][y][x] = v
			}
		}
	}
	return p
}

func noise(seed uint64) func(c, x, y int) int {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(_, _, _ int) int { return r.IntN(256) }
}

func flat(y, cb, cr int) func(c, x, y int) int {
	return func(c, _, _ int) int { return [3]int{y, cb, cr}[c] }
}

// planes lays the picture out as its format says, rows longer than needed.
func (p *picture) planes() (planes [][]byte, stride [3]int) {
	size := 1
	if p.deep {
		size = 2
	}
	add := func(components ...int) {
		rows := p.codes[components[0]]
		step := size * len(components)
		st := len(rows[0])*step + 10
		b := make([]byte, len(rows)*st)
		for i := range b {
			b[i] = 0x5A
		}
		for k, c := range components {
			for y, row := range p.codes[c] {
				for x, v := range row {
					at := y*st + x*step + k*size
					switch {
					case size == 1:
						b[at] = byte(v)
					case p.format == framepool.P010:
						binary.LittleEndian.PutUint16(b[at:], uint16(v<<6))
					default:
						binary.LittleEndian.PutUint16(b[at:], uint16(v))
					}
				}
			}
		}
		stride[len(planes)] = st
		planes = append(planes, b)
	}
	add(0)
	switch {
	case p.subX == 0:
	case p.format == framepool.NV12 || p.format == framepool.P010:
		add(1, 2)
	default:
		add(1)
		add(2)
	}
	return planes, stride
}

func (p *picture) frame(tb testing.TB, r framepool.Range, m framepool.Matrix) *framepool.Frame {
	tb.Helper()
	planes, stride := p.planes()
	f := framepool.NewHeapFrame(framepool.Meta{
		Camera: "gate", Seq: 7, Format: p.format, Width: p.w, Height: p.h, Stride: stride, Range: r, Matrix: m,
	}, planes)
	tb.Cleanup(f.Release)
	return f
}

func newRenderer(tb testing.TB, maxWidth int) *overlay.Renderer {
	tb.Helper()
	r, err := overlay.NewRenderer(overlay.Options{MaxWidth: maxWidth})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func render(tb testing.TB, r *overlay.Renderer, f *framepool.Frame, items []overlay.Item, annotate bool) overlay.Canvas {
	tb.Helper()
	c, err := r.Render(f, items, annotate)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// keep copies a canvas, so that it outlives the next Render.
func keep(c overlay.Canvas) overlay.Canvas {
	c.Y = append([]byte(nil), c.Y...)
	c.Cb = append([]byte(nil), c.Cb...)
	c.Cr = append([]byte(nil), c.Cr...)
	return c
}

// equal compares what is visible.
func equal(a, b overlay.Canvas) bool {
	if a.Width != b.Width || a.Height != b.Height {
		return false
	}
	same := func(p, q []byte, ps, qs, w, h int) bool {
		for y := range h {
			if !bytes.Equal(p[y*ps:][:w], q[y*qs:][:w]) {
				return false
			}
		}
		return true
	}
	return same(a.Y, b.Y, a.StrideY, b.StrideY, a.Width, a.Height) &&
		same(a.Cb, b.Cb, a.StrideC, b.StrideC, a.Width/2, a.Height/2) &&
		same(a.Cr, b.Cr, a.StrideC, b.StrideC, a.Width/2, a.Height/2)
}
