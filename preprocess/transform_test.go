package preprocess_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"edgecam/infer"
	"edgecam/preprocess"
)

func input(w, h int, a infer.Align) infer.InputSpec {
	return infer.InputSpec{Width: w, Height: h, Align: a}
}

func TestTransformPlaces(t *testing.T) {
	cases := []struct {
		w, h int
		spec infer.InputSpec
		want preprocess.Transform
	}{
		{768, 576, input(416, 416, infer.Center), preprocess.Transform{PadY: 52, Width: 416, Height: 312}},
		{1920, 1080, input(416, 416, infer.Center), preprocess.Transform{PadY: 91, Width: 416, Height: 234}},
		{1920, 1080, input(416, 416, infer.TopLeft), preprocess.Transform{Width: 416, Height: 234}},
		{3775, 1571, input(1280, 1280, infer.Center), preprocess.Transform{PadY: 373, Width: 1280, Height: 533}},
		{360, 640, input(416, 416, infer.Center), preprocess.Transform{PadX: 91, Width: 234, Height: 416}},
		{1918, 1078, input(640, 640, infer.Center), preprocess.Transform{PadY: 140, Width: 640, Height: 360}},
		{7680, 4320, input(640, 384, infer.Center), preprocess.Transform{PadY: 12, Width: 640, Height: 360}},
		{16, 16, input(416, 416, infer.Center), preprocess.Transform{Width: 416, Height: 416}},
		{1, 1, input(416, 416, infer.Center), preprocess.Transform{Width: 416, Height: 416}},
		{4000, 1, input(416, 416, infer.Center), preprocess.Transform{PadY: 207, Width: 416, Height: 1}},
		{1, 4000, input(416, 416, infer.Center), preprocess.Transform{PadX: 207, Width: 1, Height: 416}},
		{160, 5, input(16, 16, infer.Center), preprocess.Transform{PadY: 7, Width: 16, Height: 1}},
		{16, 5, input(8, 8, infer.Center), preprocess.Transform{PadY: 3, Width: 8, Height: 2}}, // 2.5: to even
		{16, 7, input(8, 8, infer.Center), preprocess.Transform{PadY: 2, Width: 8, Height: 4}}, // 3.5: to even
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%dx%d", c.w, c.h), func(t *testing.T) {
			c.want.Scale = float32(min(float64(c.spec.Width)/float64(c.w), float64(c.spec.Height)/float64(c.h)))
			if got := preprocess.NewTransform(c.w, c.h, c.spec); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What the picture shows at a place must come back to that place: a box is put
// where drawing it would put it (with the rounded sizes, as resizing does) and
// where the usual formula r·x+pad puts it, which is up to half an input pixel off.
func TestInverseFindsTheBoxAgain(t *testing.T) {
	sizes := [][2]int{
		{768, 576},
		{1920, 1080},
		{1918, 1078},
		{3775, 1571},
		{360, 640},
		{16, 16},
		{7680, 4320},
		{1, 1},
		{2, 1},
		{4000, 3},
		{5, 3000},
		{1917, 1077},
		{640, 363},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		sizes = append(sizes, [2]int{1 + r.IntN(5000), 1 + r.IntN(5000)})
	}
	specs := []infer.InputSpec{
		input(416, 416, infer.Center), input(1280, 1280, infer.Center), input(640, 384, infer.TopLeft), input(31, 97, infer.Center),
	}
	for _, s := range sizes {
		w, h := float64(s[0]), float64(s[1])
		for _, spec := range specs {
			tr := preprocess.NewTransform(s[0], s[1], spec)
			if tr.PadX < 0 || tr.PadY < 0 || tr.PadX+tr.Width > float32(spec.Width) || tr.PadY+tr.Height > float32(spec.Height) {
				t.Fatalf("%v in %dx%d: %+v leaves the input", s, spec.Width, spec.Height, tr)
			}
			for range 4 {
				x1, x2 := r.Float64(), r.Float64()
				y1, y2 := r.Float64(), r.Float64()
				fx := func(v float64) float32 { return float32(v*float64(tr.Width)) + tr.PadX }
				fy := func(v float64) float32 { return float32(v*float64(tr.Height)) + tr.PadY }
				in := infer.Detection{Class: 3, Score: 0.5, X1: fx(x1), Y1: fy(y1), X2: fx(x2), Y2: fy(y2)}
				got := tr.Inverse(in)
				if got.Class != 3 || got.Score != 0.5 {
					t.Fatalf("class or score changed: %+v", got)
				}
				for i, p := range [][3]float64{
					{float64(got.X1), x1, w}, {float64(got.Y1), y1, h}, {float64(got.X2), x2, w}, {float64(got.Y2), y2, h},
				} {
					if d := math.Abs(p[0]-p[1]) * p[2]; d > 0.05 {
						t.Fatalf("%v in %dx%d, coordinate %d: off by %.3f pixels", s, spec.Width, spec.Height, i, d)
					}
				}
			}
		}
	}
}

// The field's case: one fixed box in the space of a 1280 model, in a picture of
// 3775x1571, placed by the formula that the model's own tools use.
func TestInverseWithinOnePixelOfTheUsualFormula(t *testing.T) {
	cases := []struct {
		w, h float64
		size int
	}{{3775, 1571, 1280}, {360, 640, 416}, {1918, 1078, 416}, {768, 576, 416}, {16, 16, 416}, {7680, 4320, 416}, {1, 1, 416}}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%vx%v", c.w, c.h), func(t *testing.T) {
			r := min(float64(c.size)/c.w, float64(c.size)/c.h)
			left := (c.size - int(math.RoundToEven(c.w*r))) / 2
			top := (c.size - int(math.RoundToEven(c.h*r))) / 2
			tr := preprocess.NewTransform(int(c.w), int(c.h), input(c.size, c.size, infer.Center))
			for _, b := range [][4]float64{{0, 0, 1, 1}, {0.1, 0.2, 0.3, 0.4}, {0.9, 0.95, 0.99, 1}} {
				x1, y1, x2, y2 := b[0]*c.w, b[1]*c.h, b[2]*c.w, b[3]*c.h
				got := tr.Inverse(infer.Detection{
					X1: float32(x1*r) + float32(left), Y1: float32(y1*r) + float32(top),
					X2: float32(x2*r) + float32(left), Y2: float32(y2*r) + float32(top),
				})
				for i, d := range []float64{
					float64(got.X1)*c.w - x1, float64(got.Y1)*c.h - y1, float64(got.X2)*c.w - x2, float64(got.Y2)*c.h - y2,
				} {
					if math.Abs(d) > 1 {
						t.Errorf("box %v coordinate %d: off by %.2f pixels", b, i, d)
					}
				}
			}
		})
	}
}

