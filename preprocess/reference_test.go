package preprocess_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/preprocess"
)

// nanodet is the input of the built-in model.
var nanodet = infer.InputSpec{
	Width: 416, Height: 416, Order: infer.BGR,
	Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395},
	Pad: 114, Align: infer.Center,
}

// formats are all that a frame may have.
var formats = []framepool.PixelFormat{
	framepool.I420, framepool.I422, framepool.I444, framepool.Gray8,
	framepool.I420P10, framepool.I422P10, framepool.I444P10, framepool.Gray10,
	framepool.NV12, framepool.P010,
}

// picture is a picture as plain numbers: the codes of Y, Cb and Cr. It knows how
// to lie in memory as a frame and what colour it has at any point, in the
// slowest and plainest way.
type picture struct {
	format framepool.PixelFormat
	w, h   int
	codes  [3][][]int // by component, row, column
}

// chroma says by how much a format's chroma is smaller, without asking framepool.
func chroma(f framepool.PixelFormat) (x, y int) {
	switch f {
	case framepool.I420, framepool.I420P10, framepool.NV12, framepool.P010:
		return 2, 2
	case framepool.I422, framepool.I422P10:
		return 2, 1
	case framepool.I444, framepool.I444P10:
		return 1, 1
	default:
		return 0, 0
	}
}

func depth(f framepool.PixelFormat) int {
	switch f {
	case framepool.I420P10, framepool.I422P10, framepool.I444P10, framepool.Gray10, framepool.P010:
		return 10
	default:
		return 8
	}
}

// blank makes a picture with all codes 0.
func blank(f framepool.PixelFormat, w, h int) *picture {
	p := &picture{format: f, w: w, h: h}
	sx, sy := chroma(f)
	for c := range p.codes {
		cw, ch := w, h
		if c > 0 {
			if sx == 0 {
				break
			}
			cw, ch = (w+sx-1)/sx, (h+sy-1)/sy
		}
		p.codes[c] = make([][]int, ch)
		for y := range p.codes[c] {
			p.codes[c][y] = make([]int, cw)
		}
	}
	return p
}

// newPicture makes noise over all codes, the hardest picture to interpolate.
func newPicture(f framepool.PixelFormat, w, h int, seed uint64) *picture {
	p := blank(f, w, h)
	r := rand.New(rand.NewPCG(seed, 7))
	for _, rows := range p.codes {
		for _, row := range rows {
			for x := range row {
				row[x] = r.IntN(1 << depth(f))
			}
		}
	}
	return p
}

// set gives every sample of a component one code.
func (p *picture) set(component, code int) {
	for _, row := range p.codes[component] {
		for x := range row {
			row[x] = code
		}
	}
}

// frame lays the picture out with strides that are larger than its rows and
// other bytes all around.
func (p *picture) frame(tb testing.TB, r framepool.Range, m framepool.Matrix) *framepool.Frame {
	tb.Helper()
	meta := framepool.Meta{Camera: "gate", Seq: 7, Format: p.format, Width: p.w, Height: p.h, Range: r, Matrix: m}
	size := depth(p.format)/10 + 1
	var planes [][]byte
	add := func(components ...int) {
		i := len(planes)
		rows := p.codes[components[0]]
		step := size * len(components)
		stride := len(rows[0])*step + 24
		off := 2*stride + 2*step
		b := make([]byte, off+len(rows)*stride)
		for j := range b {
			b[j] = byte(0xA5 + j) // never to be read
		}
		for k, c := range components {
			for y, row := range p.codes[c] {
				for x, code := range row {
					at := off + y*stride + x*step + k*size
					switch {
					case size == 1:
						b[at] = byte(code)
					case p.format == framepool.P010:
						binary.LittleEndian.PutUint16(b[at:], uint16(code<<6))
					default:
						binary.LittleEndian.PutUint16(b[at:], uint16(code))
					}
				}
			}
		}
		meta.Stride[i] = stride
		planes = append(planes, b[off:])
	}
	add(0)
	switch {
	case p.format == framepool.NV12 || p.format == framepool.P010:
		add(1, 2)
	case p.codes[1] != nil:
		add(1)
		add(2)
	}
	f := framepool.NewHeapFrame(meta, planes)
	tb.Cleanup(f.Release)
	return f
}

