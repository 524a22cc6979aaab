package overlay_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"edgecam/framepool"
	"edgecam/overlay"
)

var person = overlay.Item{Label: "person", Track: 12, Score: 0.87, Box: [4]float32{0.25, 0.25, 0.5, 0.75}}

// area is a rectangle of pixels; x1 and y1 are not in it.
type area struct{ x0, y0, x1, y1 int }

// changed gives the smallest rectangle around all pixels whose luma differs.
func changed(a, b overlay.Canvas) area {
	r := area{a.Width, a.Height, 0, 0}
	for y := range a.Height {
		for x := range a.Width {
			if a.Y[y*a.StrideY+x] != b.Y[y*b.StrideY+x] {
				r = area{min(r.x0, x), min(r.y0, y), max(r.x1, x+1), max(r.y1, y+1)}
			}
		}
	}
	return r
}

// count gives how many pixels differ, in luma, inside of an area.
func count(a, b overlay.Canvas, in area) (n int) {
	for y := in.y0; y < in.y1; y++ {
		for x := in.x0; x < in.x1; x++ {
			if a.Y[y*a.StrideY+x] != b.Y[y*b.StrideY+x] {
				n++
			}
		}
	}
	return n
}

func scene(tb testing.TB, w, h int) *framepool.Frame {
	return newPicture(framepool.I420, w, h, flat(110, 120, 140)).frame(tb, framepool.RangeFull, framepool.MatrixBT601)
}

// pair renders items and nothing on the same frame.
func pair(tb testing.TB, f *framepool.Frame, items ...overlay.Item) (plain, marked overlay.Canvas) {
	tb.Helper()
	r := newRenderer(tb, 0)
	plain = keep(render(tb, r, f, items, false))
	return plain, render(tb, r, f, items, true)
}

func TestRenderNeverTouchesTheFrame(t *testing.T) {
	p := newPicture(framepool.NV12, 320, 180, noise(1))
	planes, stride := p.planes()
	before := [][]byte{bytes.Clone(planes[0]), bytes.Clone(planes[1])}
	f := framepool.NewHeapFrame(framepool.Meta{Format: p.format, Width: 320, Height: 180, Stride: stride}, planes)
	defer f.Release()
	render(t, newRenderer(t, 0), f, []overlay.Item{person}, true)
	for i := range planes {
		if !bytes.Equal(planes[i], before[i]) {
			t.Errorf("plane %d of the frame was written", i)
		}
	}
}

func TestRenderMarksOnlyIfAsked(t *testing.T) {
	f := scene(t, 320, 180)
	plain, marked := pair(t, f, person)
	empty := render(t, newRenderer(t, 0), f, nil, false)
	if !equal(plain, empty) {
		t.Error("items left marks though nothing was to be marked")
	}
	if changed(plain, marked) == (area{320, 180, 0, 0}) {
		t.Error("no mark was drawn")
	}
}

// The lines of a box lie where the box is, in its colour, at any size, and leave
// what is inside.
func TestBoxLiesWhereItShould(t *testing.T) {
	for _, s := range [][2]int{{64, 48}, {320, 180}, {768, 576}, {1917, 1077}, {3840, 2160}} {
		f := scene(t, s[0], s[1])
		item := person
		item.Label, item.Track, item.Score = "", 0, 0 // the box alone
		plain, marked := pair(t, f, item)
		w, h := float64(s[0]), float64(s[1])
		got := changed(plain, marked)
		want := area{int(w * 0.25), int(h * 0.25), int(w * 0.5), int(h * 0.75)}
		slack := 3 + int(h)/500 // the dark edge outside, and corners on even pixels
		for i, d := range []int{got.x0 - want.x0, got.y0 - want.y0, got.x1 - want.x1, got.y1 - want.y1} {
			if d < -slack || d > slack {
				t.Errorf("%v: side %d is off by %d pixels", s, i, d)
			}
		}
		in := area{int(w * 0.3), int(h * 0.35), int(w * 0.45), int(h * 0.65)}
		if n := count(plain, marked, in); n != 0 {
			t.Errorf("%v: %d pixels inside of the box changed", s, n)
		}
		// The middle of the left line, in both chroma and luma: a bright colour.
		x, y := (want.x0+1)&^1, int(h/2)&^1
		luma := marked.Y[y*marked.StrideY+x]
		cb, cr := marked.Cb[y/2*marked.StrideC+x/2], marked.Cr[y/2*marked.StrideC+x/2]
		if luma < 130 || (cb == 120 && cr == 140) {
			t.Errorf("%v: line is %d %d %d, not a bright colour", s, luma, cb, cr)
		}
	}
}

