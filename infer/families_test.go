package infer_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edgecam/infer"
)

const (
	wide, high = 320, 192 // of the input
	threshold  = 0.4
)

// family is a form of outputs, with outputs of it at random and what a plain
// reading of them, as the family's paper or code describes it, comes to.
type family struct {
	name   string
	layout infer.Layout
	random func(r *rand.Rand) [][]float32
	plain  func(o [][]float32) []infer.Detection
}

func none() infer.Columns { return infer.Columns{Object: -1, Class: -1, Image: -1} }

func noOutputs() infer.Outputs {
	return infer.Outputs{Boxes: -1, Scores: -1, Classes: -1, Count: -1, Selected: -1}
}

// some is a score: mostly low, sometimes one that counts.
func some(r *rand.Rand) float32 {
	if r.IntN(60) == 0 {
		return threshold + (1-threshold)*r.Float32()
	}
	return 0.3 * r.Float32()
}

func logit(p float32) float32 { return float32(math.Log(float64(p) / (1 - float64(p)))) }

func sigmoid(v float32) float64 { return 1 / (1 + math.Exp(-float64(v))) }

// centred is a box as centre and size in pixels.
func centred(r *rand.Rand) [4]float32 {
	return [4]float32{wide * r.Float32(), high * r.Float32(), 5 + 60*r.Float32(), 5 + 60*r.Float32()}
}

func det(class int, score, x1, y1, x2, y2 float64) infer.Detection {
	return infer.Detection{
		Class: class, Score: float32(score),
		X1: float32(min(max(x1, 0), wide)), Y1: float32(min(max(y1, 0), high)), X2: float32(min(max(x2, 0), wide)), Y2: float32(min(max(y2, 0), high)),
	}
}

func fromCentre(class int, score, cx, cy, w, h float64) infer.Detection {
	return det(class, score, cx-w/2, cy-h/2, cx+w/2, cy+h/2)
}

// argmax gives the largest and its place.
func argmax(n int, at func(int) float64) (int, float64) {
	class, most := 0, at(0)
	for i := 1; i < n; i++ {
		if v := at(i); v > most {
			class, most = i, v
		}
	}
	return class, most
}

// transpose turns [rows][values] into [values][rows].
func transpose(in []float32, values int) []float32 {
	rows := len(in) / values
	out := make([]float32, len(in))
	for i, v := range in {
		out[i%values*rows+i/values] = v
	}
	return out
}

// yoloV5 is rows of centre, size, objectness and classes, as detect.py of YOLOv5,
// YOLOv6 and YOLOv7 reads them: the best class, times the objectness.
func yoloV5(byValue bool) family {
	const rows, classes, values = 300, 7, 12
	l := infer.Layout{
		Kind: infer.Joined, Rows: rows, Values: values, Classes: classes, Box: infer.CXCYWH, Background: -1, ByValue: byValue,
		OneClass: true, At: infer.Columns{Box: 0, Object: 4, Scores: 5, Class: -1, Image: -1}, Outputs: noOutputs(),
	}
	l.Outputs.Boxes = 0
	f := family{name: "yolov5", layout: l}
	if byValue {
		f.name = "yolov5 by value"
	}
	f.random = func(r *rand.Rand) [][]float32 {
		var o []float32
		for range rows {
			b := centred(r)
			o = append(o, b[:]...)
			o = append(o, 0.02+0.98*some(r))
			for range classes {
				o = append(o, r.Float32())
			}
		}
		if byValue {
			o = transpose(o, values)
		}
		return [][]float32{o}
	}
	f.plain = func(outputs [][]float32) (dets []infer.Detection) {
		o := outputs[0]
		if byValue {
			o = transpose(o, rows)
		}
		for i := range rows {
			row := o[i*values : (i+1)*values]
			class, best := argmax(classes, func(c int) float64 { return float64(row[5+c] * row[4]) })
			if best >= threshold {
				dets = append(dets, fromCentre(class, best, float64(row[0]), float64(row[1]), float64(row[2]), float64(row[3])))
			}
		}
		return dets
	}
	return f
}