// at interpolates a component linearly between the centres of its samples;
// x and y are positions in the picture, the centre of its first sample being at
// ½, ½. Beyond the outermost centres the outermost samples go on.
func (p *picture) at(component int, x, y float64) float64 {
	rows := p.codes[component]
	if component > 0 {
		sx, sy := chroma(p.format)
		x, y = x/float64(sx), y/float64(sy)
	}
	get := func(ix, iy int) float64 {
		iy = min(max(iy, 0), len(rows)-1)
		ix = min(max(ix, 0), len(rows[iy])-1)
		return float64(rows[iy][ix])
	}
	x, y = x-0.5, y-0.5
	x0, y0 := math.Floor(x), math.Floor(y)
	fx, fy := x-x0, y-y0
	ix, iy := int(x0), int(y0)
	return (get(ix, iy)*(1-fx)+get(ix+1, iy)*fx)*(1-fy) + (get(ix, iy+1)*(1-fx)+get(ix+1, iy+1)*fx)*fy
}

// rgb is the colour at a position, 0..255, from the equations of Rec. 601, 709
// and 2020: Y = Kr·R + Kg·G + Kb·B, Cb = (B−Y)/(2(1−Kb)), Cr = (R−Y)/(2(1−Kr)).
func (p *picture) rgb(x, y float64, r framepool.Range, m framepool.Matrix) [3]float64 {
	k := map[framepool.Matrix][3]float64{
		framepool.MatrixBT601:  {0.299, 0.587, 0.114},
		framepool.MatrixBT709:  {0.2126, 0.7152, 0.0722},
		framepool.MatrixBT2020: {0.2627, 0.6780, 0.0593},
	}[m]
	norm := func(code, zero, span float64) float64 { return (code - zero) / span }
	luma, mid, l, c := 16.0, 128.0, 219.0, 224.0
	if depth(p.format) == 10 {
		luma, mid, l, c = 64, 512, 876, 896
	}
	if r == framepool.RangeFull {
		luma, l, c = 0, 255, 255
		if depth(p.format) == 10 {
			l, c = 1023, 1023
		}
	}
	yy := norm(p.at(0, x, y), luma, l)
	cb, cr := 0.0, 0.0
	if p.codes[1] != nil {
		cb, cr = norm(p.at(1, x, y), mid, c), norm(p.at(2, x, y), mid, c)
	}
	red := yy + 2*(1-k[0])*cr
	blue := yy + 2*(1-k[2])*cb
	green := (yy - k[0]*red - k[2]*blue) / k[1]
	out := [3]float64{red, green, blue}
	for i := range out {
		out[i] = min(max(out[i], 0), 1) * 255
	}
	return out
}

// tensor is what Run must write, after undoing mean and std: 0..255 by channel.
func (p *picture) tensor(spec infer.InputSpec, r framepool.Range, m framepool.Matrix) [3][]float64 {
	scale := min(float64(spec.Width)/float64(p.w), float64(spec.Height)/float64(p.h))
	nw := max(int(math.RoundToEven(float64(p.w)*scale)), 1)
	nh := max(int(math.RoundToEven(float64(p.h)*scale)), 1)
	left, top := (spec.Width-nw)/2, (spec.Height-nh)/2
	if spec.Align == infer.TopLeft {
		left, top = 0, 0
	}
	var out [3][]float64
	for c := range out {
		out[c] = make([]float64, spec.Width*spec.Height)
		for i := range out[c] {
			out[c][i] = float64(spec.Pad)
		}
	}
	for oy := range nh {
		for ox := range nw {
			x := (float64(ox) + 0.5) * float64(p.w) / float64(nw)
			y := (float64(oy) + 0.5) * float64(p.h) / float64(nh)
			rgb := p.rgb(x, y, r, m)
			if spec.Order == infer.BGR {
				rgb[0], rgb[2] = rgb[2], rgb[0]
			}
			for c, v := range rgb {
				out[c][(top+oy)*spec.Width+left+ox] = v
			}
		}
	}
	return out
}

// run fills a tensor and undoes mean and std.
func run(tb testing.TB, spec infer.InputSpec, f *framepool.Frame) ([3][]float64, preprocess.Transform) {
	tb.Helper()
	dst := make([]float32, 3*spec.Width*spec.Height)
	for i := range dst {
		dst[i] = float32(math.NaN()) // every value must be written
	}
	t, err := preprocess.NewCPU(spec).Run(f, dst)
	if err != nil {
		tb.Fatal(err)
	}
	var out [3][]float64
	n := spec.Width * spec.Height
	for c := range out {
		out[c] = make([]float64, n)
		for i := range out[c] {
			out[c][i] = float64(dst[c*n+i])*float64(spec.Std[c]) + float64(spec.Mean[c])
		}
	}
	return out, t
}

// worst is the largest difference and where it is; NaN counts as infinite.
func worst(got, want [3][]float64) (diff float64, channel, at int) {
	for c := range got {
		for i := range got[c] {
			d := math.Abs(got[c][i] - want[c][i])
			if math.IsNaN(d) {
				return math.Inf(1), c, i
			}
			if d > diff {
				diff, channel, at = d, c, i
			}
		}
	}
	return diff, channel, at
}