// Text is at least 12 pixels high where there is room, at least a fortieth of the
// picture's height, white on dark, and inside of the picture wherever the box is.
func TestTextIsReadableAndInside(t *testing.T) {
	boxes := map[string][4]float32{
		"middle": {0.4, 0.4, 0.6, 0.6}, "top left": {0, 0, 0.1, 0.1}, "top right": {0.9, 0, 1, 0.2},
		"bottom right": {0.93, 0.9, 1, 1}, "bottom left": {0, 0.95, 0.05, 1}, "all": {0, 0, 1, 1},
	}
	for name, box := range boxes {
		for _, s := range [][2]int{{240, 180}, {768, 576}, {1920, 1080}} {
			f := scene(t, s[0], s[1])
			bare := overlay.Item{Box: box}
			full := overlay.Item{Label: "person", Score: 0.87, Box: box}
			r := newRenderer(t, 0)
			a := keep(render(t, r, f, []overlay.Item{bare}, true))
			b := render(t, r, f, []overlay.Item{full}, true)
			white := area{b.Width, b.Height, 0, 0}
			n := 0
			for y := range b.Height {
				for x := range b.Width {
					if b.Y[y*b.StrideY+x] > 235 && a.Y[y*a.StrideY+x] <= 235 {
						white = area{min(white.x0, x), min(white.y0, y), max(white.x1, x+1), max(white.y1, y+1)}
						n++
					}
				}
			}
			high, wide := white.y1-white.y0, white.x1-white.x0
			if n == 0 || high < max(9, s[1]/50) || high > s[1]/8 {
				t.Errorf("%s in %v: letters are %d pixels high in %d white pixels", name, s, high, n)
				continue
			}
			if wide < 5*high { // "person 87 %" is eleven letters
				t.Errorf("%s in %v: text is %dx%d pixels: cut off", name, s, wide, high)
			}
			if white.x0 < 1 || white.y0 < 1 || white.x1 > s[0]-1 || white.y1 > s[1]-1 {
				t.Errorf("%s in %v: text touches the border: %v", name, s, white)
			}
			// Around the letters the plate is dark, whatever was there.
			dark := 0
			for x := white.x0; x < white.x1; x++ {
				if b.Y[max(white.y0-2, 0)*b.StrideY+x] < 64 {
					dark++
				}
			}
			if dark < wide*9/10 {
				t.Errorf("%s in %v: %d of %d pixels above the text are dark", name, s, dark, wide)
			}
		}
	}
}

