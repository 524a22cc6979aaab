package overlay

import "edgecam/framepool"

// copier brings frames to the canvas: scaled, in its range and matrix.
type copier struct {
	made   bool
	tone   tone
	parts  [3]component
	scales [3]scaler
	shift  []int16 // of the luma of one row of chroma samples
}

// copy writes the whole canvas.
func (c *copier) copy(to *Canvas, f *framepool.Frame, g geometry) {
	m := f.Meta()
	c.tone.set(toneKey{m.Range, m.Matrix}, c.made)
	c.made = true
	colour := m.Format.Planes() > 1
	c.open(f, 0, g, to.Width, to.Height, 1, 1)
	if colour {
		sx, sy := m.Format.ChromaShift()
		for i := 1; i < 3; i++ {
			// A canvas chroma sample covers 2 by 2 pixels of the canvas.
			c.open(f, i, g, to.Width/2, to.Height/2, 2/float64(int(1)<<sx), 2/float64(int(1)<<sy))
		}
		if len(c.shift) != to.Width/2 {
			c.shift = make([]int16, to.Width/2)
		}
	}
	for j := range to.Height / 2 {
		if colour {
			c.chroma(to, j)
		}
		c.luma(to, 2*j, colour)
		c.luma(to, 2*j+1, colour)
	}
	if !colour {
		grey(to.Cb)
		grey(to.Cr)
	}
}

func (c *copier) open(f *framepool.Frame, i int, g geometry, cols, rows int, kx, ky float64) {
	p := &c.parts[i]
	p.open(f, i)
	c.scales[i].set(scaleKey{p.width, p.height, cols, rows, g.stepX * kx, g.stepY * ky})
}

func (c *copier) chroma(to *Canvas, j int) {
	n := to.Width / 2
	cb, cr := to.Cb[j*to.StrideC:][:n], to.Cr[j*to.StrideC:][:n]
	srcCb := c.scales[1].row(cb, &c.parts[1], j)
	srcCr := c.scales[2].row(cr, &c.parts[2], j)
	c.tone.chromaRow(cb, cr, srcCb, srcCr, c.shift)
}

func (c *copier) luma(to *Canvas, j int, colour bool) {
	y := to.Y[j*to.StrideY:][:to.Width]
	src := c.scales[0].row(y, &c.parts[0], j)
	if colour && c.tone.cross {
		c.tone.shiftedRow(y, src, c.shift)
		return
	}
	c.tone.lumaRow(y, src)
}

// grey sets a plane to no colour.
func grey(plane []byte) {
	for i := range plane {
		plane[i] = 128
	}
}
