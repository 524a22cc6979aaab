package overlay_test

import (
	"fmt"
	"math"
	"testing"

	"edgecam/framepool"
	"edgecam/overlay"
)

// mean is the average of a component over an area given in its samples; beyond
// the border the outermost samples go on.
func (p *picture) mean(c int, x0, y0, x1, y1 float64) float64 {
	rows := p.codes[c]
	sum, area := 0.0, 0.0
	for y := int(y0); float64(y) < y1-1e-9; y++ {
		for x := int(x0); float64(x) < x1-1e-9; x++ {
			a := (min(float64(x+1), x1) - max(float64(x), x0)) * (min(float64(y+1), y1) - max(float64(y), y0))
			row := rows[min(y, len(rows)-1)]
			if float64(x+1) <= x0 || float64(y+1) <= y0 {
				continue
			}
			// Of an area that is partly outside, only the inside counts.
			if (x >= len(row) && x0 < float64(len(row))) || (y >= len(rows) && y0 < float64(len(rows))) {
				continue
			}
			sum += a * float64(row[min(x, len(row)-1)])
			area += a
		}
	}
	return sum / area
}

// jfif converts one colour by way of RGB: Y, Cb and Cr 0..255 of BT.601.
func (p *picture) jfif(codes [3]float64, r framepool.Range, m framepool.Matrix) [3]float64 {
	k := map[framepool.Matrix][3]float64{
		framepool.MatrixBT601:  {0.299, 0.587, 0.114},
		framepool.MatrixBT709:  {0.2126, 0.7152, 0.0722},
		framepool.MatrixBT2020: {0.2627, 0.6780, 0.0593},
	}
	black, mid, luma, chroma := 16.0, 128.0, 219.0, 224.0
	if r == framepool.RangeFull {
		black, luma, chroma = 0, 255, 255
	}
	if p.deep {
		black, mid, luma, chroma = 4*black, 4*mid, 4*luma, 4*chroma
	}
	y, cb, cr := (codes[0]-black)/luma, (codes[1]-mid)/chroma, (codes[2]-mid)/chroma
	from, to := k[m], k[framepool.MatrixBT601]
	red, blue := y+2*(1-from[0])*cr, y+2*(1-from[2])*cb
	green := (y - from[0]*red - from[2]*blue) / from[1]
	y = to[0]*red + to[1]*green + to[2]*blue
	cb, cr = (blue-y)/(2*(1-to[2])), (red-y)/(2*(1-to[0]))
	return [3]float64{255 * y, 255*cb + 128, 255*cr + 128}
}

func (p *picture) checkCanvas(t *testing.T, c overlay.Canvas, stepX, stepY float64, r framepool.Range, m framepool.Matrix) {
	t.Helper()
	const tolerance = 3 // codes: four roundings, expanded by 255/219
	at := func(plane []byte, stride, x, y int) float64 { return float64(plane[y*stride+x]) }
	near := func(name string, x, y int, got, want float64) {
		if want = min(max(want, 0), 255); math.Abs(got-want) > tolerance {
			t.Fatalf("%s at %d,%d of %dx%d: got %.0f, want %.1f", name, x, y, c.Width, c.Height, got, want)
		}
	}
	for y := range c.Height {
		for x := range c.Width {
			mid := 128.0
			if p.deep {
				mid = 512
			}
			codes := [3]float64{p.mean(0, float64(x)*stepX, float64(y)*stepY, float64(x+1)*stepX, float64(y+1)*stepY), mid, mid}
			if p.subX > 0 {
				sx, sy := 2*stepX/float64(p.subX), 2*stepY/float64(p.subY)
				cx, cy := float64(x/2), float64(y/2)
				for i := 1; i < 3; i++ {
					codes[i] = p.mean(i, cx*sx, cy*sy, (cx+1)*sx, (cy+1)*sy)
				}
			}
			want := p.jfif(codes, r, m)
			near("Y", x, y, at(c.Y, c.StrideY, x, y), want[0])
			near("Cb", x, y, at(c.Cb, c.StrideC, x/2, y/2), want[1])
			near("Cr", x, y, at(c.Cr, c.StrideC, x/2, y/2), want[2])
		}
	}
}

