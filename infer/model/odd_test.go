package model_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"edgecam/infer"
	"edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
)

// bare gives outputs of these shapes that come from nowhere in particular.
func bare(producer string, outputs map[string][]int) []byte {
	g := fixture.Graph{Producer: producer}
	g.Input("images", onnx.Float32, 1, 3, 320, 320)
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		dims, n := outputs[name], 1
		for _, d := range dims {
			n *= d
		}
		g.As(name, g.Floats(make([]float32, n), dims...))
		g.Output(name, onnx.Float32, dims...)
	}
	return g.Bytes()
}

// TestOthers wants networks that edgecam does not read to be called by their names, and never taken for one that it reads.
func TestOthers(t *testing.T) {
	tests := []struct {
		name     string
		producer string
		outputs  map[string][]int
		want     string
	}{
		{"YOLOv4", "pytorch", map[string][]int{"boxes": {1, 6300, 1, 4}, "confs": {1, 6300, 85}}, "are those of YOLOv4 (Darknet), which edgecam does not read"},
		{"YOLOv4 raw", "tf2onnx", map[string][]int{"a": {1, 40, 40, 3, 85}, "b": {1, 20, 20, 3, 85}, "c": {1, 10, 10, 3, 85}}, "these are raw heads with anchors (YOLOv3, YOLOv4, YOLOv5, YOLOv7)"},
		{"YOLOv2", "CoreMLTools", map[string][]int{"grid": {1, 425, 10, 10}}, "this is a raw head with anchors, as of YOLOv2"},
		{"YOLOv3 of the zoo", "keras2onnx", map[string][]int{"yolonms_layer_1/ExpandDims_1:0": {1, 10647, 4}, "yolonms_layer_1/ExpandDims_3:0": {1, 80, 10647}, "yolonms_layer_1/concat_2:0": {1, 50, 3}}, "YOLOv3 of the ONNX model zoo"},
		{"PP-YOLOE", "PaddlePaddle", map[string][]int{"multiclass_nms3_0.tmp_0": {1, 100, 6}}, "PaddleDetection wrote it (PP-YOLOE, PicoDet)"},
		{"PicoDet", "PaddlePaddle", map[string][]int{
			"s0": {1, 1600, 80}, "s1": {1, 400, 80}, "s2": {1, 100, 80}, "s3": {1, 25, 80}, "b0": {1, 1600, 32}, "b1": {1, 400, 32}, "b2": {1, 100, 32}, "b3": {1, 25, 32},
		}, "PaddleDetection wrote it (PP-YOLOE, PicoDet)"},
		{"FCOS", "pytorch", map[string][]int{"cls": {1, 80, 40, 40}, "box": {1, 4, 40, 40}, "ctr": {1, 1, 40, 40}}, "are those of FCOS"},
		{"CenterNet", "pytorch", map[string][]int{"hm": {1, 80, 80, 80}, "wh": {1, 2, 80, 80}, "reg": {1, 2, 80, 80}}, "is CenterNet's"},
		{"RetinaNet", "pytorch", map[string][]int{"cls": {1, 19206, 80}, "box": {1, 19206, 4}}, "are those of RetinaNet and EfficientDet"},
		{"Caffe", "OpenVINO", map[string][]int{"detection_out": {1, 1, 100, 7}}, "are those of Caffe's SSD"},
		{"masks alone", "pytorch", map[string][]int{"m": {1, 21, 320, 320}}, "a map of the size of the picture with 21 values a pixel is no detector's"},
		{"classifier", "pytorch", map[string][]int{"logits": {1, 1000}}, "one list of numbers a picture names pictures as a whole"},
		{"DAMO-YOLO", "pytorch", map[string][]int{"a": {1, 2100, 80}, "b": {1, 2100, 4}}, "may be YOLO-NAS's, or those of a network that is fed otherwise (DAMO-YOLO, PP-YOLOE)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := model.InspectBytes("odd", bare(tt.producer, tt.outputs), model.Overrides{})
			var me *infer.ModelError
			if !errors.As(err, &me) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("family %q, error %v\nwant %s", r.Spec.Family, err, tt.want)
			}
		})
	}
}

