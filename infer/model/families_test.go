package model_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/infer/model"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
)

func write(tb testing.TB, content []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.onnx")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func labels(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("class %d", i)
	}
	return list
}

// inspect wants a model that can be used.
func inspect(tb testing.TB, d fixture.Detector, o model.Overrides) *model.Report {
	tb.Helper()
	if len(d.Objects) == 0 {
		d.Objects = []infer.Detection{{Class: 1, Score: 0.9, X1: 40, Y1: 50, X2: 100, Y2: 170}, {Class: 0, Score: 0.8, X1: 150, Y1: 60, X2: 190, Y2: 170}}
	}
	r, err := model.Inspect(write(tb, d.Bytes()), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// shape is what a family's Layout has in short.
func short(l *infer.Layout) string {
	s := fmt.Sprintf("%v %d×%d %v %v %v", l.Kind, l.Rows, l.Values, l.Box, l.Coding, l.Units)
	add := func(on bool, word string) {
		if on {
			s += " " + word
		}
	}
	add(l.ByValue, "by-value")
	add(l.ScoresByValue, "scores-by-value")
	add(l.At.Object >= 0, fmt.Sprintf("object@%d", l.At.Object))
	s += fmt.Sprintf(" box@%d scores@%d", l.At.Box, l.At.Scores)
	add(l.At.Class >= 0, fmt.Sprintf("class@%d", l.At.Class))
	add(l.At.Image >= 0, fmt.Sprintf("image@%d", l.At.Image))
	add(l.Activation != infer.None, l.Activation.String())
	add(l.Background >= 0, fmt.Sprintf("background=%d", l.Background))
	add(l.FirstID != 0, "from-1")
	add(l.Bins > 0, fmt.Sprintf("bins=%d point=%v", l.Bins, l.CellPoint))
	add(len(l.Grid) > 0, fmt.Sprintf("levels=%d", len(l.Grid)))
	return s
}

// TestFamilies wants every family to be recognised for what it is, with batches fixed and free.
func TestFamilies(t *testing.T) {
	ask := map[string]bool{} // those whose files cannot tell how many classes there are
	for _, f := range []string{"ssd-tf", "ssd-torchvision", "yolo-nas/batch", "yolo-nas/flat", "yolov7/end2end", "yolov10", "rt-detr/finished"} {
		ask[f] = true
	}
	tests := map[string]struct{ family, layout string }{
		"nanodet":             {"nanodet", "joined 1680×112 ltrb cell_bins input_pixels box@80 scores@0 bins=8 point=0.5 levels=3"},
		"nanodet/plus":        {"nanodet", "joined 1700×112 ltrb cell_bins input_pixels box@80 scores@0 bins=8 point=0 levels=4"},
		"nanodet/heads":       {"nanodet", "heads 1680×32 ltrb cell_bins input_pixels box@0 scores@0 bins=8 point=0.5 levels=3"},
		"yolox":               {"yolox", "joined 1680×85 cxcywh cell_exp input_pixels object@4 box@0 scores@5 levels=3"},
		"yolox/decoded":       {"yolox", "joined 1680×85 cxcywh plain input_pixels object@4 box@0 scores@5"},
		"yolov5":              {"yolov5", "joined 5040×85 cxcywh plain input_pixels object@4 box@0 scores@5"},
		"yolov6":              {"yolov6", "joined 1680×85 cxcywh plain input_pixels object@4 box@0 scores@5"},
		"yolov7":              {"yolov7", "joined 5040×85 cxcywh plain input_pixels object@4 box@0 scores@5"},
		"yolov7/end2end":      {"onnx-nms", "end_to_end 0×7 xyxy plain input_pixels box@1 scores@6 class@5 image@0"},
		"yolov8":              {"yolov8", "joined 1680×84 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8/transposed":   {"yolov8", "joined 1680×84 cxcywh plain input_pixels box@0 scores@4"},
		"yolov8/seg":          {"yolov8", "joined 1680×116 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8/pose":         {"yolov8", "joined 1680×135 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8/heads":        {"yolov8", "heads 1680×144 ltrb cell_bins input_pixels by-value scores-by-value box@0 scores@64 sigmoid bins=16 point=0.5 levels=3"},
		"yolov10":             {"yolov10", "end_to_end 300×6 xyxy plain input_pixels box@0 scores@4 class@5"},
		"yolo-nas":            {"yolo-nas", "split 1680×4 xyxy plain input_pixels box@0 scores@0"},
		"yolo-nas/flat":       {"onnx-nms", "end_to_end 0×7 xyxy plain input_pixels box@1 scores@5 class@6 image@0"},
		"yolo-nas/batch":      {"efficientnms", "listed 100×4 xyxy plain input_pixels box@0 scores@0 class@0"},
		"rt-detr":             {"rt-detr", "listed 300×4 xyxy plain input_pixels box@0 scores@0 class@0"},
		"rt-detr/ultralytics": {"rt-detr", "joined 300×84 cxcywh plain fractions box@0 scores@4"},
		"rt-detr/finished":    {"rt-detr", "end_to_end 300×6 cxcywh plain fractions box@0 scores@4 class@5"},
		"rt-detr/logits":      {"rt-detr", "split 300×4 cxcywh plain fractions box@0 scores@0 sigmoid"},
		"d-fine":              {"d-fine", "listed 300×4 xyxy plain input_pixels box@0 scores@0 class@0"},
		"rf-detr":             {"rf-detr", "split 300×4 cxcywh plain fractions box@0 scores@0 sigmoid"},
		"ssd-tf":              {"ssd-tf", "listed 100×4 yxyx plain fractions box@0 scores@0 class@0 from-1"},
		"ssd-torchvision":     {"ssd-torchvision", "listed 0×4 xyxy plain input_pixels box@0 scores@0 class@0 from-1"},
		"ssd-priors":          {"ssd-priors", "split 3000×4 xyxy plain fractions box@0 scores@0 background=0"},
		"efficientnms":        {"efficientnms", "listed 100×4 xyxy plain input_pixels box@0 scores@0 class@0"},
		"onnx-nms":            {"onnx-nms", "selected 256×4 xyxy plain input_pixels scores-by-value box@0 scores@0"},
		"boxes-scores":        {"boxes-scores", "split 64×4 xyxy plain input_pixels box@0 scores@0"},
		"fastestdet":          {"fastestdet", "joined 320×85 cxcywh cell_tanh input_pixels by-value object@0 box@1 scores@5 levels=1"},
	}
	for _, family := range fixture.Families() {
		want, ok := tests[family]
		if !ok {
			t.Errorf("family %s: no test", family)
			continue
		}
		for _, batch := range []int{1, 4, -1} {
			if family == "ssd-torchvision" && batch != 1 {
				continue // has no batch
			}
			t.Run(fmt.Sprintf("%s batch=%d", family, batch), func(t *testing.T) {
				d := fixture.Detector{Family: family, Width: 320, Height: 256, Batch: batch}
				o := model.Overrides{}
				if ask[family] {
					r, err := model.Inspect(write(t, d.Bytes()), o)
					if err == nil || r == nil || len(r.Ask) != 1 || r.Ask[0].Key != "inference.model.labels" {
						t.Fatalf("without labels: error %v, wanted inference.model.labels to be asked for", err)
					}
					o.Labels = labels(80)
				}
				r := inspect(t, d, o)
				if r.Spec.Family != want.family || short(&r.Spec.Decode) != want.layout {
					t.Errorf("family %s, layout %s;\nwant   %s,        %s", r.Spec.Family, short(&r.Spec.Decode), want.family, want.layout)
				}
				if r.Spec.Decode.Classes != 80 || len(r.Spec.Labels) != 80 || r.Spec.Input.Batch != max(batch, 0) {
					t.Errorf("%d classes, %d labels, batch %d", r.Spec.Decode.Classes, len(r.Spec.Labels), r.Spec.Input.Batch)
				}
				for _, f := range r.Findings {
					if f.Evidence == "" || f.Value == "" || f.Certainty == "" {
						t.Errorf("a finding without its evidence: %+v", f)
					}
				}
			})
		}
	}
}

// TestOneClass wants networks of a single class, whose tensors look like others, to be told apart.
func TestOneClass(t *testing.T) {
	for family, want := range map[string]string{
		"nanodet": "nanodet", "nanodet/heads": "nanodet", "yolox": "yolox", "yolox/decoded": "yolox", "yolov5": "yolov5", "yolov6": "yolov6",
		"yolov8": "yolov8", "yolov8/transposed": "yolov8", "yolov8/seg": "yolov8", "yolov8/pose": "yolov8", "yolov8/heads": "yolov8",
		"yolo-nas": "yolo-nas", "rt-detr": "rt-detr", "rt-detr/logits": "rt-detr", "rf-detr": "rf-detr", "ssd-priors": "ssd-priors",
		"efficientnms": "efficientnms", "onnx-nms": "onnx-nms", "fastestdet": "fastestdet",
	} {
		t.Run(family, func(t *testing.T) {
			object := []infer.Detection{{Score: 0.9, X1: 40, Y1: 50, X2: 100, Y2: 170}}
			r := inspect(t, fixture.Detector{Family: family, Classes: 1, Objects: object}, model.Overrides{Labels: []string{"plate"}})
			if r.Spec.Family != want || r.Spec.Decode.Classes != 1 {
				t.Errorf("%s with %d classes: %s", r.Spec.Family, r.Spec.Decode.Classes, short(&r.Spec.Decode))
			}
		})
	}
}

// TestStubs wants outputs whose graph shows nothing to be read where shapes leave one way, and asked about where not.
func TestStubs(t *testing.T) {
	stub := func(meta map[string]string, dims ...int) []byte {
		n := 1
		for _, d := range dims {
			n *= d
		}
		var g fixture.Graph
		g.Input("images", onnx.Float32, 1, 3, 640, 640)
		g.As("output0", g.Floats(make([]float32, n), dims...))
		g.Output("output0", onnx.Float32, dims...)
		for k, v := range meta {
			g.Meta(k, v)
		}
		return g.Bytes()
	}
	names := func(n int) map[string]string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf("%d: 'thing %d'", i, i))
		}
		return map[string]string{"names": "{" + strings.Join(parts, ", ") + "}"}
	}
	tests := []struct {
		name   string
		meta   map[string]string
		dims   []int
		o      model.Overrides
		family string
		want   string // of the error
	}{
		{"v8", names(8), []int{1, 12, 8400}, model.Overrides{}, "yolov8", ""},
		{"v8 of one class", names(1), []int{1, 5, 8400}, model.Overrides{}, "yolov8", ""},
		{"v5", nil, []int{1, 25200, 85}, model.Overrides{}, "yolov5", ""},
		{"v5 of one class", names(1), []int{1, 25200, 6}, model.Overrides{}, "yolov5", ""},
		{"v10", names(3), []int{1, 300, 6}, model.Overrides{}, "yolov10", ""},
		{"v8 turned, by its labels", names(80), []int{1, 8400, 84}, model.Overrides{Family: "yolov8"}, "yolov8", ""},
		{"by config", names(80), []int{1, 8400, 85}, model.Overrides{Family: "yolov6"}, "yolov6", ""},
		{"fewer labels", names(8), []int{1, 84, 8400}, model.Overrides{}, "", "output output0 float32[N,84,8400] gives 80 classes, metadata names lists 8 labels"},
		{"more labels", names(80), []int{1, 12, 8400}, model.Overrides{}, "", "output output0 float32[N,12,8400] gives 8 classes, metadata names lists 80 labels"},
		{"labels of config", names(8), []int{1, 12, 8400}, model.Overrides{Labels: labels(7)}, "", "gives 8 classes, inference.model.labels lists 7 labels"},
		{"no labels", nil, []int{1, 12, 8400}, model.Overrides{}, "", "the file does not name its 8 classes"},
		{"two ways", names(80), []int{1, 8400, 85}, model.Overrides{}, "", "can be read in several ways (yolox, yolov6)"},
		{"family that does not fit", names(80), []int{1, 84, 8400}, model.Overrides{Family: "yolox"}, "", "inference.model.family is yolox, but the outputs (output0 float32[N,84,8400]) are not of its form; they are those of yolov8"},
		{"unknown family", nil, []int{1, 84, 8400}, model.Overrides{Family: "yolo"}, "", `inference.model.family is "yolo", edgecam knows nanodet,`},
		{"classifier", nil, []int{1, 1000}, model.Overrides{}, "", "one list of numbers a picture names pictures as a whole"},
		{"raw heads", nil, []int{1, 255, 80, 80}, model.Overrides{}, "", "are of no form that edgecam knows"},
		{"turned boxes", map[string]string{"task": "obb"}, []int{1, 20, 8400}, model.Overrides{}, "", "finds turned boxes"},
		{"broken names", map[string]string{"names": "{0: 'person', 2: 'car'}"}, []int{1, 6, 8400}, model.Overrides{}, "", "metadata names: has 2 names but none for class 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := model.Inspect(write(t, stub(tt.meta, tt.dims...)), tt.o)
			if r == nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if err != nil || r.Spec.Family != tt.family {
					t.Fatalf("family %q, %v; want %s", r.Spec.Family, err, tt.family)
				}
				return
			}
			var me *infer.ModelError
			if !errors.As(err, &me) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v\nwant  %s", err, tt.want)
			}
			if r.Refusal == "" && len(r.Ask) == 0 {
				t.Errorf("the report does not say why: %+v", r)
			}
		})
	}
}