func TestRenderConvertsEveryFormat(t *testing.T) {
	cases := []struct{ w, h, limit, cw, ch int }{
		{64, 48, 0, 64, 48},
		{61, 37, 0, 62, 38},
		{64, 48, 64, 64, 48},
		{61, 37, 61, 60, 36}, // the even size above would be too wide
		{61, 37, 62, 62, 38},
		{64, 48, 32, 32, 24},   // halves
		{100, 60, 33, 32, 20},  // 3.125 and 3
		{97, 55, 40, 40, 22},   // uneven
		{200, 4, 8, 8, 2},      // flatter than a pixel pair
		{640, 480, 16, 16, 12}, // 40 rows in one
		{1, 1, 0, 2, 2},
		{3, 9, 2, 2, 6},
		{2, 301, 0, 2, 302},
	}
	for _, format := range formats {
		for _, r := range []framepool.Range{framepool.RangeLimited, framepool.RangeFull} {
			for _, m := range []framepool.Matrix{framepool.MatrixBT601, framepool.MatrixBT709, framepool.MatrixBT2020} {
				t.Run(fmt.Sprintf("%s/range %d/matrix %d", format, r, m), func(t *testing.T) {
					for i, c := range cases {
						p := newPicture(format, c.w, c.h, noise(uint64(i)))
						got := render(t, newRenderer(t, c.limit), p.frame(t, r, m), nil, false)
						if got.Width != c.cw || got.Height != c.ch {
							t.Fatalf("%dx%d to at most %d: canvas %dx%d, want %dx%d", c.w, c.h, c.limit, got.Width, got.Height, c.cw, c.ch)
						}
						stepX, stepY := 1.0, 1.0
						if c.cw < c.w {
							stepX, stepY = float64(c.w)/float64(c.cw), float64(c.h)/float64(c.ch)
						}
						p.checkCanvas(t, got, stepX, stepY, r, m)
					}
				})
			}
		}
	}
}

// Codes of red in every standard are JFIF's red, and black and white stay so.
func TestRenderKnownColours(t *testing.T) {
	cases := []struct {
		name      string
		r         framepool.Range
		m         framepool.Matrix
		from, out [3]int
	}{
		{"red 601", framepool.RangeLimited, framepool.MatrixBT601, [3]int{81, 90, 240}, [3]int{76, 85, 255}},
		{"red 709", framepool.RangeLimited, framepool.MatrixBT709, [3]int{63, 102, 240}, [3]int{76, 85, 255}},
		{"blue 709", framepool.RangeLimited, framepool.MatrixBT709, [3]int{32, 240, 118}, [3]int{29, 255, 107}},
		{"green 709", framepool.RangeLimited, framepool.MatrixBT709, [3]int{173, 42, 26}, [3]int{150, 44, 21}},
		{"black", framepool.RangeLimited, framepool.MatrixBT709, [3]int{16, 128, 128}, [3]int{0, 128, 128}},
		{"white", framepool.RangeLimited, framepool.MatrixBT2020, [3]int{235, 128, 128}, [3]int{255, 128, 128}},
		{"grey full", framepool.RangeFull, framepool.MatrixBT709, [3]int{77, 128, 128}, [3]int{77, 128, 128}},
		{"below black", framepool.RangeLimited, framepool.MatrixBT601, [3]int{0, 128, 128}, [3]int{0, 128, 128}},
	}
	for _, c := range cases {
		for _, format := range []framepool.PixelFormat{framepool.I420, framepool.NV12, framepool.I444P10, framepool.P010} {
			t.Run(c.name+"/"+format.String(), func(t *testing.T) {
				p := newPicture(format, 20, 10, flat(c.from[0], c.from[1], c.from[2]))
				got := render(t, newRenderer(t, 0), p.frame(t, c.r, c.m), nil, false)
				for i, v := range []byte{got.Y[5*got.StrideY+5], got.Cb[2*got.StrideC+2], got.Cr[2*got.StrideC+2]} {
					if d := int(v) - c.out[i]; d < -2 || d > 2 {
						t.Errorf("component %d is %d, want %d ± 2", i, v, c.out[i])
					}
				}
			})
		}
	}
}