func TestInverseClipsAndSurvivesAnything(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tr := preprocess.NewTransform(1920, 1080, input(416, 416, infer.Center))
	cases := []struct {
		name string
		tr   preprocess.Transform
		in   [4]float32
		want [4]float32
	}{
		{"whole picture", tr, [4]float32{0, 91, 416, 325}, [4]float32{0, 0, 1, 1}},
		{"middle", tr, [4]float32{104, 149.5, 208, 208}, [4]float32{0.25, 0.25, 0.5, 0.5}},
		{"over the border", tr, [4]float32{-20, 0, 500, 416}, [4]float32{0, 0, 1, 1}},
		{"in the padding", tr, [4]float32{10, 10, 20, 50}, [4]float32{10.0 / 416, 0, 20.0 / 416, 0}},
		{"infinite", tr, [4]float32{-inf, -inf, inf, inf}, [4]float32{0, 0, 1, 1}},
		{"not a number", tr, [4]float32{10, 100, nan, 200}, [4]float32{0, 0, 0, 0}},
		{"all not numbers", tr, [4]float32{nan, nan, nan, nan}, [4]float32{0, 0, 0, 0}},
		{"zero transform", preprocess.Transform{}, [4]float32{0, 0, 0, 0}, [4]float32{0, 0, 0, 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := c.tr.Inverse(infer.Detection{X1: c.in[0], Y1: c.in[1], X2: c.in[2], Y2: c.in[3]})
			got := [4]float32{d.X1, d.Y1, d.X2, d.Y2}
			for i := range got {
				if !(math.Abs(float64(got[i]-c.want[i])) <= 1e-6) {
					t.Fatalf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}