// yoloV8 is [4+classes(+extra)][rows], scores finished, as Ultralytics' ops.py
// reads it; byValue false is its transpose. The extra values are masks' or joints'.
func yoloV8(name string, byValue bool, extra int) family {
	const rows, classes = 500, 11
	values := 4 + classes + extra
	l := infer.Layout{
		Kind: infer.Joined, Rows: rows, Values: values, Classes: classes, Box: infer.CXCYWH, Background: -1, ByValue: byValue,
		OneClass: true, At: none(), Outputs: noOutputs(),
	}
	l.At.Scores, l.Outputs.Boxes = 4, 0
	return family{name, l, func(r *rand.Rand) [][]float32 {
		var o []float32
		for range rows {
			b := centred(r)
			o = append(o, b[:]...)
			for range classes {
				o = append(o, some(r))
			}
			for range extra {
				o = append(o, 1000*r.Float32()-500) // are nobody's business
			}
		}
		if byValue {
			o = transpose(o, values)
		}
		return [][]float32{o, make([]float32, 10)}
	}, func(outputs [][]float32) (dets []infer.Detection) {
		at := func(row, value int) float64 {
			if byValue {
				return float64(outputs[0][value*rows+row])
			}
			return float64(outputs[0][row*values+value])
		}
		for i := range rows {
			if class, best := argmax(classes, func(c int) float64 { return at(i, 4+c) }); best >= threshold {
				dets = append(dets, fromCentre(class, best, at(i, 0), at(i, 1), at(i, 2), at(i, 3)))
			}
		}
		return dets
	}}
}

// levels are the cells of strides of the input.
func levels(strides ...int) (grid []infer.Level, rows int) {
	for i, s := range strides {
		g := infer.Level{Stride: s, Width: (wide + s - 1) / s, Height: (high + s - 1) / s, Boxes: 2*i + 1, Scores: 2 * i}
		grid = append(grid, g)
		rows += g.Width * g.Height
	}
	return grid, rows
}

// cellOf finds the cell of a row.
func cellOf(grid []infer.Level, row int) (stride, x, y float64) {
	for _, g := range grid {
		if n := g.Width * g.Height; row >= n {
			row -= n
			continue
		}
		return float64(g.Stride), float64(row % g.Width), float64(row / g.Width)
	}
	panic("row beyond the grid")
}

// yoloX is YOLOX before decode_outputs: centre offsets in cells and logarithms of sizes.
func yoloX() family {
	const classes, values = 4, 9
	grid, rows := levels(8, 16, 32)
	l := infer.Layout{
		Kind: infer.Joined, Rows: rows, Values: values, Classes: classes, Box: infer.CXCYWH, Coding: infer.CellExp, Background: -1,
		OneClass: true, At: infer.Columns{Box: 0, Object: 4, Scores: 5, Class: -1, Image: -1}, Grid: grid, Outputs: noOutputs(),
	}
	l.Outputs.Boxes = 0
	return family{"yolox with an open grid", l, func(r *rand.Rand) [][]float32 {
		var o []float32
		for range rows {
			o = append(o, 2*r.Float32()-1, 2*r.Float32()-1, 2*r.Float32()-1, 2*r.Float32()-1, some(r))
			for range classes {
				o = append(o, r.Float32())
			}
		}
		return [][]float32{o}
	}, func(outputs [][]float32) (dets []infer.Detection) {
		for i := range rows {
			row := outputs[0][i*values:]
			s, x, y := cellOf(grid, i)
			class, best := argmax(classes, func(c int) float64 { return float64(row[5+c] * row[4]) })
			if best >= threshold {
				dets = append(dets, fromCentre(class, best, (float64(row[0])+x)*s, (float64(row[1])+y)*s,
					math.Exp(float64(row[2]))*s, math.Exp(float64(row[3]))*s))
			}
		}
		return dets
	}}
}