// The largest 10-bit code is white, not the black after it, also in the last
// samples of a row, which are not read four at a time.
func TestRenderDeepWhite(t *testing.T) {
	for _, format := range []framepool.PixelFormat{framepool.I444P10, framepool.I420P10, framepool.Gray10, framepool.P010} {
		p := newPicture(format, 14, 6, flat(0, 128, 128))
		for _, row := range p.codes[0] {
			for x := range row {
				row[x] = 1023
			}
		}
		c := render(t, newRenderer(t, 0), p.frame(t, framepool.RangeFull, framepool.MatrixBT601), nil, false)
		for x, v := range c.Y[:14] {
			if v != 255 {
				t.Errorf("%s: column %d is %d, want 255", format, x, v)
			}
		}
	}
}

// A picture that is what JFIF means is copied bit by bit.
func TestRenderCopiesJFIFExactly(t *testing.T) {
	p := newPicture(framepool.I420, 50, 30, noise(5))
	c := render(t, newRenderer(t, 0), p.frame(t, framepool.RangeFull, framepool.MatrixBT601), nil, true)
	for i, plane := range [][]byte{c.Y, c.Cb, c.Cr} {
		stride := []int{c.StrideY, c.StrideC, c.StrideC}[i]
		for y, row := range p.codes[i] {
			for x, v := range row {
				if int(plane[y*stride+x]) != v {
					t.Fatalf("component %d at %d,%d is %d, want %d", i, x, y, plane[y*stride+x], v)
				}
			}
		}
	}
}

// One renderer serves cameras of any geometry in turn.
func TestRenderChangesGeometry(t *testing.T) {
	r := newRenderer(t, 40)
	for i, format := range append(formats, formats...) {
		p := newPicture(format, 30+7*i, 60-2*i, noise(uint64(i)))
		f := p.frame(t, framepool.Range(i%2), framepool.Matrix(i%3))
		got := render(t, r, f, nil, false)
		want := render(t, newRenderer(t, 40), f, nil, false)
		if !equal(got, want) {
			t.Fatalf("%d: a used renderer gives another picture than a new one", i)
		}
	}
}

// A white line around the picture is on the canvas on all four sides, also where
// sides are odd or no multiple of what codecs like.
func TestRenderKeepsTheBorder(t *testing.T) {
	for _, c := range []struct{ w, h, limit int }{{1918, 1078, 0}, {61, 37, 0}, {1918, 1078, 640}, {97, 55, 40}} {
		p := newPicture(framepool.I420, c.w, c.h, func(i, x, y int) int {
			switch {
			case i > 0:
				return 128
			case x == 0 || y == 0 || x == c.w-1 || y == c.h-1:
				return 235
			default:
				return 16
			}
		})
		got := render(t, newRenderer(t, c.limit), p.frame(t, framepool.RangeLimited, framepool.MatrixBT601), nil, false)
		step := float64(c.w) / float64(got.Width)
		least := byte(255 / max(step, 1) * 0.9)
		for x := range got.Width {
			if got.Y[x] < least || got.Y[(got.Height-1)*got.StrideY+x] < least {
				t.Fatalf("%v: no line above or below at column %d", c, x)
			}
		}
		for y := range got.Height {
			if got.Y[y*got.StrideY] < least || got.Y[y*got.StrideY+got.Width-1] < least {
				t.Fatalf("%v: no line left or right at row %d", c, y)
			}
		}
		if in := got.Y[4*got.StrideY+4]; in != 0 {
			t.Errorf("%v: inside is %d, want 0", c, in)
		}
	}
}
