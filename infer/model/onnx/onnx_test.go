package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"edgecam/infer/model/fixture"
	"edgecam/infer/model/onnx"
)

func read(tb testing.TB, content []byte) *onnx.Model {
	tb.Helper()
	m, err := onnx.Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestRead(t *testing.T) {
	var g fixture.Graph
	g.IR, g.Opset, g.Producer = 7, 13, "a producer"
	g.Input("images", onnx.Float16, -1, 3, 32, 64)
	weights := g.Floats([]float32{1.5, -2, 3}, 3, 1)
	g.Op("mine", "Special", []string{"images", "", weights}, []string{"a", "b"}, fixture.Int("axis", -1), fixture.Float("alpha", 0.25), fixture.Text("mode", "sum"), fixture.Ints("pads", 1, 2, -3))
	g.As("out", "a")
	g.Output("out", onnx.Int64, -1, 2)
	g.Meta("key", "värde")
	m := read(t, g.Bytes())
	if m.IR != 7 || m.Opsets[""] != 13 || m.Opsets["mine"] != 1 || m.Producer != "a producer" || m.Metadata["key"] != "värde" {
		t.Errorf("%+v", m)
	}
	if in := m.Graph.Inputs; len(in) != 1 || in[0].Type != onnx.Float16 || !slices.Equal(in[0].Dims, []int64{-1, 3, 32, 64}) || in[0].Names[0] != "batch" || !in[0].Shaped {
		t.Errorf("inputs %+v", in)
	}
	n := m.Graph.Nodes[0]
	if n.Op != "Special" || n.Domain != "mine" || !slices.Equal(n.Outputs, []string{"a", "b"}) || n.Input(1) != "" || n.Input(2) != weights || n.Input(7) != "" {
		t.Errorf("node %+v", n)
	}
	if n.Int("axis", 0) != -1 || n.Int("missing", 9) != 9 || n.Attribute("alpha").Float != 0.25 || n.Attribute("mode").Text != "sum" || !slices.Equal(n.Ints("pads"), []int64{1, 2, -3}) {
		t.Errorf("attributes %+v", n.Attributes)
	}
	v, err := m.Graph.Initializers[0].Values(3)
	if err != nil || !slices.Equal(v, []float64{1.5, -2, 3}) {
		t.Errorf("values %v, %v", v, err)
	}
	if _, err := m.Graph.Initializers[0].Values(2); err == nil {
		t.Error("more values than asked for")
	}
}

// TestInitializersAreNoInputs wants weights that old exporters list among the inputs to be left out there.
func TestInitializersAreNoInputs(t *testing.T) {
	var g fixture.Graph
	g.Input("images", onnx.Float32, 1, 3, 8, 8)
	w := g.Floats([]float32{1}, 1)
	g.Input(w, onnx.Float32, 1)
	g.As("out", w)
	g.Output("out", onnx.Float32, 1)
	if m := read(t, g.Bytes()); len(m.Graph.Inputs) != 1 || m.Graph.Inputs[0].Name != "images" {
		t.Errorf("inputs %+v", m.Graph.Inputs)
	}
}

// tensorFile is a model with one tensor whose fields are given.
func tensorFile(fields func(t []byte) []byte) []byte {
	put := func(to []byte, num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, num, protowire.BytesType), b)
	}
	var node, graph, file []byte
	node = put(put(put(node, 1, []byte("x")), 2, []byte("y")), 4, []byte("Identity"))
	graph = put(put(graph, 1, node), 5, fields(nil))
	file = protowire.AppendVarint(protowire.AppendTag(file, 1, protowire.VarintType), 8)
	return put(put(file, 7, graph), 8, []byte{0x10, 17})
}

