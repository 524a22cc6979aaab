package overlay

import (
	"math"
	"strconv"
)

// mark is an item on the canvas.
type mark struct {
	box    rect
	colour ink
	item   int
}

// annotate draws the boxes, then the plates with text above all of them.
func (r *Renderer) annotate(items []Item, g geometry) {
	c := &r.canvas
	s := fitSizes(min(c.Width, c.Height))
	r.boxes = r.boxes[:0]
	for i := range items {
		if box, ok := place(items[i].Box, g, s.line); ok {
			r.boxes = append(r.boxes, mark{box, r.colours[choose(&items[i])], i})
		}
	}
	for _, m := range r.boxes {
		c.frame(m.box, s.line, m.colour)
	}
	if s.text == 0 {
		return
	}
	r.writer.setSize(s.text)
	r.placed = r.placed[:0]
	for _, m := range r.boxes {
		r.label(&items[m.item], m, s)
	}
}

// place gives the pixels of a box, with even corners so that colour and brightness
// of its lines cover the same pixels, and large enough for its lines.
func place(b [4]float32, g geometry, line int) (rect, bool) {
	for i, v := range b {
		if v != v {
			return rect{}, false
		}
		b[i] = min(max(v, 0), 1)
	}
	if b[0] >= b[2] || b[1] >= b[3] {
		return rect{}, false
	}
	x0, x1 := even(b[0], g.shownX, g.width), even(b[2], g.shownX, g.width)
	y0, y1 := even(b[1], g.shownY, g.height), even(b[3], g.shownY, g.height)
	x0, x1 = widen(x0, x1, 2*line, g.width)
	y0, y1 = widen(y0, y1, 2*line, g.height)
	return rect{x0, y0, x1, y1}, true
}

func even(part float32, shown float64, limit int) int {
	return min(2*int(math.Round(float64(part)*shown/2)), limit)
}

// widen makes a stretch at least least long, within limit.
func widen(from, to, least, limit int) (int, int) {
	if to-from >= least {
		return from, to
	}
	from = max(min((from+to-least)/4*2, limit-least), 0)
	return from, min(from+least, limit)
}

// label writes an item's text on a plate near its box.
func (r *Renderer) label(it *Item, m mark, s sizes) {
	w := &r.writer
	bar := 2 * s.line // the stripe in the box's colour that ties plate and box
	pad := max(s.text/4, 2)
	r.compose(it, r.canvas.Width-bar-2*pad)
	if len(r.text) == 0 {
		return
	}
	width := (bar + 2*pad + w.width(r.text) + 1) &^ 1
	height := (w.ascent + w.descent + pad/2 + 1) &^ 1
	p := r.findPlace(m.box, width, height, s.line)
	r.placed = append(r.placed, p)
	c := &r.canvas
	c.blend(p, ink{plateY, 128, 128}, plateOn)
	c.fill(rect{p.x0, p.y0, p.x0 + bar, p.y1}, m.colour)
	x, base := p.x0+bar+pad, p.y0+pad/4+w.ascent
	for _, letter := range r.text {
		gl := w.glyph(letter)
		c.stamp(gl, x+gl.left, base+gl.top, p)
		x += gl.advance
	}
}

// findPlace puts a plate above its box, else inside at the top, else below, else
// inside at the bottom, else ever farther above and below: the first that lies in
// the picture and on no other plate. If there is none it is the first that lies in
// the picture.
func (r *Renderer) findPlace(box rect, width, height, line int) rect {
	c := &r.canvas
	right := max((c.Width-width)&^1, 0)
	var first rect
	try := func(x, y int) (rect, bool) {
		x = min(x, right)
		p := rect{x, y, min(x+width, c.Width), y + height}
		if y < 0 || p.y1 > c.Height {
			return p, false
		}
		if first.empty() {
			first = p
		}
		return p, !r.taken(p)
	}
	in := box.x0 + line
	for _, at := range [...][2]int{
		{box.x0, box.y0 - height},
		{in, box.y0 + line},
		{box.x0, box.y1},
		{in, box.y1 - line - height},
		{box.x0, box.y0 - 2*height},
		{box.x0, box.y1 + height},
		{box.x0, box.y0 - 3*height},
		{box.x0, box.y1 + 2*height},
	} {
		if p, ok := try(at[0], at[1]); ok {
			return p
		}
	}
	if first.empty() {
		return rect{0, 0, min(width, c.Width), min(height, c.Height)}
	}
	return first
}

func (r *Renderer) taken(p rect) bool {
	for _, o := range r.placed {
		if p.meets(o) {
			return true
		}
	}
	return false
}

// compose sets r.text to label, score and id, the label shortened so that all of
// it is at most limit pixels long.
func (r *Renderer) compose(it *Item, limit int) {
	w := &r.writer
	r.number = r.number[:0]
	if it.Score > 0 { // false for NaN
		r.number = strconv.AppendInt(r.number, int64(min(it.Score, 1)*100+0.5), 10)
		r.number = append(r.number, " %"...)
	}
	if it.Track != 0 {
		if len(r.number) > 0 {
			r.number = append(r.number, "  "...)
		}
		r.number = append(r.number, '#')
		r.number = strconv.AppendUint(r.number, it.Track, 10)
	}
	r.text = w.runes(r.text[:0], it.Label)
	left := limit
	if len(r.number) > 0 {
		for _, b := range r.number {
			left -= w.glyph(rune(b)).advance
		}
		left -= w.glyph(' ').advance
	}
	r.shorten(left)
	if len(r.number) > 0 && len(r.text) > 0 {
		r.text = append(r.text, ' ')
	}
	for _, b := range r.number {
		r.text = append(r.text, rune(b))
	}
}

// shorten cuts r.text to px pixels, with … where something is missing.
func (r *Renderer) shorten(px int) {
	w := &r.writer
	total := w.width(r.text)
	if total <= px {
		return
	}
	dots := w.glyph('…').advance
	for len(r.text) > 0 && total+dots > px {
		last := len(r.text) - 1
		total -= w.glyph(r.text[last]).advance
		r.text = r.text[:last]
	}
	if total+dots <= px {
		r.text = append(r.text, '…')
	}
}
