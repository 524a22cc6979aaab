package testkit

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Model describes a small detector for tests, which costs next to nothing where
// what is tested is around the model: its boxes are constants (plus 0 × the mean
// of the input), its scores constants plus the absolute mean of the input. So what
// is written into the input decides whether the model is healthy.
type Model struct {
	Batch         int // -1 free
	Side          int // of the square input
	Boxes, Scores [][]float32
	Labels        []string
	InputType     int // an ONNX element type
	Inputs        int
	Rank          int    // of the declared input
	OutputName    string // of scores
	Props         map[string]string
	Drop          string // a metadata key to leave out
}

// NewModel finds a person and a car in a dark picture of 16×16.
func NewModel() Model {
	return Model{
		Batch: -1, Side: 16, InputType: 1, Inputs: 1, Rank: 4, OutputName: "scores",
		Boxes:  [][]float32{{1, 1, 5, 5}, {8, 8, 12, 14}, {2, 2, 3, 3}},
		Scores: [][]float32{{0.9, 0}, {0, 0.8}, {0, 0}},
		Labels: []string{"person", "car"},
	}
}

// NewPictureModel is a NewModel that takes any picture: its scores tell pictures
// apart a little and stay below 1.
func NewPictureModel() Model {
	m := NewModel()
	m.Props = map[string]string{"std": "[2000,2000,2000]"}
	m.Scores = [][]float32{{0.8, 0}, {0, 0.7}, {0, 0}}
	return m
}

// File writes the model and gives its path.
func (m Model) File(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.onnx")
	if err := os.WriteFile(path, m.bytes(tb), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// bytes are the model as an ONNX protobuf (onnx.proto: ModelProto).
func (m Model) bytes(tb testing.TB) []byte {
	names, err := json.Marshal(m.Labels)
	if err != nil {
		tb.Fatal(err)
	}
	size := strconv.Itoa(m.Side)
	props := map[string]string{
		"names": string(names), "family": "boxes-scores", "input_size": "[" + size + "," + size + "]", "input_layout": "NCHW",
		"color_order": "BGR", "mean": "[0,0,0]", "std": "[1,1,1]", "letterbox": "center", "letterbox_pad": "0",
		"box_format": "xyxy", "box_units": "input_pixels", "scores_activated": "true",
	}
	for k, v := range m.Props {
		props[k] = v
	}
	delete(props, m.Drop)

	const opset, irVersion = 11, 6
	var p proto
	p.varint(1, irVersion)
	p.message(7, m.graph())
	p.message(8, func() proto { var o proto; o.varint(2, opset); return o }())
	for k, v := range props {
		var e proto
		e.text(1, k)
		e.text(2, v)
		p.message(14, e)
	}
	return p
}

func (m Model) graph() proto {
	const floatType = 1
	var g proto
	in := "images"
	if m.InputType != floatType {
		g.message(1, node("Cast", []string{"images"}, "cast", attr("to", 2, 3, floatType)))
		in = "cast"
	}
	axes := make([]int, m.Rank-1)
	for i := range axes {
		axes[i] = i + 1
	}
	g.message(1, node("ReduceMean", []string{in}, "mean", ints("axes", axes...), attr("keepdims", 2, 3, 0)))
	g.message(1, node("Unsqueeze", []string{"mean"}, "column", ints("axes", 1, 2)))
	g.message(1, node("Abs", []string{"column"}, "level"))
	g.message(1, node("Mul", []string{"level", "zero"}, "nothing"))
	g.message(1, node("Add", []string{"nothing", "box_values"}, "boxes"))
	g.message(1, node("Add", []string{"level", "score_values"}, m.OutputName))
	g.text(2, "stub")
	g.message(5, tensor("zero", [][]float32{{0}}))
	g.message(5, tensor("box_values", m.Boxes))
	g.message(5, tensor("score_values", m.Scores))
	dims := []int{m.Batch, 3, m.Side, m.Side}[:m.Rank]
	g.message(11, valueInfo("images", m.InputType, dims...))
	for i := 1; i < m.Inputs; i++ {
		g.message(11, valueInfo("more"+strconv.Itoa(i), floatType, 1))
	}
	g.message(12, valueInfo("boxes", floatType, m.Batch, len(m.Boxes), len(m.Boxes[0])))
	g.message(12, valueInfo(m.OutputName, floatType, m.Batch, len(m.Scores), len(m.Scores[0])))
	return g
}

// proto is a protobuf message being written.
type proto []byte

func (p *proto) varint(field int, v uint64) {
	*p = binary.AppendUvarint(binary.AppendUvarint(*p, uint64(field)<<3), v)
}

func (p *proto) message(field int, m []byte) {
	*p = binary.AppendUvarint(binary.AppendUvarint(*p, uint64(field)<<3|2), uint64(len(m)))
	*p = append(*p, m...)
}

func (p *proto) text(field int, s string) { p.message(field, []byte(s)) }

func node(op string, inputs []string, output string, attributes ...proto) proto {
	var n proto
	for _, in := range inputs {
		n.text(1, in)
	}
	n.text(2, output)
	n.text(3, output+"_node")
	n.text(4, op)
	for _, a := range attributes {
		n.message(5, a)
	}
	return n
}

// attr is an attribute of one number, in the field for its type.
func attr(name string, kind, field int, v uint64) proto {
	var a proto
	a.text(1, name)
	a.varint(field, v)
	a.varint(20, uint64(kind))
	return a
}

func ints(name string, values ...int) proto {
	const kindInts = 7
	var a proto
	a.text(1, name)
	for _, v := range values {
		a.varint(8, uint64(v))
	}
	a.varint(20, kindInts)
	return a
}

// tensor is a constant of shape [1, rows, columns].
func tensor(name string, rows [][]float32) proto {
	var t, raw proto
	t.varint(1, 1)
	t.varint(1, uint64(len(rows)))
	t.varint(1, uint64(len(rows[0])))
	t.varint(2, 1)
	t.text(8, name)
	for _, r := range rows {
		for _, v := range r {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	}
	t.message(9, raw)
	return t
}

func valueInfo(name string, elementType int, dims ...int) proto {
	var shape proto
	for _, d := range dims {
		var dim proto
		if d < 0 {
			dim.text(2, "N")
		} else {
			dim.varint(1, uint64(d))
		}
		shape.message(1, dim)
	}
	var tensorType, typ, v proto
	tensorType.varint(1, uint64(elementType))
	tensorType.message(2, shape)
	typ.message(1, tensorType)
	v.text(1, name)
	v.message(2, typ)
	return v
}
