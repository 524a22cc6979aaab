package ort

import (
	"fmt"
	"math"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
	"edgecam/preprocess"
)

// i420 is a picture of one colour, in limited range.
func i420(width, height int, y, cb, cr byte) *framepool.Frame {
	cw, ch := (width+1)/2, (height+1)/2
	planes := [][]byte{make([]byte, width*height), make([]byte, cw*ch), make([]byte, cw*ch)}
	for i, v := range []byte{y, cb, cr} {
		for k := range planes[i] {
			planes[i][k] = v
		}
	}
	m := framepool.Meta{Camera: "gate", Width: width, Height: height, Format: framepool.I420, Matrix: framepool.MatrixBT601}
	m.Stride[0], m.Stride[1], m.Stride[2] = width, cw, cw
	return framepool.NewHeapFrame(m, planes)
}

// through runs a picture through the stage in front of an engine, the engine, and
// back to pixels of the picture.
func through(t *testing.T, e *Engine, f *framepool.Frame) []infer.Detection {
	t.Helper()
	return throughAt(t, e, f, 0.5)
}

func throughAt(t *testing.T, e *Engine, f *framepool.Frame, threshold float32) []infer.Detection {
	t.Helper()
	s := acquire(t, e)
	defer s.Release()
	tr, err := preprocess.NewCPU(e.Info().Input).Run(f, s.Input(0))
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]infer.Detection, 1)
	if err := s.Run(1, func(int) float32 { return threshold }, out); err != nil {
		t.Fatal(err)
	}
	m := f.Meta()
	for i, d := range out[0] {
		d = tr.Inverse(d)
		d.X1, d.X2 = d.X1*float32(m.Width), d.X2*float32(m.Width)
		d.Y1, d.Y2 = d.Y1*float32(m.Height), d.Y2*float32(m.Height)
		out[0][i] = d
	}
	return out[0]
}

// TestGeometry wants a box at a known place of the model's space at the pixels of the
// picture that lie there, and one that reaches into the padding clipped to the picture.
func TestGeometry(t *testing.T) {
	sizes := []struct{ width, height, input int }{
		{3775, 1571, 1280}, {360, 640, 416}, {1918, 1078, 640}, {1600, 100, 640}, {100, 1600, 640}, {641, 641, 640}, {1920, 1080, 416},
	}
	for _, size := range sizes {
		for _, family := range []string{"yolov8", "boxes-scores"} {
			t.Run(fmt.Sprintf("%s %dx%d in %d", family, size.width, size.height, size.input), func(t *testing.T) {
				w, h, in := float64(size.width), float64(size.height), float64(size.input)
				// The picture is scaled by the smaller ratio, to whole pixels, and lies in the middle.
				ratio := min(in/w, in/h)
				nw, nh := math.RoundToEven(w*ratio), math.RoundToEven(h*ratio)
				left, top := math.Floor((in-nw)/2), math.Floor((in-nh)/2)
				x := func(v float64) float32 { return float32(v*nw/w + left) }
				y := func(v float64) float32 { return float32(v*nh/h + top) }
				want := infer.Detection{Class: 1, X1: float32(0.31 * w), Y1: float32(0.22 * h), X2: float32(0.57 * w), Y2: float32(0.71 * h)}
				model := fixture.Detector{Family: family, Width: size.input, Height: size.input, Objects: []infer.Detection{
					{Class: 1, Score: 0.9, X1: x(float64(want.X1)), Y1: y(float64(want.Y1)), X2: x(float64(want.X2)), Y2: y(float64(want.Y2))},
					{Class: 2, Score: 0.8, X1: 0, Y1: 0, X2: float32(in), Y2: float32(in)}, // all of the input, with its padding
				}}
				path := detectorFile(t, model)
				e := engine(t, Options{Model: path, Spec: specOf(t, path), Concurrency: 1})
				f := i420(size.width, size.height, 90, 128, 128)
				defer f.Release()
				got := through(t, e, f)
				if len(got) != 2 {
					t.Fatalf("detections %+v", got)
				}
				for i, w := range []infer.Detection{want, {Class: 2, X2: float32(size.width), Y2: float32(size.height)}} {
					g := got[i]
					if worst := max(abs(g.X1-w.X1), abs(g.Y1-w.Y1), abs(g.X2-w.X2), abs(g.Y2-w.Y2)); g.Class != w.Class || worst > 1 {
						t.Errorf("%+v is %.2f pixels from %+v", g, worst, w)
					}
					if g.X1 < 0 || g.Y1 < 0 || g.X2 > float32(size.width) || g.Y2 > float32(size.height) {
						t.Errorf("%+v leaves the picture", g)
					}
				}
			})
		}
	}
}

func abs(v float32) float32 { return max(v, -v) }

// means is a model whose three scores are the means of the channels of its input, as
// shares of the brightest.
func means(order string, element onnx.Type, nhwc bool) []byte {
	const side = 32
	var g fixture.Graph
	dims, axes := []int{1, 3, side, side}, []int{2, 3}
	if nhwc {
		dims, axes = []int{1, side, side, 3}, []int{1, 2}
	}
	g.Input("images", element, dims...)
	g.Output("boxes", onnx.Float32, 1, 1, 4)
	g.Output("scores", onnx.Float32, 1, 1, 3)
	mean := g.Node("ReduceMean", []string{g.Node("Cast", []string{"images"}, fixture.Int("to", int(onnx.Float32)))},
		fixture.Ints("axes", axes...), fixture.Int("keepdims", 0))
	std := "[255,255,255]"
	if element == onnx.Uint8 {
		mean, std = g.Node("Mul", []string{mean, g.Floats([]float32{1.0 / 255}, 1)}), "[1,1,1]"
	}
	g.As("scores", g.Node("Reshape", []string{mean, g.Int64s([]int64{1, 1, 3}, 3)}))
	g.As("boxes", g.Floats([]float32{4, 4, 20, 20}, 1, 1, 4))
	layout := "NCHW"
	if nhwc {
		layout = "NHWC"
	}
	for key, value := range map[string]string{
		"names": `["first","second","third"]`, "family": "boxes-scores", "input_size": "[32,32]", "input_layout": layout,
		"color_order": order, "mean": "[0,0,0]", "std": std, "letterbox": "center", "letterbox_pad": "0",
		"box_format": "xyxy", "box_units": "input_pixels", "scores_activated": "true",
	} {
		g.Meta(key, value)
	}
	return g.Bytes()
}

// TestChannels shows pure red, green and blue to models of either order of colours, in
// every form of input: the channel that is meant has it all, the others nothing.
func TestChannels(t *testing.T) {
	colours := map[string][3]byte{"red": {81, 90, 240}, "green": {145, 54, 34}, "blue": {41, 240, 110}} // BT.601
	channel := map[string]map[string]int{"RGB": {"red": 0, "green": 1, "blue": 2}, "BGR": {"red": 2, "green": 1, "blue": 0}}
	for order, channels := range channel {
		for _, element := range []onnx.Type{onnx.Float32, onnx.Float16, onnx.Uint8} {
			for _, nhwc := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %v nhwc=%v", order, element, nhwc), func(t *testing.T) {
					e := engine(t, Options{Model: fileOf(t, means(order, element, nhwc)), Concurrency: 1})
					for name, c := range colours {
						f := i420(64, 64, c[0], c[1], c[2])
						got := through(t, e, f)
						f.Release()
						if len(got) != 1 || got[0].Class != channels[name] || got[0].Score < 0.98 {
							t.Errorf("%s: %+v, want channel %d alone", name, got, channels[name])
						}
					}
				})
			}
		}
	}
}
