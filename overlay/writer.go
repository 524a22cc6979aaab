package overlay

import (
	"fmt"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/norm"
)

// maxGlyphs bounds the glyphs that are kept; labels of one model have some 50
// different letters.
const maxGlyphs = 1024

// glyph is one letter as coverage, 0..255.
type glyph struct {
	width, height int
	left, top     int // from the pen on the base line to the mask's first sample
	advance       int
	mask          []byte
}

// writer turns text into glyphs of one size. The font is Go Bold (BSD licence),
// which has the letters of Latin, Greek and Cyrillic.
type writer struct {
	font            *sfnt.Font
	buffer          sfnt.Buffer
	size            int
	face            font.Face
	ascent, descent int
	glyphs          map[rune]*glyph
	composed        []byte
}

func (w *writer) open() error {
	f, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return fmt.Errorf("parse font: %w", err)
	}
	w.font = f
	return nil
}

// setSize forgets the glyphs of another size.
func (w *writer) setSize(px int) {
	if w.size == px {
		return
	}
	// NewFace fails only on a nil font.
	face, err := opentype.NewFace(w.font, &opentype.FaceOptions{Size: float64(px), DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		panic("overlay: " + err.Error())
	}
	w.size, w.face, w.glyphs = px, face, make(map[rune]*glyph)
	m := face.Metrics()
	w.ascent, w.descent = m.Ascent.Ceil(), m.Descent.Ceil()
}

// runes appends what can be shown of a text: composed letters, no control codes
// and nothing invisible, which could turn or hide what stands beside it.
func (w *writer) runes(out []rune, text string) []rune {
	w.composed = norm.NFC.AppendString(w.composed[:0], text)
	for _, r := range string(w.composed) {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			out = append(out, ' ')
		case unicode.IsPrint(r):
			out = append(out, r)
		}
	}
	return out
}

// glyph gives the glyph of a letter at the present size; U+FFFD or ? stands for
// letters that the font lacks.
func (w *writer) glyph(r rune) *glyph {
	if g := w.glyphs[r]; g != nil {
		return g
	}
	if len(w.glyphs) >= maxGlyphs {
		clear(w.glyphs)
	}
	g := &glyph{}
	for _, try := range [...]rune{r, '\uFFFD', '?'} {
		if i, err := w.font.GlyphIndex(&w.buffer, try); err == nil && i != 0 {
			g = w.draw(try)
			break
		}
	}
	w.glyphs[r] = g
	return g
}

func (w *writer) draw(r rune) *glyph {
	box, mask, at, advance, ok := w.face.Glyph(fixed.Point26_6{}, r)
	if !ok {
		return &glyph{}
	}
	g := &glyph{
		width: box.Dx(), height: box.Dy(), left: box.Min.X, top: box.Min.Y,
		advance: advance.Round(), mask: make([]byte, box.Dx()*box.Dy()),
	}
	for y := range g.height {
		for x := range g.width {
			_, _, _, a := mask.At(at.X+x, at.Y+y).RGBA()
			g.mask[y*g.width+x] = byte(a >> 8)
		}
	}
	return g
}

// width is the length of a text in pixels.
func (w *writer) width(text []rune) (px int) {
	for _, r := range text {
		px += w.glyph(r).advance
	}
	return px
}