// integral is the mean of a side's distribution, in GFL's words its Integral.
func integral(bins []float32) float64 {
	sum, mean := 0.0, 0.0
	for i, v := range bins {
		sum += math.Exp(float64(v))
		mean += float64(i) * math.Exp(float64(v))
	}
	return mean / sum
}

// byClass appends every class of a row that counts.
func byClass(dets []infer.Detection, classes int, score func(int) float64, x1, y1, x2, y2 float64) []infer.Detection {
	for c := range classes {
		if s := score(c); s >= threshold {
			dets = append(dets, det(c, s, x1, y1, x2, y2))
		}
	}
	return dets
}

// nanoDet has a tensor of classes and one of distributions for every stride, with
// points in the cells' centres; raw scores are logits. byValue is [1,C,H,W].
func nanoDet(name string, raw, byValue bool) family {
	const classes, bins = 5, 8
	grid, rows := levels(8, 16, 32)
	l := infer.Layout{
		Kind: infer.Heads, Rows: rows, Values: 4 * bins, Classes: classes, Box: infer.LTRB, Coding: infer.CellBins, Background: -1,
		At: none(), Grid: grid, Bins: bins, CellPoint: 0.5, Outputs: noOutputs(), ByValue: byValue, ScoresByValue: byValue,
	}
	if raw {
		l.Activation = infer.Sigmoid
	}
	return family{name, l, func(r *rand.Rand) [][]float32 {
		var o [][]float32
		for _, g := range grid {
			var scores, boxes []float32
			for range g.Width * g.Height {
				for range classes {
					s := 0.001 + 0.998*some(r)
					if raw {
						s = logit(s)
					}
					scores = append(scores, s)
				}
				for range 4 * bins {
					boxes = append(boxes, 6*r.Float32()-3)
				}
			}
			if byValue {
				scores, boxes = transpose(scores, classes), transpose(boxes, 4*bins)
			}
			o = append(o, scores, boxes)
		}
		return o
	}, func(o [][]float32) (dets []infer.Detection) {
		for k, g := range grid {
			n, scores, boxes := g.Width*g.Height, o[2*k], o[2*k+1]
			if byValue {
				scores, boxes = transpose(scores, n), transpose(boxes, n)
			}
			for i := range n {
				var side [4]float64
				for j := range side {
					side[j] = integral(boxes[(4*i+j)*bins:][:bins]) * float64(g.Stride)
				}
				x, y := (float64(i%g.Width)+0.5)*float64(g.Stride), (float64(i/g.Width)+0.5)*float64(g.Stride)
				dets = byClass(dets, classes, func(c int) float64 {
					if v := scores[i*classes+c]; raw {
						return sigmoid(v)
					}
					return float64(scores[i*classes+c])
				}, x-side[0], y-side[1], x+side[2], y+side[3])
			}
		}
		return dets
	}}
}

// nanoDetPlus joins classes and distributions in a row, with points in the corners.
func nanoDetPlus() family {
	const classes, bins, values = 3, 8, 3 + 32
	grid, rows := levels(8, 16, 32, 64)
	l := infer.Layout{
		Kind: infer.Joined, Rows: rows, Values: values, Classes: classes, Box: infer.LTRB, Coding: infer.CellBins, Background: -1,
		At: none(), Grid: grid, Bins: bins, Outputs: noOutputs(),
	}
	l.At.Box, l.Outputs.Boxes = classes, 0
	return family{"nanodet-plus", l, func(r *rand.Rand) [][]float32 {
		var o []float32
		for range rows {
			for range classes {
				o = append(o, some(r))
			}
			for range 4 * bins {
				o = append(o, 6*r.Float32()-3)
			}
		}
		return [][]float32{o}
	}, func(o [][]float32) (dets []infer.Detection) {
		for i := range rows {
			row := o[0][i*values : (i+1)*values]
			s, x, y := cellOf(grid, i)
			var side [4]float64
			for j := range side {
				side[j] = integral(row[classes+j*bins:][:bins]) * s
			}
			dets = byClass(dets, classes, func(c int) float64 { return float64(row[c]) }, x*s-side[0], y*s-side[1], x*s+side[2], y*s+side[3])
		}
		return dets
	}}
}

