package shape_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"edgecam/infer/builtin"
	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
	"edgecam/infer/model/shape"
)

func parse(tb testing.TB, content []byte) *onnx.Model {
	tb.Helper()
	m, err := onnx.Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// TestOperations follows one operation each from x, which is [1,4,6,8] unless said otherwise.
func TestOperations(t *testing.T) {
	ints, float := fixture.Ints, fixture.Float
	type g = *fixture.Graph
	n := func(op string, attrs ...fixture.Attr) func(g g, x string) string {
		return func(g *fixture.Graph, x string) string { return g.Node(op, []string{x}, attrs...) }
	}
	with := func(op string, more func(g g) []string, attrs ...fixture.Attr) func(g g, x string) string {
		return func(g *fixture.Graph, x string) string {
			return g.Node(op, append([]string{x}, more(g)...), attrs...)
		}
	}
	weights := func(dims ...int) func(g g) []string {
		return func(g *fixture.Graph) []string {
			size := 1
			for _, d := range dims {
				size *= d
			}
			return []string{g.Floats(make([]float32, size), dims...)}
		}
	}
	numbers := func(lists ...[]int64) func(g g) []string {
		return func(g *fixture.Graph) []string {
			var names []string
			for _, l := range lists {
				if l == nil {
					names = append(names, "")
					continue
				}
				names = append(names, g.Int64s(l, len(l)))
			}
			return names
		}
	}
	tests := []struct {
		name  string
		build func(g g, x string) string
		want  []int64
		flops float64 // −1: does not matter
	}{
		{"Relu", n("Relu"), []int64{1, 4, 6, 8}, 192},
		{"Conv", with("Conv", weights(10, 4, 3, 3), ints("pads", 1, 1, 1, 1), ints("strides", 2, 2)), []int64{1, 10, 3, 4}, 120 * 2 * 36},
		{"Conv of groups", with("Conv", weights(4, 1, 3, 3), fixture.Int("group", 4)), []int64{1, 4, 4, 6}, 96 * 2 * 9},
		{"Conv dilated", with("Conv", weights(2, 4, 3, 3), ints("dilations", 2, 2)), []int64{1, 2, 2, 4}, -1},
		{"Conv same", with("Conv", weights(2, 4, 3, 3), ints("strides", 2, 2), fixture.Text("auto_pad", "SAME_UPPER")), []int64{1, 2, 3, 4}, -1},
		{"Conv too large", with("Conv", weights(2, 4, 9, 9)), []int64{1, 2, -1, -1}, 0},
		{"ConvTranspose", with("ConvTranspose", weights(4, 5, 2, 2), ints("strides", 2, 2)), []int64{1, 5, 12, 16}, 192 * 2 * 20},
		{"MaxPool", n("MaxPool", ints("kernel_shape", 2, 2), ints("strides", 2, 2)), []int64{1, 4, 3, 4}, 48 * 4},
		{"MaxPool up", n("MaxPool", ints("kernel_shape", 3, 3), ints("strides", 2, 2), fixture.Int("ceil_mode", 1)), []int64{1, 4, 3, 4}, -1},
		{"GlobalAveragePool", n("GlobalAveragePool"), []int64{1, 4, 1, 1}, 192},
		{"MatMul", with("MatMul", weights(8, 5)), []int64{1, 4, 6, 5}, 120 * 16},
		{"Add stretched", with("Add", weights(4, 1, 1)), []int64{1, 4, 6, 8}, 192},
		{"Add that does not fit", with("Add", weights(3, 1, 1)), nil, 0},
		{"Reshape", with("Reshape", numbers([]int64{0, -1, 2})), []int64{1, 96, 2}, 0},
		{"Flatten", n("Flatten", fixture.Int("axis", 2)), []int64{4, 48}, 0},
		{"Transpose", n("Transpose", ints("perm", 0, 2, 3, 1)), []int64{1, 6, 8, 4}, 0},
		{"Transpose all", n("Transpose"), []int64{8, 6, 4, 1}, 0},
		{"Squeeze", with("Squeeze", numbers([]int64{0})), []int64{4, 6, 8}, 0},
		{"Unsqueeze", with("Unsqueeze", numbers([]int64{0, -1})), []int64{1, 1, 4, 6, 8, 1}, 0},
		{"Concat", func(g *fixture.Graph, x string) string {
			return g.Node("Concat", []string{x, x, x}, fixture.Int("axis", -1))
		}, []int64{1, 4, 6, 24}, 0},
		{"Split", func(g *fixture.Graph, x string) string {
			g.Op("", "Split", append([]string{x}, numbers([]int64{1, 3})(g)...), []string{"s0", "s1"}, fixture.Int("axis", 1))
			return "s1"
		}, []int64{1, 3, 6, 8}, 0},
		{"Split in equal parts", func(g *fixture.Graph, x string) string {
			g.Op("", "Split", []string{x}, []string{"s0", "s1"}, fixture.Int("axis", 3))
			return "s0"
		}, []int64{1, 4, 6, 4}, 0},
		{"Slice", with("Slice", numbers([]int64{1, -3}, []int64{1 << 62, -1}, []int64{1, 3}, []int64{2, 1})), []int64{1, 2, 6, 2}, 0},
		{"Slice backwards", with("Slice", numbers([]int64{-1}, []int64{-1 << 62}, []int64{3}, []int64{-2})), []int64{1, 4, 6, 4}, 0},
		{"Gather", with("Gather", numbers([]int64{0, 2, 2}), fixture.Int("axis", 2)), []int64{1, 4, 3, 8}, 0},
		{"Resize by scales", with("Resize", func(g *fixture.Graph) []string { return []string{"", g.Floats([]float32{1, 1, 2, 0.5}, 4)} }), []int64{1, 4, 12, 4}, -1},
		{"Resize to sizes", with("Resize", numbers(nil, nil, []int64{1, 4, 9, 9})), []int64{1, 4, 9, 9}, -1},
		{"Pad", with("Pad", numbers([]int64{0, 0, 1, 2, 0, 0, 3, 4})), []int64{1, 4, 10, 14}, 0},
		{"ReduceMean", n("ReduceMean", ints("axes", 2, -1), fixture.Int("keepdims", 0)), []int64{1, 4}, 192},
		{"ReduceMax of all", n("ReduceMax"), []int64{1, 1, 1, 1}, -1},
		{"ArgMax", n("ArgMax", fixture.Int("axis", 1), fixture.Int("keepdims", 0)), []int64{1, 6, 8}, 0},
		{"TopK", func(g *fixture.Graph, x string) string {
			g.Op("", "TopK", append([]string{x}, numbers([]int64{3})(g)...), []string{"v", "i"}, fixture.Int("axis", 2))
			return "i"
		}, []int64{1, 4, 3, 8}, 0},
		{"SpaceToDepth", n("SpaceToDepth", fixture.Int("blocksize", 2)), []int64{1, 16, 3, 4}, 0},
		{"DepthToSpace", n("DepthToSpace", fixture.Int("blocksize", 2)), []int64{1, 1, 12, 16}, 0},
		{"Expand", with("Expand", numbers([]int64{3, 1, 1, 1})), []int64{3, 4, 6, 8}, 0},
		{"Tile", with("Tile", numbers([]int64{2, 1, 1, 3})), []int64{2, 4, 6, 24}, 0},
		{"Softmax", n("Softmax", fixture.Int("axis", 1)), []int64{1, 4, 6, 8}, -1},
		{"Clip", n("Clip", float("max", 6)), []int64{1, 4, 6, 8}, -1},
		{"NonMaxSuppression", func(g *fixture.Graph, _ string) string {
			return g.Node("NonMaxSuppression", append(weights(1, 9, 4)(g), weights(1, 2, 9)(g)...))
		}, []int64{-1, 3}, 0},
		// A shape that is computed: [batch, channels·2, −1] of Shape, Gather, Mul and Concat.
		{"computed shape", func(g *fixture.Graph, x string) string {
			s := g.Node("Shape", []string{x})
			b := g.Node("Gather", append([]string{s}, numbers([]int64{0})(g)...))
			c := g.Node("Mul", append([]string{g.Node("Gather", append([]string{s}, numbers([]int64{1})(g)...))}, numbers([]int64{2})(g)...))
			rest := numbers([]int64{-1})(g)
			return g.Node("Reshape", []string{x, g.Node("Concat", append([]string{b, c}, rest...), fixture.Int("axis", 0))})
		}, []int64{1, 8, 24}, -1},
		{"unknown", n("Marvel"), nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var g fixture.Graph
			g.Input("x", onnx.Float32, 1, 4, 6, 8)
			out := tt.build(&g, "x")
			r := shape.Follow(parse(t, g.Bytes()).Graph, map[string][]int64{"x": {1, 4, 6, 8}})
			f := r.Of(out)
			if f.Ranked != (tt.want != nil) || !slices.Equal(f.Dims, tt.want) {
				t.Errorf("%v, want %v", f.Dims, tt.want)
			}
			if tt.flops >= 0 && r.FLOPs != tt.flops {
				t.Errorf("%v FLOPs, want %v", r.FLOPs, tt.flops)
			}
			if (len(r.Unknown) > 0) != (tt.want == nil) {
				t.Errorf("unknown %q", r.Unknown)
			}
		})
	}
}