func TestBuiltin(t *testing.T) {
	for _, precision := range []string{"fp32", "fp16", "int8"} {
		content, err := builtin.Model(builtin.NanoDetG, precision)
		if err != nil {
			t.Fatal(err)
		}
		r, err := model.InspectBytes(builtin.NanoDetG, content, model.Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		i := &r.Spec.Input
		if r.Spec.Family != "boxes-scores" || r.Spec.Decode.Rows != 3549 || len(r.Spec.Labels) != 80 || i.Batch != 0 || i.Order != infer.BGR || i.Mean[0] != 103.53 {
			t.Errorf("%s: %+v", precision, r.Spec)
		}
		if r.Params < 3.7e6 || r.Params > 3.9e6 || r.GFLOPs < 4 || r.GFLOPs > 4.4 {
			t.Errorf("%s: %d parameters, %.2f GFLOPs", precision, r.Params, r.GFLOPs)
		}
	}
}

// familiesDir holds real models of several families, named as in TestRealFiles. They are not part of edgecam, as their
// licences differ: export or download them and name the directory.
const familiesDir = "EDGECAM_TEST_FAMILIES"

func TestRealFiles(t *testing.T) {
	dir := os.Getenv(familiesDir)
	if dir == "" {
		t.Skip(familiesDir + " names no directory of real models")
	}
	tests := map[string]struct {
		family, layout string
		size           int
		order          infer.ColorOrder
		gflops         float64
		params         int64
	}{
		"FastestDet.onnx":                 {"fastestdet", "joined 484×85 cxcywh cell_tanh input_pixels by-value object@0 box@1 scores@5 levels=1", 352, infer.BGR, 0.25, 240305},
		"nanodet_m_hpc203_nanodet_m.onnx": {"nanodet", "heads 3549×32 ltrb cell_bins input_pixels box@0 scores@0 bins=8 point=0.5 levels=3", 416, infer.BGR, 1.17, 941818},
		"yolo11n_int8.onnx":               {"yolov8", "joined 2100×84 cxcywh plain input_pixels by-value box@0 scores@4", 320, infer.RGB, 1.67, 2626930},
		"yolov8n-seg_int8.onnx":           {"yolov8", "joined 2100×116 cxcywh plain input_pixels by-value box@0 scores@4", 320, infer.RGB, 3.05, 3414977},
		"yolov8n_int8_lamri.onnx":         {"yolov8", "joined 8400×84 cxcywh plain input_pixels by-value box@0 scores@4", 640, infer.RGB, 8.9, 3194037},
		"yolox_nano_bigisland.onnx":       {"yolox", "joined 3549×85 cxcywh cell_exp input_pixels object@4 box@0 scores@5 levels=3", 416, infer.BGR, 1.1, 904467},
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s: no .onnx files, %v", familiesDir, dir, err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := model.Inspect(path, model.Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			want, ok := tests[filepath.Base(path)]
			if !ok {
				t.Logf("recognised as %s: %s", r.Spec.Family, short(&r.Spec.Decode))
				return
			}
			if r.Spec.Family != want.family || short(&r.Spec.Decode) != want.layout {
				t.Errorf("family %s, layout %s", r.Spec.Family, short(&r.Spec.Decode))
			}
			if r.Spec.Input.Width != want.size || r.Spec.Input.Order != want.order || r.Spec.Labels[0] != "person" {
				t.Errorf("input %+v, labels %q", r.Spec.Input, r.Spec.Labels[:3])
			}
			if r.GFLOPs < 0.97*want.gflops || r.GFLOPs > 1.03*want.gflops || r.Params != want.params {
				t.Errorf("%.3f GFLOPs, %d parameters", r.GFLOPs, r.Params)
			}
			if strings.Contains(path, "-seg") && !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "output1") }) {
				t.Errorf("the masks are not mentioned: %q", r.Notes)
			}
		})
	}
}

