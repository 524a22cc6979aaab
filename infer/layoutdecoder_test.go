package infer_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edgecam/infer"
)

// find gives a family by name.
func find(tb testing.TB, name string) family {
	tb.Helper()
	for _, f := range families() {
		if f.name == name {
			return f
		}
	}
	tb.Fatalf("no family %s", name)
	return family{}
}

// TestLayoutUnhealthy puts one number that cannot be into the outputs of every
// family, at each place that counts.
func TestLayoutUnhealthy(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			d := layoutDecoder(t, f.layout, false)
			healthy := f.random(rand.New(rand.NewPCG(1, 2)))
			for output, values := range healthy {
				r := rand.New(rand.NewPCG(uint64(output), 3))
				for _, v := range []float32{nan, inf, -inf, math.Float32frombits(0xffc00000)} {
					for range 30 {
						i := r.IntN(len(values))
						if !counts(f.layout, output, i, values, healthy) {
							continue
						}
						o := slices.Clone(healthy)
						o[output] = slices.Clone(values)
						o[output][i] = v
						before := []infer.Detection{{Class: 3}}
						dets, _, err := d.Decode(o, before)
						var sick *infer.UnhealthyError
						if !errors.As(err, &sick) {
							t.Fatalf("output %d, number %d is %v: error %v", output, i, v, err)
						}
						if !slices.Equal(dets, before) {
							t.Fatalf("detections of an unhealthy run: %v", dets)
						}
					}
				}
			}
			if _, _, err := d.Decode(healthy, nil); err != nil {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// counts says whether a number of an output is one that detections may come from.
func counts(l infer.Layout, output, i int, values []float32, all [][]float32) bool {
	value := i % max(l.Values, 1)
	if l.ByValue {
		value = i / max(l.Rows, 1)
	}
	switch l.Kind {
	case infer.Joined:
		return output == 0 && (l.Coding == infer.CellBins || value < max(l.At.Scores+l.Classes, 4))
	case infer.EndToEnd:
		row := values[i-value:]
		return value != l.At.Image && (value != l.At.Class || row[l.At.Scores] >= threshold) && (l.At.Image < 0 || row[l.At.Image] == 0)
	case infer.Listed:
		n := len(all[1])
		if l.Outputs.Count >= 0 {
			n = int(all[3][0])
		}
		switch output {
		case 0:
			return i/4 < n
		case 1:
			return i < n
		case 2:
			return i < n && all[1][i] >= threshold
		}
		return l.Outputs.Count >= 0
	case infer.Selected:
		return output < 2 || i%3 != 0 && values[i-i%3] == 0
	}
	return true
}

func TestLayoutScoresBeyondOne(t *testing.T) {
	for _, name := range []string{"yolov5", "yolov5 by value", "yolov8", "yolov8 transposed", "yolo-nas", "nanodet", "yolov10", "ssd-tf", "fastestdet"} {
		t.Run(name, func(t *testing.T) {
			f := find(t, name)
			l, o := f.layout, f.random(rand.New(rand.NewPCG(4, 5)))
			// A score of the first row, in whichever tensor it is.
			output, at := 0, l.At.Scores
			switch l.Kind {
			case infer.Split:
				at = 0
			case infer.Heads, infer.Joined:
				if l.ByValue {
					at *= l.Rows
				}
			case infer.Listed:
				output, at = 1, 0
				o[3][0] = 5
			}
			d := layoutDecoder(t, l, false)
			for _, v := range []float32{1.5, -0.25, 80} {
				o[output][at] = v
				_, _, err := d.Decode(o, nil)
				want := &infer.UnhealthyError{Output: "scores", Index: at, Value: v, Reason: "not between 0 and 1"}
				if err == nil || err.Error() != want.Error() {
					t.Errorf("score %v: error %v, want %v", v, err, want)
				}
			}
			o[output][at] = 1.0004 // 1 and rounding
			if dets, _, err := d.Decode(o, nil); err != nil || slices.ContainsFunc(dets, func(d infer.Detection) bool { return d.Score > 1 }) {
				t.Errorf("rounding: %v, %v", dets, err)
			}
		})
	}
}

// TestLayoutClasses wants ids that no label has to be refused.
func TestLayoutClasses(t *testing.T) {
	for name, ids := range map[string][]float32{"yolov10": {-2, 9, 2.5, 1e9}, "ssd-tf": {0, 10, 3.5}} {
		f := find(t, name)
		d := layoutDecoder(t, f.layout, false)
		for _, id := range ids {
			o := f.random(rand.New(rand.NewPCG(4, 5)))
			if f.layout.Kind == infer.EndToEnd {
				o[0][4], o[0][5] = 0.9, id
			} else {
				o[1][0], o[2][0], o[3][0] = 0.9, id, 5
			}
			var sick *infer.UnhealthyError
			if _, _, err := d.Decode(o, nil); !errors.As(err, &sick) || sick.Output != "classes" || sick.Reason != "no class of the model" {
				t.Errorf("%s, class %v: error %v", name, id, err)
			}
		}
	}
}

func TestLayoutZero(t *testing.T) {
	tests := []struct {
		name string
		set  func(l *infer.Layout, o [][]float32)
		zero bool
	}{
		{"yolov8", func(l *infer.Layout, o [][]float32) { clear(o[0][4*l.Rows:]) }, true},
		{"yolov8", func(l *infer.Layout, o [][]float32) { clear(o[0]); o[0][5*l.Rows] = 1e-30 }, false},
		{"yolov5", func(l *infer.Layout, o [][]float32) { zeroColumn(o[0], l.Values, 4) }, true}, // no objectness anywhere
		{"rt-detr", func(_ *infer.Layout, o [][]float32) { clear(o[0]) }, true},                  // logits of 0 are no scores of 0.5
		{"detr", func(_ *infer.Layout, o [][]float32) { clear(o[0]) }, true},
		{"yolov10", func(_ *infer.Layout, o [][]float32) { clear(o[0]) }, true},
		{"yolov10", func(l *infer.Layout, o [][]float32) { clear(o[0]); l.Padded = true }, false},
		{"ssd-tf", func(_ *infer.Layout, o [][]float32) { clear(o[0]); clear(o[1]); o[3][0] = 0 }, false},
	}
	for _, tt := range tests {
		f := find(t, tt.name)
		o := f.random(rand.New(rand.NewPCG(4, 5)))
		tt.set(&f.layout, o)
		dets, zero, err := layoutDecoder(t, f.layout, false).Decode(o, nil)
		if zero != tt.zero || err != nil || len(dets) != 0 && tt.zero {
			t.Errorf("%s: zero %v, want %v; error %v, detections %v", tt.name, zero, tt.zero, err, dets)
		}
	}
}

func zeroColumn(o []float32, values, column int) {
	for i := column; i < len(o); i += values {
		o[i] = 0
	}
}

// TestLayoutSuppression has two classes see one object.
func TestLayoutSuppression(t *testing.T) {
	f := find(t, "yolo-nas")
	o := make([][]float32, 2)
	o[0], o[1] = make([]float32, f.layout.Rows*f.layout.Classes), make([]float32, 4*f.layout.Rows)
	for row, class := range []int{0, 1, 0} {
		o[0][row*f.layout.Classes+class] = 0.9 - 0.1*float32(row)
		copy(o[1][4*row:], []float32{10, 10, 50, 50})
	}
	tests := []struct {
		name string
		o    infer.LayoutOptions
		want []int
	}{
		{"by class", infer.LayoutOptions{}, []int{0, 1}},
		{"whatever the class", infer.LayoutOptions{ClassAgnostic: true}, []int{0}},
		{"not at all", infer.LayoutOptions{NoNMS: true}, []int{0, 1, 0}},
	}
	for _, tt := range tests {
		tt.o.Width, tt.o.Height = wide, high
		d, err := infer.NewLayoutDecoder(f.layout, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		dets, _, err := d.Decode(o, nil)
		var got []int
		for _, d := range dets {
			got = append(got, d.Class)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: classes %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// TestLayoutWantedClass takes the best class among those that are wanted.
func TestLayoutWantedClass(t *testing.T) {
	for _, name := range []string{"yolov8", "yolov8 transposed"} {
		f := find(t, name)
		o := f.random(rand.New(rand.NewPCG(4, 5)))
		l := f.layout
		clear(o[0])
		set := func(value int, v float32) {
			if l.ByValue {
				o[0][value*l.Rows] = v
			} else {
				o[0][value] = v
			}
		}
		for i, v := range []float32{50, 50, 20, 20} {
			set(i, v)
		}
		set(4+2, 0.9)
		set(4+5, 0.8)
		set(4+7, 0.95)
		d := layoutDecoder(t, l, false)
		d.SetThresholds(func(c int) float32 {
			if c == 7 {
				return 2
			}
			return 0.5
		})
		dets, _, err := d.Decode(o, nil)
		if want := []infer.Detection{{Class: 2, Score: 0.9, X1: 40, Y1: 40, X2: 60, Y2: 60}}; err != nil || !slices.Equal(dets, want) {
			t.Errorf("%s: %v, %v; want %v", name, dets, err, want)
		}
	}
}

func TestLayoutSelectsImage(t *testing.T) {
	f := find(t, "yolov7 with nms")
	row := func(image, score float32) []float32 { return []float32{image, 10, 10, 20, 20, 1, score} }
	o := [][]float32{slices.Concat(row(0, 0.9), row(1, 0.8), row(-1, 0.7))}
	d := layoutDecoder(t, f.layout, true)
	for image, want := range []float32{0.9, 0.8} {
		dets, _, err := d.DecodeImage(image, o, nil)
		if err != nil || len(dets) != 1 || dets[0].Score != want {
			t.Errorf("image %d: %v, %v", image, dets, err)
		}
	}
}

func TestLayoutRefusals(t *testing.T) {
	good := find(t, "yolov8").layout
	tests := []struct {
		change func(*infer.Layout, *infer.LayoutOptions)
		want   string
	}{
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Kind = 9 }, "make decoder: outputs of an unknown form (9)"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Classes = 0 }, "make decoder: 0 classes, wanted 1 to 10000"},
		{func(_ *infer.Layout, o *infer.LayoutOptions) { o.Labels = 80 }, "make decoder: the model gives 11 classes, 80 labels are known"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Background = 12 }, "make decoder: background at 12 of 12 scores"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Coding = infer.CellExp }, "make decoder: boxes are coded by a grid that is not known"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Rows = 0 }, "make decoder: the number of rows is not known"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) {
			l.Grid = []infer.Level{{Stride: 8, Width: 4, Height: 4}}
		}, "make decoder: 500 rows, and a grid of 16 cells"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Kind = infer.Heads }, "make decoder: heads without levels"},
		{func(l *infer.Layout, _ *infer.LayoutOptions) { l.Values = 9 }, "make decoder: rows of 9 numbers end before their scores"},
	}
	for _, tt := range tests {
		l, o := good, infer.LayoutOptions{Width: wide, Height: high}
		tt.change(&l, &o)
		if _, err := infer.NewLayoutDecoder(l, o); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
	d := layoutDecoder(t, good, false)
	if _, _, err := d.Decode([][]float32{make([]float32, 100)}, nil); err == nil || err.Error() != "decode outputs: 100 numbers of boxes, wanted 7500" {
		t.Errorf("short output: error %v", err)
	}
	if _, _, err := d.Decode(nil, nil); err == nil || err.Error() != "decode outputs: 0 numbers of outputs, wanted 1" {
		t.Errorf("no output: error %v", err)
	}
}