// TestWithoutDeclarations takes away what files declare of inner values and outputs, and wants the same outputs from
// following the graph alone.
func TestWithoutDeclarations(t *testing.T) {
	files := map[string][]byte{}
	for _, p := range []string{"fp32", "fp16", "int8"} {
		content, err := builtin.Model(builtin.NanoDetG, p)
		if err != nil {
			t.Fatal(err)
		}
		files["built-in "+p] = content
	}
	for _, family := range fixture.Families() {
		if family == "yolov7/end2end" || family == "yolo-nas/flat" || family == "ssd-torchvision" {
			continue // their outputs have no fixed shape
		}
		files[family] = fixture.Detector{Family: family, Width: 320, Height: 256}.Bytes()
	}
	if dir := os.Getenv("EDGECAM_TEST_FAMILIES"); dir != "" { // real models, see the tests of infer/model
		paths, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			if files[p], err = os.ReadFile(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			m := parse(t, content)
			inputs := map[string][]int64{}
			for _, v := range m.Graph.Inputs {
				inputs[v.Name] = one(v.Dims)
			}
			want := map[string]string{}
			for i := range m.Graph.Outputs {
				o := &m.Graph.Outputs[i]
				want[o.Name] = fmt.Sprint(one(o.Dims))
				*o = onnx.Value{Name: o.Name}
			}
			m.Graph.Values = nil
			r := shape.Follow(m.Graph, inputs)
			for o, dims := range want {
				if name == "onnx-nms" && o == "selected" {
					dims = "[-1 3]"
				}
				if got := fmt.Sprint(r.Of(o).Dims); got != dims {
					t.Errorf("output %s %s, declared %s", o, got, dims)
				}
			}
			if len(r.Unknown) > 0 {
				t.Errorf("unknown %q", r.Unknown)
			}
		})
	}
}

// one puts one picture in the place of a free batch.
func one(dims []int64) []int64 {
	dims = slices.Clone(dims)
	if len(dims) > 0 && dims[0] < 0 {
		dims[0] = 1
	}
	return dims
}
