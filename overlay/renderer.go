package overlay

import (
	"fmt"

	"edgecam/framepool"
)

// Options say how pictures are rendered.
type Options struct {
	MaxWidth int // pixels; wider pictures shrink to it or one less, as the canvas is even; 0 = as they are
}

// Item is one thing to mark.
type Item struct {
	Label string     // any text; it is shown in the letters that the font has
	Track uint64     // shown as #12 and choosing the colour; 0 = none
	Score float32    // 0..1, shown in per cent; not above 0 = not shown
	Box   [4]float32 // x1, y1, x2, y2 in fractions (0..1) of the picture
}

// Canvas is a rendered picture: I420, 8 bit, full range, BT.601. Width and
// Height are even; strides are bytes. The chroma planes have half the size.
type Canvas struct {
	Width, Height    int
	Y, Cb, Cr        []byte
	StrideY, StrideC int
}

// Renderer makes canvases. It belongs to one goroutine at a time and allocates
// nothing while geometry, text size and letters stay the same.
type Renderer struct {
	opts    Options
	canvas  Canvas
	copier  copier
	writer  writer
	colours [12]ink
	boxes   []mark
	placed  []rect // plates on the canvas
	text    []rune // of the item at hand
	number  []byte // its score and id
}

// NewRenderer returns a renderer. It fails only if the built-in font is broken.
func NewRenderer(o Options) (*Renderer, error) {
	if o.MaxWidth < 0 || o.MaxWidth == 1 {
		return nil, fmt.Errorf("make renderer: width limit %d is neither 0 nor at least 2", o.MaxWidth)
	}
	r := &Renderer{opts: o, colours: colours()}
	if err := r.writer.open(); err != nil {
		return nil, fmt.Errorf("make renderer: %w", err)
	}
	return r, nil
}

// Render copies the picture of f, which it borrows, to the canvas and marks items
// on it if annotate is set. The canvas is valid until the next Render.
func (r *Renderer) Render(f *framepool.Frame, items []Item, annotate bool) (Canvas, error) {
	m := f.Meta()
	var cause string
	switch {
	case m.Format.Planes() == 0:
		cause = fmt.Sprintf("pixel format %s is not supported", m.Format)
	case m.Width < 1 || m.Height < 1:
		cause = fmt.Sprintf("picture of %dx%d is empty", m.Width, m.Height)
	case f.Memory() == framepool.MemoryDevice:
		cause = "picture lies in device memory, out of the processor's reach"
	}
	if cause != "" {
		return Canvas{}, fmt.Errorf("render picture %d of camera %s: %s", m.Seq, m.Camera, cause)
	}
	g := fitCanvas(m.Width, m.Height, r.opts.MaxWidth)
	r.canvas.resize(g.width, g.height)
	r.copier.copy(&r.canvas, f, g)
	if annotate {
		r.annotate(items, g)
	}
	return r.canvas, nil
}

// geometry is the size of a canvas and how much of the picture, in its samples, a
// canvas pixel covers.
type geometry struct {
	width, height int
	stepX, stepY  float64
	// shownX and shownY are the part of the canvas that shows the picture: all, or
	// one less if the picture's side is odd.
	shownX, shownY float64
}

func fitCanvas(w, h, limit int) geometry {
	if limit == 0 || (w+1)&^1 <= limit {
		return geometry{
			width: (w + 1) &^ 1, height: (h + 1) &^ 1,
			stepX: 1, stepY: 1, shownX: float64(w), shownY: float64(h),
		}
	}
	cw := limit &^ 1
	ch := max((h*cw+w)/(2*w)*2, 2)
	return geometry{
		width: cw, height: ch,
		stepX: float64(w) / float64(cw), stepY: float64(h) / float64(ch),
		shownX: float64(cw), shownY: float64(ch),
	}
}

// resize gives the canvas a size. Rows start 64 bytes apart from each other's
// multiples, as the encoder's vector code likes.
func (c *Canvas) resize(w, h int) {
	if c.Width == w && c.Height == h {
		return
	}
	c.Width, c.Height = w, h
	c.StrideC = (w/2 + 63) &^ 63
	c.StrideY = 2 * c.StrideC
	luma, chroma := c.StrideY*h, c.StrideC*h/2
	b := make([]byte, luma+2*chroma)
	c.Y = b[:luma:luma]
	c.Cb = b[luma : luma+chroma : luma+chroma]
	c.Cr = b[luma+chroma:]
}