// FuzzLayoutDecoder feeds any bytes as outputs of every family.
func FuzzLayoutDecoder(f *testing.F) {
	all := families()
	for i := range all {
		f.Add(uint8(i), []byte{0, 0, 0x80, 0x3f, 0, 0, 0x40, 0x3f, 0xff, 0xff, 0xff, 0x7f})
	}
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		fam := all[int(which)%len(all)]
		o := fam.random(rand.New(rand.NewPCG(1, 2)))
		for i := 0; i+6 <= len(content); i += 6 {
			values := o[int(content[i])%len(o)]
			at := (int(content[i+1])<<8 | int(content[i+2])) % max(len(values), 1)
			if len(values) > 0 {
				values[at] = math.Float32frombits(uint32(content[i+3])<<24 | uint32(content[i+4])<<16 | uint32(content[i+5])<<8)
			}
		}
		dets, _, err := layoutDecoder(t, fam.layout, false).Decode(o, nil)
		if err != nil {
			return
		}
		for _, d := range dets {
			if !(d.Score >= threshold && d.Score <= 1 && d.X1 >= 0 && d.X1 < d.X2 && d.X2 <= wide && d.Y1 >= 0 && d.Y1 < d.Y2 && d.Y2 <= high && d.Class >= 0 && d.Class < fam.layout.Classes) {
				t.Fatalf("%s: impossible detection %+v", fam.name, d)
			}
		}
	})
}

