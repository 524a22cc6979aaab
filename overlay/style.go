package overlay

// ink is a colour of the canvas.
type ink struct{ y, cb, cr byte }

// The plate behind text is dark, text on it white: the contrast does not depend
// on the picture nor on the box's colour.
const (
	plateY  = 18
	textY   = 245
	plateOn = 205 // how much of the plate covers the picture, of 256
	edgeOn  = 150 // how much the dark edge of a line does
)

// colours are bright and far from each other in hue; neighbours differ most, as
// people who walk together have neighbouring ids. In RGB: cyan, amber, magenta,
// green, red, sky, yellow, violet, orange, teal, pink, lime.
func colours() [12]ink {
	rgb := [12][3]float64{
		{0, 229, 255},
		{255, 193, 7},
		{234, 88, 252},
		{80, 240, 130},
		{255, 86, 86},
		{79, 172, 255},
		{255, 241, 60},
		{168, 140, 255},
		{255, 145, 40},
		{29, 233, 182},
		{255, 138, 190},
		{190, 242, 70},
	}
	var out [12]ink
	for i, c := range rgb {
		y := 0.299*c[0] + 0.587*c[1] + 0.114*c[2]
		out[i] = ink{code(y), code(128 + (c[2]-y)/1.772), code(128 + (c[0]-y)/1.402)}
	}
	return out
}

// choose gives the colour's number of an item: by track, so that a thing keeps
// it, else by label.
func choose(it *Item) int {
	if it.Track != 0 {
		return int((it.Track - 1) % 12)
	}
	const offset, prime = 2166136261, 16777619 // FNV-1a
	h := uint32(offset)
	for i := range len(it.Label) {
		h = (h ^ uint32(it.Label[i])) * prime
	}
	return int(h % 12)
}

// sizes of what is drawn, in canvas pixels, for a picture whose shorter side has
// side pixels.
type sizes struct {
	line int // width of a box's line, even
	text int // height of the letters' em, 0 = the picture is too small for text
}

// fitSizes keeps text readable: a 36th of the shorter side, which is 16 pixels for
// 576 lines and 30 for 1080, and not under the 12 pixels that letters need to be
// pleasant, unless the picture is so small that text would hide it.
func fitSizes(side int) sizes {
	s := sizes{line: min(max((side+270)/540*2, 2), 16), text: max(side/36, min(side/14, 12))}
	if s.text < 7 {
		s.text = 0
	}
	return s
}