// TestForeignInputs wants to hear whose inputs they are.
func TestForeignInputs(t *testing.T) {
	for input, want := range map[string]string{"scale_factor": "that is PaddleDetection's", "iou_threshold": "export it with thresholds as constants"} {
		var g fixture.Graph
		g.Input("images", onnx.Float32, 1, 3, 320, 320)
		g.Input(input, onnx.Float32, 1, 2)
		g.As("o", g.Floats(make([]float32, 84*2100), 1, 84, 2100))
		g.Output("o", onnx.Float32, 1, 84, 2100)
		if _, err := model.InspectBytes("odd", g.Bytes(), model.Overrides{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// queries is the end of a DETR as exporters write it: rows of a Sigmoid's boxes, of which the best are gathered.
func queries(after func(g *fixture.Graph, boxes, scores string) string, values int) []byte {
	g := fixture.Graph{Producer: "pytorch"}
	g.Input("images", onnx.Float32, 1, 3, 320, 320)
	layer := func(n int) string {
		x := g.Floats(make([]float32, 300*4), 1, 300, 4)
		return g.Node("Sigmoid", []string{g.Node("MatMul", []string{x, g.Floats(make([]float32, 4*n), 4, n)})})
	}
	g.As("output0", after(&g, layer(4), layer(2)))
	g.Output("output0", onnx.Float32, 1, 300, values)
	for k, v := range map[string]string{"author": "Ultralytics", "task": "detect", "stride": "32", "names": "{0: 'a', 1: 'b'}", "end2end": "False"} {
		g.Meta(k, v)
	}
	return g.Bytes()
}

// TestQueriesInSixColumns wants rows of six numbers to be told apart: a box in fractions, a score and a class; a box and two
// classes; both are RT-DETR's, and neither is corners in pixels.
func TestQueriesInSixColumns(t *testing.T) {
	finished := queries(func(g *fixture.Graph, boxes, scores string) string {
		g.Op("", "TopK", []string{g.Node("Flatten", []string{scores}), g.Int64s([]int64{300}, 1)}, []string{"best", "at"})
		index := g.Node("Expand", []string{g.Node("Unsqueeze", []string{"at", g.Int64s([]int64{2}, 1)}), g.Int64s([]int64{1, 300, 4}, 3)})
		score := g.Node("Unsqueeze", []string{"best", g.Int64s([]int64{2}, 1)})
		class := g.Node("Cast", []string{g.Node("Unsqueeze", []string{"at", g.Int64s([]int64{2}, 1)})}, fixture.Int("to", 1))
		return g.Node("Concat", []string{g.Node("GatherElements", []string{boxes, index}, fixture.Int("axis", 1)), score, class}, fixture.Int("axis", 2))
	}, 6)
	both := queries(func(g *fixture.Graph, boxes, scores string) string {
		g.Op("", "TopK", []string{g.Node("Flatten", []string{scores}), g.Int64s([]int64{300}, 1)}, []string{"best", "at"}) // as the encoder chooses
		return g.Node("Concat", []string{boxes, scores}, fixture.Int("axis", 2))
	}, 6)
	for name, tt := range map[string]struct {
		content []byte
		want    string
	}{
		"score and class": {finished, "end_to_end 300×6 cxcywh plain fractions"},
		"two classes":     {both, "joined 300×6 cxcywh plain fractions"},
	} {
		r, err := model.InspectBytes("odd", tt.content, model.Overrides{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := short(&r.Spec.Decode); r.Spec.Family != "rt-detr" || !strings.HasPrefix(got, tt.want) || !r.Spec.NMS.Inside {
			t.Errorf("%s: %s: %s", name, r.Spec.Family, got)
		}
	}
}

// TestPicturesAreNoPrototypes wants an output that only has few channels not to be taken for masks.
func TestPicturesAreNoPrototypes(t *testing.T) {
	r, err := model.InspectBytes("odd", bare("pytorch", map[string][]int{"o": {1, 84, 2100}, "picture": {1, 3, 320, 320}}), model.Overrides{})
	if err != nil || r.Spec.Decode.Classes != 80 {
		t.Errorf("%d classes, %v", r.Spec.Decode.Classes, err)
	}
}

func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	refused(t, pipe, "is not a regular file")
	if _, err := model.ReadLabels(pipe); err == nil || !strings.HasSuffix(err.Error(), "is not a regular file") {
		t.Errorf("labels in a pipe: %v", err)
	}
	ask := bare("pytorch", map[string][]int{"o": {100, 7}})
	r, err := model.InspectBytes("odd", ask, model.Overrides{})
	if r.Refusal != "" || len(r.Ask) != 1 || err == nil || !strings.Contains(err.Error(), "whether score or class comes first") {
		t.Errorf("%q, %+v, %v", r.Refusal, r.Ask, err)
	}
	var twice fixture.Graph
	twice.Input("images", onnx.Float32, 1, 3, 320, 320)
	twice.As("o", twice.Floats(make([]float32, 84*2100), 1, 84, 2100))
	twice.Output("o", onnx.Float32, 1, 84, 2100)
	twice.Output("o", onnx.Float32, 1, 84, 2100)
	if _, err := model.InspectBytes("odd", twice.Bytes(), model.Overrides{}); err == nil || !strings.Contains(err.Error(), "has the output o twice") {
		t.Error(err)
	}
}

// TestWeightsElsewhere wants weights that a link fetches from elsewhere to be refused, and too short ones whose length only
// their shape tells.
func TestWeightsElsewhere(t *testing.T) {
	build := func(numbers int) (string, []byte) {
		var g fixture.Graph
		g.Input("images", onnx.Float32, 1, 3, 320, 320)
		g.Outside("w.bin")
		g.As("o", g.Floats(make([]float32, numbers), 1, 84, numbers/84))
		g.Output("o", onnx.Float32, 1, 84, numbers/84)
		return write(t, g.Bytes()), g.OutsideBytes()
	}
	path, weights := build(84 * 2100)
	elsewhere := filepath.Join(t.TempDir(), "w.bin")
	if err := errors.Join(os.WriteFile(elsewhere, weights, 0o600), os.Symlink(elsewhere, filepath.Join(filepath.Dir(path), "w.bin"))); err != nil {
		t.Skip(err)
	}
	refused(t, path, `keeps its weights in "w.bin", which is a link out of its directory`)
}

// TestNamesOfAnyone wants names that command a terminal or turn writing round to do so nowhere.
func TestNamesOfAnyone(t *testing.T) {
	r, err := model.InspectBytes("odd", bare("pytorch", map[string][]int{"\x1b[31mred\nfamily: fake": {1, 84, 77}}), model.Overrides{})
	if err == nil || strings.ContainsAny(err.Error()+r.Refusal, "\x1b\n") {
		t.Errorf("%q", err)
	}
	for _, f := range r.Findings {
		if strings.ContainsAny(f.Value+f.Evidence, "\x1b\n") {
			t.Errorf("%+v", f)
		}
	}
	for name, label := range map[string]string{"a command": "\u009b31m", "turned": "a\u202eb", "two lines": "a\u2028b", "endless": strings.Repeat("x", 201)} {
		if _, err := model.InspectBytes("odd", bare("pytorch", map[string][]int{"o": {1, 5, 2100}}), model.Overrides{Labels: []string{label}}); err == nil {
			t.Errorf("%s: the label %q is taken", name, label)
		}
	}
}

// TestSizeOfTheExport wants a free size that the graph does not have to be asked for.
func TestSizeOfTheExport(t *testing.T) {
	var g fixture.Graph
	g.Input("images", onnx.Float32, 1, 3, -1, -1)
	x := g.Node("MaxPool", []string{"images"}, fixture.Ints("kernel_shape", 8, 8), fixture.Ints("strides", 8, 8))
	flat := g.Node("Reshape", []string{x, g.Int64s([]int64{0, 3, -1}, 3)})
	g.As("o", g.Node("Add", []string{flat, g.Floats(make([]float32, 1600), 1, 1, 1600)}))
	g.Output("o", onnx.Float32, 1, 84, -1)
	r, err := model.InspectBytes("odd", g.Bytes(), model.Overrides{})
	if err == nil || len(r.Ask) != 1 || r.Ask[0].Key != "inference.model.input.size" || !strings.Contains(r.Ask[0].Why, "Add of [1 3 6400] and [1 1 1600] do not fit together") {
		t.Errorf("%+v, %v", r.Ask, err)
	}
	if r, _ = model.InspectBytes("odd", g.Bytes(), model.Overrides{Width: 320, Height: 320}); len(r.Ask) > 0 { //nolint:errcheck // the form of its outputs is no matter
		t.Errorf("%+v", r.Ask)
	}
}

// TestNamesThatLie wants the key that settles names that are damaged or of another number.
func TestNamesThatLie(t *testing.T) {
	for _, names := range []string{"{0: 'a', 1: 'b", "{0: 'a', 1: 'b', 2: 'c'}", ""} {
		d := fixture.Detector{Family: "yolov8", Classes: 2, Meta: map[string]string{"names": names}}.Bytes()
		r, err := model.InspectBytes("odd", d, model.Overrides{})
		if err == nil || len(r.Ask) != 1 || r.Ask[0].Key != "inference.model.labels" {
			t.Errorf("%q: %+v, %v", names, r.Ask, err)
		}
		if _, err = model.InspectBytes("odd", d, model.Overrides{Labels: []string{"a", "b"}}); err != nil {
			t.Errorf("%q with labels: %v", names, err)
		}
	}
}

func TestOtherNames(t *testing.T) {
	families := model.Families()
	for _, name := range model.Names() {
		if !slices.Contains(families, model.Canonical(name)) {
			t.Errorf("%s stands for %s, which is no family", name, model.Canonical(name))
		}
	}
	if got := model.Canonical("yolo11"); got != model.YOLOv8 {
		t.Error(got)
	}
}