// street fills [1,84,8400] like a picture of a street: n objects seen by eight
// cells each, over a floor of low scores.
func street(n int) []float32 {
	const rows = 8400
	r := rand.New(rand.NewPCG(1, 2))
	o := make([]float32, 84*rows)
	for i := range o[4*rows:] {
		o[4*rows+i] = 0.02 * r.Float32()
	}
	for i := range rows {
		o[i], o[rows+i], o[2*rows+i], o[3*rows+i] = 640*r.Float32(), 640*r.Float32(), 30, 60
	}
	for k := range n {
		x, y, class := 640*r.Float32(), 640*r.Float32(), r.IntN(4)
		for range 8 {
			i := r.IntN(rows)
			o[i], o[rows+i] = x+r.Float32(), y+r.Float32()
			o[(4+class)*rows+i] = 0.3 + 0.6*r.Float32() - 0.001*float32(k)
		}
	}
	return o
}

func streetDecoder(tb testing.TB) *infer.LayoutDecoder {
	tb.Helper()
	l := infer.Layout{
		Kind: infer.Joined, Rows: 8400, Values: 84, Classes: 80, ByValue: true, Box: infer.CXCYWH, Background: -1, OneClass: true,
		At: infer.Columns{Scores: 4, Object: -1, Class: -1, Image: -1},
	}
	d, err := infer.NewLayoutDecoder(l, infer.LayoutOptions{Width: 640, Height: 640, Labels: 80})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestLayoutDecodeAllocatesNothing(t *testing.T) {
	d, o := streetDecoder(t), [][]float32{street(30)}
	dst := make([]infer.Detection, 0, 300)
	threshold := func(int) float32 { return 0.25 }
	allocs := testing.AllocsPerRun(20, func() {
		d.SetThresholds(threshold)
		if dets, _, err := d.Decode(o, dst); err != nil || len(dets) < 10 {
			t.Errorf("%d detections, %v", len(dets), err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a call", allocs)
	}
}

// BenchmarkLayoutDecode is [1,84,8400] at a threshold of 0.25, with NMS.
func BenchmarkLayoutDecode(b *testing.B) {
	for name, objects := range map[string]int{"empty": 0, "objects=30": 30, "objects=200": 200} {
		b.Run(name, func(b *testing.B) {
			d, o := streetDecoder(b), [][]float32{street(objects)}
			d.SetThresholds(func(int) float32 { return 0.25 })
			dst := make([]infer.Detection, 0, 300)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := d.Decode(o, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
