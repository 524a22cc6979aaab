package infer_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edgecam/infer"
)

// outputs are the raw outputs of a detector, quiet until something is put in.
type outputs struct {
	classes       int
	boxes, scores []float32
}

func quiet(boxes, classes int) *outputs {
	o := &outputs{classes: classes, boxes: make([]float32, boxes*4), scores: make([]float32, boxes*classes)}
	for i := range boxes {
		copy(o.boxes[i*4:], []float32{10, 10, 20, 20})
	}
	for i := range o.scores {
		o.scores[i] = 0.003
	}
	return o
}

func (o *outputs) put(row, class int, score float32, box ...float32) {
	copy(o.boxes[row*4:], box)
	o.scores[row*o.classes+class] = score
}

func decoder(tb testing.TB, boxes, classes int) *infer.Decoder {
	tb.Helper()
	d, err := infer.NewDecoder(infer.DecoderOptions{Width: 416, Height: 320, Boxes: boxes, Classes: classes})
	if err != nil {
		tb.Fatal(err)
	}
	d.SetThresholds(func(int) float32 { return 0.45 })
	return d
}

func TestDecode(t *testing.T) {
	o := quiet(40, 10)
	o.put(0, 3, 0.9, 100, 100, 200, 200)
	o.put(1, 3, 0.5, 102, 101, 199, 203)  // overlaps the one before
	o.put(2, 4, 0.7, 102, 101, 199, 203)  // another class stays
	o.put(3, 3, 0.6, 300, 200, 500, 400)  // is clipped
	o.put(4, 3, 0.99, 420, 10, 480, 50)   // lies outside
	o.put(5, 3, 0.99, 50, 50, 50, 90)     // has no width
	o.put(6, 9, 0.44, 0, 0, 50, 50)       // below the threshold
	o.put(7, 9, 0.45, -20, -30, 50, 60.5) // at the threshold
	o.put(8, 9, 1.0005, 200, 10, 210, 20) // 1 and rounding
	before := []infer.Detection{{Class: 7}}
	got, zero, err := decoder(t, 40, 10).Decode(o.boxes, o.scores, before)
	if err != nil || zero {
		t.Fatalf("zero %v, error %v", zero, err)
	}
	want := []infer.Detection{
		{Class: 7},
		{Class: 9, Score: 1, X1: 200, Y1: 10, X2: 210, Y2: 20},
		{Class: 3, Score: 0.9, X1: 100, Y1: 100, X2: 200, Y2: 200},
		{Class: 4, Score: 0.7, X1: 102, Y1: 101, X2: 199, Y2: 203},
		{Class: 3, Score: 0.6, X1: 300, Y1: 200, X2: 416, Y2: 320},
		{Class: 9, Score: 0.45, X1: 0, Y1: 0, X2: 50, Y2: 60.5},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestDecodeThresholds(t *testing.T) {
	o := quiet(8, 3)
	o.put(0, 0, 0.30, 0, 0, 10, 10)
	o.put(1, 1, 0.30, 0, 0, 10, 10)
	o.put(2, 2, 0.99, 0, 0, 10, 10)
	nan := float32(math.NaN())
	tests := []struct {
		name       string
		thresholds [3]float32
		want       []int
	}{
		{"one for all", [3]float32{0.3, 0.3, 0.3}, []int{2, 0, 1}},
		{"by class", [3]float32{0.2, 0.31, 0.5}, []int{2, 0}},
		{"class not wanted", [3]float32{0.2, 0.2, 2}, []int{0, 1}},
		{"nothing wanted", [3]float32{2, 2, 2}, nil},
		{"0 and NaN count as 0.01", [3]float32{0, nan, 2}, []int{0, 1}},
		{"infinite", [3]float32{float32(math.Inf(1)), 0.3, 1}, []int{1}},
	}
	d := decoder(t, 8, 3)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d.SetThresholds(func(c int) float32 { return tt.thresholds[c] })
			dets, _, err := d.Decode(o.boxes, o.scores, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, det := range dets {
				got = append(got, det.Class)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("classes %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDecodeUnhealthy(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name string
		put  func(o *outputs)
		want string
	}{
		{"score NaN", func(o *outputs) { o.scores[17] = nan }, "read output scores of image 0: value 17 is NaN: not between 0 and 1"},
		{"score negative NaN", func(o *outputs) { o.scores[17] = math.Float32frombits(0xffffffff) }, "read output scores of image 0: value 17 is NaN: not between 0 and 1"},
		{"score infinite", func(o *outputs) { o.scores[31] = inf }, "read output scores of image 0: value 31 is +Inf: not between 0 and 1"},
		{"score negative infinite", func(o *outputs) { o.scores[0] = -inf }, "read output scores of image 0: value 0 is -Inf: not between 0 and 1"},
		{"score above 1", func(o *outputs) { o.scores[8] = 1.5 }, "read output scores of image 0: value 8 is 1.5: not between 0 and 1"},
		{"score negative", func(o *outputs) { o.scores[9] = -0.25 }, "read output scores of image 0: value 9 is -0.25: not between 0 and 1"},
		{"box NaN without a score", func(o *outputs) { o.boxes[5] = nan }, "read output boxes of image 0: value 5 is NaN: not finite"},
		{"box infinite", func(o *outputs) { o.boxes[31] = -inf }, "read output boxes of image 0: value 31 is -Inf: not finite"},
		{"box inverted", func(o *outputs) { o.put(2, 1, 0.9, 50, 50, 40, 60) }, "read output boxes of image 0: value 10 is 40: right of the box left of its left"},
		{"box upside down", func(o *outputs) { o.put(2, 1, 0.9, 50, 50, 60, 40) }, "read output boxes of image 0: value 11 is 40: bottom of the box above its top"},
		{"box far away", func(o *outputs) { o.put(2, 1, 0.9, 50, 50, 60, 1e7) }, "read output boxes of image 0: value 11 is 1e+07: far outside of the input"},
	}
	d := decoder(t, 8, 4)
	wantedOrNot := map[string]float32{"wanted": 0.45, "class not wanted": 2}
	for _, tt := range tests {
		for name, threshold := range wantedOrNot {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				d.SetThresholds(func(int) float32 { return threshold })
				o := quiet(8, 4)
				tt.put(o)
				before := []infer.Detection{{Class: 1}}
				got, _, err := d.Decode(o.boxes, o.scores, before)
				var unhealthy *infer.UnhealthyError
				if threshold > 1 && o.scores[2*4+1] == 0.9 {
					if err != nil {
						t.Errorf("box of a class that is not wanted: %v", err)
					}
					return
				}
				if !errors.As(err, &unhealthy) || err.Error() != tt.want {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				if !slices.Equal(got, before) {
					t.Errorf("detections of an unhealthy run: %v", got)
				}
			})
		}
	}
}

func TestDecodeZero(t *testing.T) {
	d := decoder(t, 8, 4)
	o := quiet(8, 4)
	clear(o.scores)
	if dets, zero, err := d.Decode(o.boxes, o.scores, nil); !zero || err != nil || len(dets) != 0 {
		t.Errorf("all zero: zero %v, error %v, detections %v", zero, err, dets)
	}
	o.scores[3] = float32(math.Copysign(0, -1))
	if _, zero, err := d.Decode(o.boxes, o.scores, nil); !zero || err != nil {
		t.Errorf("negative zero: zero %v, error %v", zero, err)
	}
	o.scores[3] = 1e-30
	if _, zero, err := d.Decode(o.boxes, o.scores, nil); zero || err != nil {
		t.Errorf("one tiny score: zero %v, error %v", zero, err)
	}
}

func TestDecodeBoundsItsWork(t *testing.T) {
	const boxes, classes = 3549, 4
	d := decoder(t, boxes, classes)
	o := quiet(boxes, classes)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range o.scores {
		o.scores[i] = 0.5 + rng.Float32()/2
	}
	for i := range boxes {
		x, y := rng.Float32()*400, rng.Float32()*300
		copy(o.boxes[i*4:], []float32{x, y, x + 4, y + 4})
	}
	dets, _, err := d.Decode(o.boxes, o.scores, nil)
	if err != nil || len(dets) != 300 {
		t.Fatalf("%d detections, %v; want 300", len(dets), err)
	}
	best := slices.Max(o.scores)
	if dets[0].Score != best {
		t.Errorf("first score %v, the best is %v", dets[0].Score, best)
	}
}

func TestDecodeWrongSizes(t *testing.T) {
	d := decoder(t, 8, 4)
	want := "decode outputs: 32 box and 31 score values, wanted 8 boxes of 4 classes"
	if _, _, err := d.Decode(make([]float32, 32), make([]float32, 31), nil); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	for _, o := range []infer.DecoderOptions{{}, {Width: 1, Height: 1, Boxes: 1}, {Width: 1, Height: 1, Boxes: 1, Classes: 1, IoU: 1.5}} {
		if _, err := infer.NewDecoder(o); err == nil {
			t.Errorf("options %+v: no error", o)
		}
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	d := decoder(t, 3549, 80)
	o := quiet(3549, 80)
	for i := range 20 {
		o.put(i*100, i%3, 0.5+float32(i)/50, float32(i*10), 10, float32(i*10+30), 90)
	}
	dst := make([]infer.Detection, 0, 300)
	threshold := func(int) float32 { return 0.45 }
	allocs := testing.AllocsPerRun(20, func() {
		d.SetThresholds(threshold)
		if _, _, err := d.Decode(o.boxes, o.scores, dst); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a call", allocs)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, objects := range map[string]int{"empty": 0, "objects=20": 20} {
		b.Run(name, func(b *testing.B) {
			d := decoder(b, 3549, 80)
			o := quiet(3549, 80)
			for i := range objects {
				for j := range 6 { // neighbours that see the same object
					o.put(i*100+j, i%3, 0.5+float32(i+j)/60, float32(i*10+j), 10, float32(i*10+30+j), 90)
				}
			}
			dst := make([]infer.Detection, 0, 300)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := d.Decode(o.boxes, o.scores, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