// split is boxes and scores apart: YOLO-NAS (pixels, finished scores), RT-DETR, D-FINE
// and RF-DETR (fractions, logits), DETR and SSD's priors (softmax with a background).
func split(name string, box infer.BoxFormat, units infer.Units, a infer.Activation, background int) family {
	const rows, classes = 300, 6
	columns := classes
	if background >= 0 {
		columns++
	}
	l := infer.Layout{
		Kind: infer.Split, Rows: rows, Values: 4, Classes: classes, Box: box, Units: units, Activation: a, Background: background,
		At: none(), Outputs: noOutputs(),
	}
	l.Outputs.Boxes, l.Outputs.Scores = 1, 0
	return family{name, l, func(r *rand.Rand) [][]float32 {
		var boxes, scores []float32
		for range rows {
			b := centred(r)
			if box == infer.XYXY {
				b = [4]float32{b[0], b[1], b[0] + b[2], b[1] + b[3]}
			}
			if units == infer.Fractions {
				b = [4]float32{b[0] / wide, b[1] / high, b[2] / wide, b[3] / high}
			}
			boxes = append(boxes, b[:]...)
			for range columns {
				s := 0.001 + 0.998*some(r)
				if a != infer.None {
					s = logit(s)
				}
				scores = append(scores, s)
			}
		}
		return [][]float32{scores, boxes}
	}, func(o [][]float32) (dets []infer.Detection) {
		for i := range rows {
			b, s := o[1][4*i:], o[0][i*columns:(i+1)*columns]
			x, y, w, h := float64(b[0]), float64(b[1]), float64(b[2]), float64(b[3])
			if units == infer.Fractions {
				x, y, w, h = x*wide, y*high, w*wide, h*high
			}
			if box == infer.CXCYWH {
				x, y, w, h = x-w/2, y-h/2, x+w/2, y+h/2
			}
			sum := 0.0
			for _, v := range s {
				sum += math.Exp(float64(v))
			}
			dets = byClass(dets, classes, func(c int) float64 {
				if background == 0 {
					c++
				}
				switch a {
				case infer.Sigmoid:
					return sigmoid(s[c])
				case infer.Softmax:
					return math.Exp(float64(s[c])) / sum
				}
				return float64(s[c])
			}, x, y, w, h)
		}
		return dets
	}}
}

// fastestDet is [5+classes][H][W]: objectness, box, classes.
func fastestDet() family {
	const classes, values = 4, 9
	grid, rows := levels(16)
	l := infer.Layout{
		Kind: infer.Joined, Rows: rows, Values: values, Classes: classes, ByValue: true, Box: infer.CXCYWH, Coding: infer.CellTanh,
		Background: -1, OneClass: true, At: infer.Columns{Object: 0, Box: 1, Scores: 5, Class: -1, Image: -1},
		ObjectPower: 0.6, ClassPower: 0.4, Grid: grid, Outputs: noOutputs(),
	}
	l.Outputs.Boxes = 0
	return family{"fastestdet", l, func(r *rand.Rand) [][]float32 {
		var o []float32
		for range rows {
			o = append(o, some(r), 2*r.Float32()-1, 2*r.Float32()-1, 4*r.Float32()-4, 4*r.Float32()-4)
			for range classes {
				o = append(o, r.Float32())
			}
		}
		return [][]float32{transpose(o, values)}
	}, func(outputs [][]float32) (dets []infer.Detection) {
		o := transpose(outputs[0], rows)
		for i := range rows {
			row := o[i*values:]
			class, best := argmax(classes, func(c int) float64 { return float64(row[5+c]) })
			score := math.Pow(float64(row[0]), 0.6) * math.Pow(best, 0.4)
			if score < threshold {
				continue
			}
			g := grid[0]
			x, y := float64(i%g.Width), float64(i/g.Width)
			dets = append(dets, fromCentre(class, score, (math.Tanh(float64(row[1]))+x)/float64(g.Width)*wide,
				(math.Tanh(float64(row[2]))+y)/float64(g.Height)*high, sigmoid(row[3])*wide, sigmoid(row[4])*high))
		}
		return dets
	}}
}