// TestExports wants what exporters make of architectures to be read as it is meant. The files are exports of randomly
// initialised networks by Ultralytics 8.4 and torchvision 0.17, 320 pixels wide, named after the configuration and the way of
// exporting. They lie in the directory that familiesDir names; those that are not there are passed over.
func TestExports(t *testing.T) {
	dir := os.Getenv(familiesDir)
	if dir == "" {
		t.Skip(familiesDir + " names no directory of real models")
	}
	const cells, finished = "joined 2100×84 cxcywh plain input_pixels by-value box@0 scores@4", "end_to_end 300×6 xyxy plain input_pixels box@0 scores@4 class@5"
	found := false
	for name, want := range map[string]struct{ family, layout string }{
		"yolov5n_p": {"yolov8", cells}, "yolov6n_p": {"yolov8", cells}, "yolov8n_p": {"yolov8", cells}, "yolov9t_p": {"yolov8", cells},
		"yolov10n_p": {"yolov8", cells}, "yolo11n_p": {"yolov8", cells}, "yolo12n_p": {"yolov8", cells}, "yolo26n_p": {"yolov8", cells},
		"yolov8n_dyn": {"yolov8", cells}, "yolov8n_b4": {"yolov8", cells}, "yolov8n_o9": {"yolov8", cells},
		"yolov8n_nc2":      {"yolov8", "joined 2100×6 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolo11n_nc1":      {"yolov8", "joined 2100×5 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8n-p2_p":     {"yolov8", "joined 8500×84 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8n-seg_p":    {"yolov8", "joined 2100×116 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8n-pose_p":   {"yolov8", "joined 2100×56 cxcywh plain input_pixels by-value box@0 scores@4"},
		"yolov8n_nms":      {"yolov10", finished},
		"yolov8n_nms_dyn":  {"yolov10", finished},
		"yolov8n-seg_nms":  {"yolov10", "end_to_end 300×38 xyxy plain input_pixels box@0 scores@4 class@5"},
		"yolo11n-pose_nms": {"yolov10", "end_to_end 300×57 xyxy plain input_pixels box@0 scores@4 class@5"},
		"rtdetr-l_p":       {"rt-detr", "end_to_end 300×6 cxcywh plain fractions box@0 scores@4 class@5"},
		"rtdetr-l_nc2":     {"rt-detr", "end_to_end 300×6 cxcywh plain fractions box@0 scores@4 class@5"},
	} {
		path := filepath.Join(dir, name+".onnx")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		found = true
		r, err := model.Inspect(path, model.Overrides{})
		if err != nil || r.Spec.Family != want.family || short(&r.Spec.Decode) != want.layout {
			t.Errorf("%s: %v, %s: %s", name, err, r.Spec.Family, short(&r.Spec.Decode))
		}
	}
	for name, want := range map[string]string{"yolov8n-obb_p": "finds turned boxes", "yolov8n-cls_p": "names pictures as a whole"} {
		path := filepath.Join(dir, name+".onnx")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		found = true
		refused(t, path, want)
	}
	if !found {
		t.Skip("none of the exports is there")
	}
}

// TestDecodedInPlace wants boxes that the graph finishes on the way not to be taken for raw ones.
func TestDecodedInPlace(t *testing.T) {
	const rows, values = 2100, 7 // two classes
	tests := map[string]struct {
		build  func(g *fixture.Graph, row string) string
		family string
		coding infer.Coding
	}{
		"left raw": {func(_ *fixture.Graph, row string) string { return row }, "yolox", infer.CellExp},
		// (row[0:2]+grid)·stride, exp(row[2:4])·stride, row[4:]
		"sliced": {func(g *fixture.Graph, row string) string {
			part := func(from, to int64) string {
				return g.Node("Slice", []string{row, g.Int64s([]int64{from}, 1), g.Int64s([]int64{to}, 1), g.Int64s([]int64{2}, 1)})
			}
			grid, stride := g.Floats(make([]float32, rows*2), 1, rows, 2), g.Floats(slices.Repeat([]float32{8}, rows), 1, rows, 1)
			centre := g.Node("Mul", []string{g.Node("Add", []string{part(0, 2), grid}), stride})
			size := g.Node("Mul", []string{g.Node("Exp", []string{part(2, 4)}), stride})
			return g.Node("Concat", []string{centre, size, part(4, values)}, fixture.Int("axis", 2))
		}, "yolox", infer.Plain},
		"written in place": {func(g *fixture.Graph, row string) string {
			size := g.Node("Exp", []string{g.Node("Slice", []string{row, g.Int64s([]int64{2}, 1), g.Int64s([]int64{4}, 1), g.Int64s([]int64{2}, 1)})})
			return g.Node("ScatterND", []string{row, g.Int64s(make([]int64, rows*2*3), 1, rows, 2, 3), size})
		}, "yolox", infer.Plain},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var g fixture.Graph
			g.Input("images", onnx.Float32, 1, 3, 320, 320)
			layer := func(n int) string {
				x := g.Floats(make([]float32, rows*4), 1, rows, 4)
				return g.Node("MatMul", []string{x, g.Floats(make([]float32, 4*n), 4, n)})
			}
			row := g.Node("Concat", []string{layer(4), g.Node("Sigmoid", []string{layer(1)}), g.Node("Sigmoid", []string{layer(2)})}, fixture.Int("axis", 2))
			g.As("output", tt.build(&g, row))
			g.Output("output", onnx.Float32, 1, rows, values)
			g.Meta("names", "['a', 'b']")
			r, err := model.Inspect(write(t, g.Bytes()), model.Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Spec.Family != tt.family || r.Spec.Decode.Coding != tt.coding || r.Spec.Decode.At.Object != 4 {
				t.Errorf("%s: %s", r.Spec.Family, short(&r.Spec.Decode))
			}
		})
	}
}