// What a viewer reads tells scores, ids and labels apart, and the same are the same.
func TestTextFollowsTheItem(t *testing.T) {
	f := scene(t, 640, 360)
	show := func(label string, track uint64, score float32) overlay.Canvas {
		it := overlay.Item{Label: label, Track: track, Score: score, Box: person.Box}
		return keep(render(t, newRenderer(t, 0), f, []overlay.Item{it}, true))
	}
	cases := []struct {
		name string
		a, b overlay.Canvas
		same bool
	}{
		{"same item", show("person", 12, 0.87), show("person", 12, 0.87), true},
		{"rounded score", show("person", 12, 0.87), show("person", 12, 0.8749), true},
		{"other score", show("person", 12, 0.87), show("person", 12, 0.86), false},
		{"other label", show("person", 12, 0.87), show("parson", 12, 0.87), false},
		{"same colour, other id", show("person", 12, 0.87), show("person", 24, 0.87), false},
		{"score beyond 1", show("person", 12, 1), show("person", 12, 7), true},
		{"no score", show("person", 12, 0), show("person", 12, float32(math.NaN())), true},
		{"composed and decomposed", show("B\u00fcro", 1, 1), show("Bu\u0308ro", 1, 1), true},
		{"accents show", show("B\u00fcro", 1, 1), show("Buro", 1, 1), false},
		{"Cyrillic shows", show("человек", 1, 1), show("чеповек", 1, 1), false},
		{"unknown letters are marked", show("人", 1, 1), show("", 1, 1), false},
		{"invisible marks are not", show("per\u202eson\u200b", 1, 1), show("person", 1, 1), true},
		{"line breaks are blanks", show("a\nb", 1, 1), show("a b", 1, 1), true},
		{"broken UTF-8", show("a\xffb", 1, 1), show("a\uFFFDb", 1, 1), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if same := equal(c.a, c.b); same != c.same {
				t.Errorf("same picture: %v, want %v", same, c.same)
			}
		})
	}
}

// A long label gives way; score and id stay readable.
func TestLongLabelIsShortened(t *testing.T) {
	f := scene(t, 320, 180)
	item := overlay.Item{Label: strings.Repeat("very ", 60) + "long", Track: 7, Score: 0.5, Box: [4]float32{0.3, 0.3, 0.6, 0.6}}
	other := item
	other.Score = 0.6
	r := newRenderer(t, 0)
	a := keep(render(t, r, f, []overlay.Item{item}, true))
	b := render(t, r, f, []overlay.Item{other}, true)
	if d := changed(a, b); d.x0 < 160 || d.x1 <= d.x0 || d.x1 > 320 {
		t.Errorf("the score changed the picture at %v, want a place in its right half", d)
	}
}

func TestColourBelongsToTrackThenLabel(t *testing.T) {
	f := scene(t, 320, 180)
	line := func(label string, track uint64) [2]byte {
		it := overlay.Item{Label: label, Track: track, Box: person.Box}
		c := render(t, newRenderer(t, 0), f, []overlay.Item{it}, true)
		return [2]byte{c.Cb[45*c.StrideC+40], c.Cr[45*c.StrideC+40]}
	}
	if line("person", 1) != line("car", 1) {
		t.Error("a track changes its colour with the label")
	}
	if line("person", 0) != line("person", 0) || line("person", 0) == line("car", 0) {
		t.Error("labels do not have a colour of their own")
	}
	seen := map[[2]byte]bool{}
	for id := uint64(1); id <= 12; id++ {
		seen[line("person", id)] = true
	}
	if len(seen) != 12 {
		t.Errorf("12 tracks have %d colours", len(seen))
	}
}

// Plates of people in a group do not cover each other.
func TestPlatesKeepApart(t *testing.T) {
	f := scene(t, 768, 576)
	var group []overlay.Item
	for i := range 4 {
		x := 0.4 + 0.02*float32(i)
		group = append(group, overlay.Item{Label: "person", Score: 0.9, Track: uint64(i + 1), Box: [4]float32{x, 0.4, x + 0.05, 0.6}})
	}
	white := func(items []overlay.Item) (n int) {
		c := render(t, newRenderer(t, 0), f, items, true)
		for y := range c.Height {
			for _, v := range c.Y[y*c.StrideY:][:c.Width] {
				if v > 235 {
					n++
				}
			}
		}
		return n
	}
	sum := 0
	for _, it := range group {
		sum += white([]overlay.Item{it})
	}
	if all := white(group); all < sum*98/100 {
		t.Errorf("%d white pixels of text are left of %d", all, sum)
	}
}