func families() []family {
	return []family{
		yoloV5(false), yoloV5(true),
		yoloV8("yolov8", true, 0), yoloV8("yolov8 transposed", false, 0), yoloV8("yolov8-seg", true, 32), yoloV8("yolov8-pose transposed", false, 51),
		yoloX(),
		nanoDet("nanodet", false, false), nanoDet("nanodet logits", true, false), nanoDet("nanodet by value", true, true), nanoDetPlus(),
		split("yolo-nas", infer.XYXY, infer.InputPixels, infer.None, -1),
		split("rt-detr", infer.CXCYWH, infer.Fractions, infer.Sigmoid, -1),
		split("detr", infer.CXCYWH, infer.Fractions, infer.Softmax, 6),
		split("ssd priors", infer.XYXY, infer.Fractions, infer.Softmax, 0),
		split("ssd priors, finished", infer.XYXY, infer.Fractions, infer.None, 0),
		endToEnd("yolov10", false), endToEnd("yolov7 with nms", true),
		listed("efficientnms", infer.XYXY, infer.InputPixels, true, 0),
		listed("ssd-tf", infer.YXYX, infer.Fractions, true, 1),
		listed("ssd-torchvision", infer.XYXY, infer.InputPixels, false, 1),
		selectedRows(), fastestDet(),
	}
}

func layoutDecoder(tb testing.TB, l infer.Layout, noNMS bool) *infer.LayoutDecoder {
	tb.Helper()
	d, err := infer.NewLayoutDecoder(l, infer.LayoutOptions{Width: wide, Height: high, NoNMS: noNMS})
	if err != nil {
		tb.Fatal(err)
	}
	d.SetThresholds(func(int) float32 { return threshold })
	return d
}

// TestFamiliesAgreeWithAPlainReading compares every detection before suppression.
func TestFamiliesAgreeWithAPlainReading(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			d := layoutDecoder(t, f.layout, true)
			found := 0
			for seed := range uint64(30) {
				o := f.random(rand.New(rand.NewPCG(seed, 7)))
				got, zero, err := d.Decode(o, nil)
				if err != nil || zero {
					t.Fatalf("seed %d: zero %v, error %v", seed, zero, err)
				}
				want := slices.DeleteFunc(f.plain(o), func(d infer.Detection) bool { return d.X1 >= d.X2 || d.Y1 >= d.Y2 })
				found += len(want)
				same(t, got, want)
			}
			if found < 60 {
				t.Errorf("%d detections in all: the test proves little", found)
			}
		})
	}
}

// same wants the same detections but for rounding.
func same(t *testing.T, got, want []infer.Detection) {
	t.Helper()
	order := func(a, b infer.Detection) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(math.Round(float64(a.Score)*1e5), math.Round(float64(b.Score)*1e5)), cmp.Compare(a.X1, b.X1))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if len(got) != len(want) {
		t.Fatalf("%d detections, want %d", len(got), len(want))
	}
	near := func(a, b float32, by float64) bool { return math.Abs(float64(a)-float64(b)) <= by }
	for i, g := range got {
		w := want[i]
		if g.Class != w.Class || !near(g.Score, w.Score, 1e-5) || !near(g.X1, w.X1, 1e-3) || !near(g.Y1, w.Y1, 1e-3) || !near(g.X2, w.X2, 1e-3) || !near(g.Y2, w.Y2, 1e-3) {
			t.Fatalf("detection %d is %+v, want %+v", i, g, w)
		}
	}
}