func TestValues(t *testing.T) {
	number := func(t []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(t, num, protowire.VarintType), v)
	}
	raw := func(t []byte, num protowire.Number, b ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(t, num, protowire.BytesType), b)
	}
	le := binary.LittleEndian
	float := func(v float32) []byte { return le.AppendUint32(nil, math.Float32bits(v)) }
	minus := func(v int64) uint64 { return uint64(v) }
	tests := []struct {
		name   string
		typ    onnx.Type
		dims   int
		fields func(t []byte) []byte
		want   []float64
	}{
		{"raw float32", onnx.Float32, 2, func(t []byte) []byte { return raw(t, 9, append(float(1.5), float(-2)...)...) }, []float64{1.5, -2}},
		{"raw float64", onnx.Float64, 1, func(t []byte) []byte { return raw(t, 9, le.AppendUint64(nil, math.Float64bits(0.1))...) }, []float64{0.1}},
		{"raw float16", onnx.Float16, 4, func(t []byte) []byte { return raw(t, 9, 0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0x00, 0x7c) }, []float64{1, -2, 1.0 / (1 << 24), math.Inf(1)}},
		{"raw bfloat16", onnx.BFloat16, 1, func(t []byte) []byte { return raw(t, 9, 0x80, 0x3f) }, []float64{1}},
		{"raw int64", onnx.Int64, 1, func(t []byte) []byte { return raw(t, 9, le.AppendUint64(nil, minus(-7))...) }, []float64{-7}},
		{"raw uint64", onnx.Uint64, 1, func(t []byte) []byte { return raw(t, 9, le.AppendUint64(nil, 7)...) }, []float64{7}},
		{"raw int32", onnx.Int32, 1, func(t []byte) []byte { return raw(t, 9, 0xfe, 0xff, 0xff, 0xff) }, []float64{-2}},
		{"raw uint32", onnx.Uint32, 1, func(t []byte) []byte { return raw(t, 9, 0xfe, 0xff, 0xff, 0xff) }, []float64{0xfffffffe}},
		{"raw int16", onnx.Int16, 1, func(t []byte) []byte { return raw(t, 9, 0xff, 0xff) }, []float64{-1}},
		{"raw uint16", onnx.Uint16, 1, func(t []byte) []byte { return raw(t, 9, 0xff, 0xff) }, []float64{65535}},
		{"raw int8", onnx.Int8, 2, func(t []byte) []byte { return raw(t, 9, 0x80, 0x7f) }, []float64{-128, 127}},
		{"raw uint8", onnx.Uint8, 2, func(t []byte) []byte { return raw(t, 9, 0x80, 0x7f) }, []float64{128, 127}},
		{"raw bool", onnx.Bool, 2, func(t []byte) []byte { return raw(t, 9, 0, 1) }, []float64{0, 1}},
		{"packed floats", onnx.Float32, 2, func(t []byte) []byte { return raw(t, 4, append(float(1), float(2)...)...) }, []float64{1, 2}},
		{"packed int64", onnx.Int64, 2, func(t []byte) []byte {
			return raw(t, 7, protowire.AppendVarint(protowire.AppendVarint(nil, 300), minus(-1))...)
		}, []float64{300, -1}},
		{"int64 one by one", onnx.Int64, 2, func(t []byte) []byte { return number(number(t, 7, 4), 7, minus(-5)) }, []float64{4, -5}},
		{"packed int32", onnx.Int32, 1, func(t []byte) []byte { return raw(t, 5, protowire.AppendVarint(nil, minus(-3))...) }, []float64{-3}},
		{"float16 in int32", onnx.Float16, 1, func(t []byte) []byte { return number(t, 5, 0x3c00) }, []float64{1}},
		{"packed doubles", onnx.Float64, 1, func(t []byte) []byte { return raw(t, 10, le.AppendUint64(nil, math.Float64bits(2.5))...) }, []float64{2.5}},
		{"none", onnx.Float32, 0, func(t []byte) []byte { return t }, nil},
		{"too few bytes", onnx.Float32, 2, func(t []byte) []byte { return raw(t, 9, 1, 2, 3) }, nil},
		{"too few packed", onnx.Int64, 3, func(t []byte) []byte { return raw(t, 7, 1, 2) }, nil},
		{"too few one by one", onnx.Int64, 3, func(t []byte) []byte { return number(t, 7, 1) }, nil},
		{"in two parts", onnx.Int64, 2, func(t []byte) []byte { return raw(raw(t, 7, 1), 7, 2) }, nil},
		{"text", onnx.String, 1, func(t []byte) []byte { return raw(t, 9, 1) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := read(t, tensorFile(func(b []byte) []byte {
				return tt.fields(number(number(b, 1, uint64(tt.dims)), 2, uint64(tt.typ)))
			}))
			got, err := m.Graph.Initializers[0].Values(100)
			if !slices.Equal(got, tt.want) || tt.want == nil && tt.dims > 0 && err == nil {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// TestHostile wants lengths, depths and amounts that no model has to be refused without taking memory for them.
func TestHostile(t *testing.T) {
	put := func(to []byte, num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, num, protowire.BytesType), b)
	}
	deep := []byte{}
	for range 40 { // graph → node → attribute → graph
		deep = put(nil, 1, put(nil, 5, put(nil, 6, deep)))
	}
	many := bytes.Repeat([]byte{0x0a, 0x00}, 1<<20) // empty nodes
	text := put(nil, 2, bytes.Repeat([]byte("x"), 5<<20))
	outer := put(nil, 7, append(protowire.AppendTag(nil, 1, protowire.BytesType), 0xff, 0xff, 0x03))
	tests := map[string][]byte{
		"graphs in graphs": put(nil, 7, deep), "a million nodes": put(nil, 7, many), "a name of 5 MB": put(nil, 7, text),
		"a part longer than its whole": append(outer, make([]byte, 70000)...), "an end of a group": {0x0c}, "field 0": {0x00, 0x00},
		"a number without end": bytes.Repeat([]byte{0xff}, 64),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			if m, err := onnx.Read(bytes.NewReader(content), int64(len(content))); err == nil {
				t.Errorf("no error: %+v", m)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	content := fixture.Detector{Family: "yolov8", Width: 32, Height: 32, Classes: 2}.Bytes()
	_, err := onnx.Read(bytes.NewReader(content), int64(len(content))-100)
	var cut *onnx.TruncatedError
	if !errors.As(err, &cut) || cut.Size != int64(len(content))-100 || cut.Wanted <= cut.Size || cut.Wanted > int64(len(content)) {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(fixture.Detector{Family: "yolov8", Width: 32, Height: 32, Classes: 2}.Bytes())
	f.Add(fixture.Detector{Family: "rt-detr", Width: 32, Height: 32, Classes: 2}.Bytes())
	f.Add(tensorFile(func(t []byte) []byte { return append(t, 0x08, 0x02, 0x10, 0x07, 0x3a, 0x02, 0x01, 0x02) }))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := onnx.Read(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		for i := range m.Graph.Initializers {
			v, err := m.Graph.Initializers[i].Values(1000)
			if err == nil && int64(len(v)) != m.Graph.Initializers[i].Elements() {
				t.Errorf("%d values of %d", len(v), m.Graph.Initializers[i].Elements())
			}
		}
	})
}
