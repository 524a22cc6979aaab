package model_test

import (
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
)

func TestInputForms(t *testing.T) {
	for _, typ := range []onnx.Type{onnx.Float32, onnx.Float16, onnx.Uint8} {
		for _, nhwc := range []bool{false, true} {
			r := inspect(t, fixture.Detector{Family: "yolov8", Type: typ, NHWC: nhwc}, model.Overrides{})
			layout := "NCHW"
			if nhwc {
				layout = "NHWC"
			}
			std := float32(255)
			if typ == onnx.Uint8 {
				std = 1 // the graph must do it
			}
			if i := r.Spec.Input; i.Layout != layout || i.Type != typ.String() || i.Std != [3]float32{std, std, std} {
				t.Errorf("%v nhwc=%v: %+v", typ, nhwc, i)
			}
		}
	}
}

// head makes a model of two classes whose pictures go through steps first.
func head(dims []int, steps func(g *fixture.Graph, picture string) string) []byte {
	var g fixture.Graph
	g.Input("images", onnx.Float32, dims...)
	picture := steps(&g, "images")
	mean := g.Node("ReduceMean", []string{picture}, fixture.Ints("axes", 1, 2, 3), fixture.Int("keepdims", 1))
	zero := g.Node("Reshape", []string{g.Node("Mul", []string{mean, g.Floats([]float32{0}, 1)}), g.Int64s([]int64{-1, 1, 1}, 3)})
	g.As("output0", g.Node("Add", []string{zero, g.Floats(make([]float32, 6*2100), 1, 6, 2100)}))
	g.Output("output0", onnx.Float32, dims[0], 6, 2100)
	g.Meta("names", `["a","b"]`)
	return g.Bytes()
}

func TestNormalisationInside(t *testing.T) {
	constants := func(g *fixture.Graph, v ...float32) string { return g.Floats(v, 1, len(v), 1, 1) }
	tests := []struct {
		name  string
		steps func(g *fixture.Graph, p string) string
		std   float32
	}{
		{"none", func(_ *fixture.Graph, p string) string { return p }, 255},
		{"divided by 255", func(g *fixture.Graph, p string) string { return g.Node("Div", []string{p, g.Floats([]float32{255})}) }, 1},
		{"times 1/255", func(g *fixture.Graph, p string) string {
			return g.Node("Mul", []string{p, g.Floats([]float32{1 / 255.}, 1)})
		}, 1},
		{"mean of bytes", func(g *fixture.Graph, p string) string {
			return g.Node("Div", []string{g.Node("Sub", []string{p, constants(g, 123.7, 116.3, 103.5)}), constants(g, 58.4, 57.1, 57.4)})
		}, 1},
		{"mean of fractions", func(g *fixture.Graph, p string) string {
			return g.Node("Div", []string{g.Node("Sub", []string{p, constants(g, 0.485, 0.456, 0.406)}), constants(g, 0.229, 0.224, 0.225)})
		}, 255},
		{"-1 to 1", func(g *fixture.Graph, p string) string {
			return g.Node("Sub", []string{g.Node("Mul", []string{p, g.Floats([]float32{1 / 127.5}, 1)}), g.Floats([]float32{1}, 1)})
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := model.Inspect(write(t, head([]int{1, 3, 320, 320}, tt.steps)), model.Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			if i := r.Spec.Input; i.Mean != [3]float32{} || i.Std[0] != tt.std {
				t.Errorf("mean %v, std %v; want 0, %v", i.Mean, i.Std, tt.std)
			}
		})
	}
}

func nothing(_ *fixture.Graph, p string) string { return p }

func TestDynamicSize(t *testing.T) {
	file := write(t, head([]int{-1, 3, -1, -1}, nothing))
	r, err := model.Inspect(file, model.Overrides{Width: 320, Height: 320})
	if err != nil {
		t.Fatal(err)
	}
	if i := r.Spec.Input; i.Width != 320 || i.Height != 320 || !i.DynamicSize || i.Batch != 0 {
		t.Errorf("%+v", i)
	}
	var g fixture.Graph // its size is stated, height first
	g.Input("images", onnx.Float32, 1, 3, -1, -1)
	g.As("output0", g.Floats(make([]float32, 6*1680), 1, 6, 1680))
	g.Output("output0", onnx.Float32, 1, 6, 1680)
	g.Meta("names", "{0: 'a', 1: 'b'}")
	g.Meta("imgsz", "[256, 320]")
	if r, err = model.Inspect(write(t, g.Bytes()), model.Overrides{}); err != nil || r.Spec.Input.Width != 320 || r.Spec.Input.Height != 256 {
		t.Errorf("%+v, %v", r.Spec.Input, err)
	}
}

// TestStuckBatch wants a file that declares a free batch and holds one picture to be fed one at a time.
func TestStuckBatch(t *testing.T) {
	var g fixture.Graph
	g.Input("images", onnx.Float32, -1, 3, 320, 320)
	mean := g.Node("ReduceMean", []string{"images"}, fixture.Int("keepdims", 0))
	g.As("output0", g.Node("Add", []string{mean, g.Floats(make([]float32, 6*2100), 1, 6, 2100)}))
	g.Output("output0", onnx.Float32, -1, 6, 2100)
	g.Meta("names", `{"0":"a","1":"b"}`)
	r, err := model.Inspect(write(t, g.Bytes()), model.Overrides{})
	if err != nil || r.Spec.Input.Batch != 1 {
		t.Errorf("batch %d, %v", r.Spec.Input.Batch, err)
	}
}

func TestOverrides(t *testing.T) {
	scale := float32(1.0 / 255)
	r := inspect(t, fixture.Detector{Family: "yolov8", Width: 320, Height: 256}, model.Overrides{
		Width: 320, Height: 256, Layout: "NCHW", Color: "BGR", Letterbox: "top_left", IoU: 0.5, ClassAgnostic: true,
		Mean: &[3]float32{0.5, 0.4, 0.3}, Std: &[3]float32{0.2, 0.25, 0.5}, Scale: &scale, Labels: labels(80),
	})
	i := r.Spec.Input
	near := func(a, b float32) bool { return a > b-0.01 && a < b+0.01 }
	if i.Order != infer.BGR || i.Align != infer.TopLeft || !near(i.Mean[0], 127.5) || !near(i.Std[1], 63.75) || r.Spec.NMS != (model.NMS{IoU: 0.5, ClassAgnostic: true}) || r.Spec.Labels[79] != "class 79" {
		t.Errorf("%+v", r.Spec)
	}
	for _, f := range r.Findings {
		if (f.About == "color" || f.About == "normalisation" || f.About == "letterbox") && f.Certainty != model.FromConfig {
			t.Errorf("%+v", f)
		}
	}
}

func TestContradictions(t *testing.T) {
	tests := []struct {
		name string
		o    model.Overrides
		want string
	}{
		{"size", model.Overrides{Width: 640, Height: 640}, "inference.model.input.size is [640, 640], but input images float32[1,3,256,320] fixes [320, 256]"},
		{"layout", model.Overrides{Layout: "NHWC"}, "inference.model.input.layout is NHWC, but input images float32[1,3,256,320] is NCHW"},
		{"unknown layout", model.Overrides{Layout: "CHWN"}, `inference.model.input.layout is "CHWN", wanted NCHW or NHWC`},
		{"color", model.Overrides{Color: "YUV"}, `inference.model.input.color is "YUV", wanted RGB or BGR`},
		{"letterbox", model.Overrides{Letterbox: "left"}, "wanted center or top_left"},
		{"std of fractions", model.Overrides{Std: &[3]float32{0.2, 0.2, 0.2}}, "set inference.model.input.scale to 0.00392157"},
		{"zero std", model.Overrides{Std: &[3]float32{1, 0, 1}}, "inference.model.input.std is [1 0 1]"},
		{"two sources of labels", model.Overrides{Labels: labels(80), LabelsFile: "x.txt"}, "inference.model.labels names a file and a list"},
		{"missing labels", model.Overrides{LabelsFile: "/does/not/exist.txt"}, "labels /does/not/exist.txt: no such file or directory"},
		{"iou", model.Overrides{IoU: 2}, "inference.model.nms.iou is 2, wanted 0 to 1"},
	}
	file := write(t, fixture.Detector{Family: "yolov8", Width: 320, Height: 256}.Bytes())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := model.Inspect(file, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant  %s", err, tt.want)
			}
		})
	}
}