// Boxes that make no sense leave nothing; those that are too large or too small
// are drawn as far as they can be. Nothing panics, at any size.
func TestStrangeBoxes(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := []struct {
		name  string
		box   [4]float32
		drawn bool
	}{
		{"not a number", [4]float32{0.1, nan, 0.5, 0.5}, false},
		{"empty", [4]float32{0.5, 0.5, 0.5, 0.5}, false},
		{"inside out", [4]float32{0.6, 0.6, 0.4, 0.4}, false},
		{"left of the picture", [4]float32{-0.5, 0.1, -0.1, 0.5}, false},
		{"below the picture", [4]float32{0.1, 1.1, 0.5, 1.5}, false},
		{"infinite", [4]float32{-inf, -inf, inf, inf}, true},
		{"over the border", [4]float32{-0.2, 0.5, 0.3, 1.2}, true},
		{"thinner than its line", [4]float32{0.5, 0.2, 0.50001, 0.8}, true},
		{"a point at the corner", [4]float32{0.99999, 0.99999, 1, 1}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, s := range [][2]int{{1, 1}, {2, 300}, {16, 16}, {161, 91}, {640, 360}} {
				f := scene(t, s[0], s[1])
				it := person
				it.Box = c.box
				plain, marked := pair(t, f, it)
				if same := equal(plain, marked); same == c.drawn {
					t.Errorf("%v: drawn %v, want %v", s, !same, c.drawn)
				}
			}
		})
	}
}

// Any items on a picture of any size: nothing panics, and nothing is written
// outside of the visible part of a row.
func TestAnyItemsOnAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	labels := []string{"", "person", "a much longer label than fits", "ÅÉжΩ", "\x00\xff", strings.Repeat("x", 3000)}
	for range 400 {
		w, h := 1+r.IntN(300), 1+r.IntN(300)
		p := newPicture(framepool.I420, w, h, flat(100, 110, 120))
		f := p.frame(t, framepool.RangeFull, framepool.MatrixBT601)
		var items []overlay.Item
		for range 1 + r.IntN(20) {
			it := overlay.Item{Label: labels[r.IntN(len(labels))], Track: r.Uint64() >> r.IntN(64), Score: r.Float32() * 2}
			for i := range it.Box {
				it.Box[i] = r.Float32()*1.4 - 0.2
			}
			items = append(items, it)
		}
		c := render(t, newRenderer(t, []int{0, 2, 77}[r.IntN(3)]), f, items, true)
		for y := range c.Height {
			for _, v := range c.Y[y*c.StrideY+c.Width : (y+1)*c.StrideY] {
				if v != 0 {
					t.Fatalf("%dx%d: row %d is written beyond its end", w, h, y)
				}
			}
		}
	}
}

func TestRenderAllocatesNothingOnceWarm(t *testing.T) {
	for _, limit := range []int{0, 320, 300} {
		r := newRenderer(t, limit)
		for _, format := range []framepool.PixelFormat{framepool.I420, framepool.NV12, framepool.P010} {
			f := newPicture(format, 640, 360, noise(1)).frame(t, framepool.RangeLimited, framepool.MatrixBT709)
			items := []overlay.Item{person, {Label: "Fußgänger", Track: 1e6, Score: 0.5, Box: [4]float32{0, 0, 0.2, 0.3}}}
			if n := testing.AllocsPerRun(20, func() {
				items[0].Score += 0.01
				render(t, r, f, items, true)
			}); n != 0 {
				t.Errorf("limit %d, %s: %v allocations a picture, want 0", limit, format, n)
			}
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	meta := framepool.Meta{Camera: "gate", Seq: 7, Format: framepool.Gray8, Height: 4, Stride: [3]int{64}}
	f := framepool.NewHeapFrame(meta, [][]byte{make([]byte, 256)})
	defer f.Release()
	_, err := newRenderer(t, 0).Render(f, nil, true)
	if want := "render picture 7 of camera gate: picture of 0x4 is empty"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = overlay.NewRenderer(overlay.Options{MaxWidth: -3})
	if want := "make renderer: width limit -3 is neither 0 nor at least 2"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
