package overlay

// rect is a rectangle of canvas pixels; x1 and y1 are not in it.
type rect struct{ x0, y0, x1, y1 int }

func (r rect) empty() bool { return r.x0 >= r.x1 || r.y0 >= r.y1 }

func (r rect) meets(o rect) bool {
	return r.x0 < o.x1 && o.x0 < r.x1 && r.y0 < o.y1 && o.y0 < r.y1
}

// clip cuts r to the canvas.
func (c *Canvas) clip(r rect) rect {
	return rect{max(r.x0, 0), max(r.y0, 0), min(r.x1, c.Width), min(r.y1, c.Height)}
}

// fill paints r. Chroma is painted where the samples under r begin, so that
// rectangles with even corners are exact.
func (c *Canvas) fill(r rect, k ink) {
	c.blend(r, k, 256)
}

// blend mixes k into r, on of 256.
func (c *Canvas) blend(r rect, k ink, on int) {
	c.blendLuma(r, k.y, on)
	r = c.clip(r)
	half := rect{r.x0 / 2, r.y0 / 2, (r.x1 + 1) / 2, (r.y1 + 1) / 2}
	if r.empty() {
		return
	}
	for y := half.y0; y < half.y1; y++ {
		mix(c.Cb[y*c.StrideC:][half.x0:half.x1], k.cb, on)
		mix(c.Cr[y*c.StrideC:][half.x0:half.x1], k.cr, on)
	}
}

// blendLuma mixes y into r and leaves the colour.
func (c *Canvas) blendLuma(r rect, y byte, on int) {
	r = c.clip(r)
	if r.empty() {
		return
	}
	for i := r.y0; i < r.y1; i++ {
		mix(c.Y[i*c.StrideY:][r.x0:r.x1], y, on)
	}
}

func mix(row []byte, v byte, on int) {
	for i, old := range row {
		row[i] = byte((int(old)*(256-on) + int(v)*on + 128) >> 8)
	}
}

// frame paints the lines of a box inside of r, with a thin dark edge on both sides
// that keeps it visible on anything.
func (c *Canvas) frame(r rect, line int, k ink) {
	inner := rect{r.x0 + line, r.y0 + line, r.x1 - line, r.y1 - line}
	edge := max(line/4, 1)
	c.ring(rect{r.x0 - edge, r.y0 - edge, r.x1 + edge, r.y1 + edge}, edge, func(side rect) {
		c.blendLuma(side, plateY, edgeOn)
	})
	if inner.empty() {
		c.fill(r, k)
		return
	}
	c.ring(r, line, func(side rect) { c.fill(side, k) })
	c.ring(inner, edge, func(side rect) { c.blendLuma(side, plateY, edgeOn) })
}

// ring gives the four sides of the inside of r, without overlap.
func (c *Canvas) ring(r rect, line int, side func(rect)) {
	if r.x1-r.x0 <= 2*line || r.y1-r.y0 <= 2*line {
		side(r)
		return
	}
	side(rect{r.x0, r.y0, r.x1, r.y0 + line})
	side(rect{r.x0, r.y1 - line, r.x1, r.y1})
	side(rect{r.x0, r.y0 + line, r.x0 + line, r.y1 - line})
	side(rect{r.x1 - line, r.y0 + line, r.x1, r.y1 - line})
}

// stamp lays a glyph's mask in white with its first sample at x, y.
func (c *Canvas) stamp(g *glyph, x, y int, in rect) {
	in = c.clip(in)
	for row := range g.height {
		cy := y + row
		if cy < in.y0 || cy >= in.y1 {
			continue
		}
		line := c.Y[cy*c.StrideY:]
		for i, a := range g.mask[row*g.width:][:g.width] {
			if cx := x + i; a != 0 && cx >= in.x0 && cx < in.x1 {
				on := int(a) + int(a)>>7 // 255 becomes 256
				line[cx] = byte((int(line[cx])*(256-on) + textY*on + 128) >> 8)
			}
		}
	}
}