func TestInputsRefused(t *testing.T) {
	tests := []struct {
		name   string
		inputs func(g *fixture.Graph)
		want   string
	}{
		{"grey", func(g *fixture.Graph) { g.Input("images", onnx.Float32, 1, 1, 320, 320) }, "has no three channels"},
		{"integers", func(g *fixture.Graph) { g.Input("images", onnx.Int64, 1, 3, 320, 320) }, "is int64: edgecam feeds float32, float16 and uint8"},
		{"two pictures", func(g *fixture.Graph) {
			g.Input("a", onnx.Float32, 1, 3, 320, 320)
			g.Input("b", onnx.Float32, 1, 3, 320, 320)
		}, "has 2 inputs that could be pictures (a float32[1,3,320,320], b float32[1,3,320,320])"},
		{"text", func(g *fixture.Graph) {
			g.Input("images", onnx.Float32, 1, 3, 320, 320)
			g.Input("tokens", onnx.Int64, 1, 77)
		}, "has an input tokens int64[1,77]"},
		{"huge", func(g *fixture.Graph) { g.Input("images", onnx.Float32, 1, 3, 100000, 320) }, "a side of 100000 is not between 1 and 8192"},
		{"channels anywhere", func(g *fixture.Graph) { g.Input("images", onnx.Float32, 1, 3, 320, 3) }, "does not tell where the channels stand (NCHW, NHWC)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g fixture.Graph
			tt.inputs(&g)
			g.As("output0", g.Floats(make([]float32, 6*2100), 1, 6, 2100))
			g.Output("output0", onnx.Float32, 1, 6, 2100)
			if _, err := model.Inspect(write(t, g.Bytes()), model.Overrides{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant  %s", err, tt.want)
			}
		})
	}
}
