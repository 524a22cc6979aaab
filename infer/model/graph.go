package model

import (
	"slices"

	"edgecam/infer/model/onnx"
	"edgecam/infer/model/shape"
)

// maxTrace bounds how far back a value is followed.
const maxTrace = 200

// graph is the file's graph with what tracing needs.
type graph struct {
	*onnx.Graph
	shapes *shape.Result
	makers map[string]*onnx.Node
	fixed  map[string]*onnx.Tensor // constants
	ops    map[string]int
}

func newGraph(g *onnx.Graph) *graph {
	x := &graph{Graph: g, makers: map[string]*onnx.Node{}, fixed: map[string]*onnx.Tensor{}, ops: map[string]int{}}
	for i := range g.Initializers {
		x.fixed[g.Initializers[i].Name] = &g.Initializers[i]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		x.ops[n.Op]++
		for _, out := range n.Outputs {
			x.makers[out] = n
		}
		if a := n.Attribute("value"); n.Op == "Constant" && a != nil && a.Tensor != nil && len(n.Outputs) == 1 {
			x.fixed[n.Outputs[0]] = a.Tensor
		}
	}
	return x
}

// has tells whether any of the operations stands in the graph.
func (g *graph) has(ops ...string) bool {
	return slices.ContainsFunc(ops, func(op string) bool { return g.ops[op] > 0 })
}

// numbers are the values of a constant of at most n, or nil.
func (g *graph) numbers(name string, n int64) []float64 {
	if v := g.shapes.Of(name).Values; v != nil {
		return v
	}
	t := g.fixed[name]
	if t == nil {
		return nil
	}
	v, err := t.Values(n)
	if err != nil {
		return nil
	}
	return v
}

// moves tells of an operation that leaves values as they are, or only their precision.
func moves(op string) bool {
	switch op {
	case "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Cast", "Dropout", "QuantizeLinear", "DequantizeLinear":
		return true
	}
	return false
}

// selects tells of an operation that leaves out some of the values, or orders them.
func selects(op string) bool {
	switch op {
	case "Slice", "Split", "Gather", "GatherElements", "GatherND", "TopK", "ReduceMax", "ScatterND", "Clip", "Expand", "Tile":
		return true
	}
	return false
}

// origin follows a value back to the operation that computes it.
func (g *graph) origin(value string) (*onnx.Node, string) {
	for range maxTrace {
		n := g.makers[value]
		if n == nil || !moves(n.Op) || len(n.Inputs) == 0 {
			return n, value
		}
		value = n.Inputs[0]
	}
	return nil, value
}

// piece is a part of a row: so many numbers, computed there.
type piece struct {
	width int64
	value string
	// written: numbers are put into it in place afterwards.
	written bool
}

// pieces takes a value apart whose rows are width numbers, where the graph puts them together.
func (g *graph) pieces(value string, width int64) []piece {
	return g.apart(value, width, 0)
}

func (g *graph) apart(value string, width int64, depth int) []piece {
	n, at := g.origin(value)
	whole := []piece{{width: width, value: value}}
	if n == nil || depth > 8 {
		return whole
	}
	switch n.Op {
	case "Concat", "QLinearConcat":
	case "ScatterND":
		all := g.apart(n.Input(0), width, depth+1)
		for i := range all {
			all[i].written = true
		}
		return all
	default:
		return whole
	}
	inputs := n.Inputs
	if n.Op == "QLinearConcat" {
		inputs = nil
		for i := 2; i < len(n.Inputs); i += 3 {
			inputs = append(inputs, n.Inputs[i])
		}
	}
	dims := g.shapes.Of(at).Dims
	a := n.Int("axis", 1)
	if a < 0 {
		a += int64(len(dims))
	}
	if a < 0 || a >= int64(len(dims)) || len(inputs) == 0 {
		return whole
	}
	if dims[a] != width { // levels, one after the other
		return g.apart(inputs[0], width, depth+1)
	}
	var all []piece
	for _, in := range inputs {
		d := g.shapes.Of(in).Dims
		if len(d) != len(dims) || d[a] < 1 {
			return whole
		}
		all = append(all, g.apart(in, d[a], depth+1)...)
	}
	return all
}

// nature is what a value is made of.
type nature uint8

const (
	unclear  nature = iota
	fixed           // a constant, or computed from shapes
	raw             // what a convolution or a multiplication of matrices gives
	sigmoid         // goes through a sigmoid
	softmax         // goes through a softmax
	multiply        // a product of activated numbers
	index           // counts or chooses
)

// activated tells of natures that lie between 0 and 1.
func (n nature) activated() bool { return n == sigmoid || n == softmax || n == multiply }

func (n nature) String() string {
	return [...]string{"an unknown operation", "a constant", "raw numbers", "a Sigmoid", "a Softmax", "a product of activated numbers", "an index"}[n]
}

// nature follows a value back until it is clear.
func (g *graph) nature(value string) nature { return g.natureOf(value, 0) }

func (g *graph) natureOf(value string, depth int) nature {
	if depth > 40 {
		return unclear
	}
	n, at := g.origin(value)
	if n == nil {
		if g.fixed[at] != nil {
			return fixed
		}
		return unclear
	}
	next := func(i int) nature { return g.natureOf(n.Input(i), depth+1) }
	switch n.Op {
	case "Sigmoid", "HardSigmoid", "QLinearSigmoid":
		return sigmoid
	case "Softmax", "QLinearSoftmax":
		return softmax
	case "Conv", "ConvInteger", "QLinearConv", "FusedConv", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "BatchNormalization", "LayerNormalization":
		return raw
	case "Constant", "ConstantOfShape", "Shape", "Size", "Range", "DynamicQuantizeLinear":
		return fixed
	case "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Mod":
		return index
	case "TopK":
		if len(n.Outputs) == 2 && at == n.Outputs[1] {
			return index
		}
		return next(0)
	case "QLinearConcat":
		return next(2)
	case "Concat", "Sqrt", "Pow", "Max", "Min":
		return next(0)
	case "Mul", "QLinearMul", "Add", "Sub", "Div":
		return combined(n.Op, next(0), g.natureOf(n.Input(second(n.Op)), depth+1))
	}
	if selects(n.Op) {
		return next(0)
	}
	return unclear
}

// second is the place of the second operand.
func second(op string) int {
	if op == "QLinearMul" || op == "QLinearAdd" {
		return 3
	}
	return 1
}

func combined(op string, a, b nature) nature {
	if a == fixed {
		a, b = b, a
	}
	switch {
	case a == raw || b == raw:
		return raw
	case a == index:
		return index
	case op == "Mul" || op == "QLinearMul":
		if b == fixed {
			return a
		}
		if a.activated() && b.activated() {
			return multiply
		}
	case a == fixed && b == fixed:
		return fixed
	}
	return unclear
}

// bare tells whether a value comes straight from a layer of weights: nothing but its bias and scale is
// combined with it. known is false where the way back ends elsewhere.
func (g *graph) bare(value string) (yes, known bool) {
	for range maxTrace {
		n, at := g.origin(value)
		if n == nil {
			return false, g.fixed[at] != nil
		}
		switch n.Op {
		case "Conv", "ConvInteger", "QLinearConv", "FusedConv", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul":
			return true, true
		case "Slice", "Split", "Concat":
			value = n.Input(0)
			continue
		case "QLinearConcat":
			value = n.Input(2)
			continue
		case "Add", "Mul":
			next, ok := g.besides(n)
			if !ok {
				return false, true
			}
			value = next
			continue
		}
		return false, g.computes(n)
	}
	return false, false
}

// computes tells whether an operation is one whose meaning is clear enough to say that its result is not bare.
func (g *graph) computes(n *onnx.Node) bool {
	switch n.Op {
	case "Sub", "Div", "Exp", "Sigmoid", "Softmax", "Pow", "Tanh", "Relu", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "ScatterND", "Sum", "Clip", "GatherElements", "GatherND", "Gather", "TopK", "ReduceSum", "Einsum", "Neg":
		return true
	}
	return false
}

// besides gives the other operand of one that has a number for each channel, or one for all.
func (g *graph) besides(n *onnx.Node) (string, bool) {
	for i := range min(len(n.Inputs), 2) {
		f := g.shapes.Of(n.Inputs[i])
		if g.nature(n.Inputs[i]) != fixed || !f.Ranked {
			continue
		}
		wide := 0
		for _, d := range f.Dims {
			if d != 1 {
				wide++
			}
		}
		return n.Inputs[1-i], wide <= 1
	}
	return "", false
}

// strided looks for a multiplication by strides at the end of a value: then it is in pixels.
func (g *graph) strided(value string) (before string, yes bool) {
	n, _ := g.origin(value)
	if n == nil || n.Op != "Mul" {
		return value, false
	}
	for i := range min(len(n.Inputs), 2) {
		v := g.numbers(n.Inputs[i], 1<<17)
		if len(v) == 0 {
			continue
		}
		for _, s := range v {
			if s != 4 && s != 8 && s != 16 && s != 32 && s != 64 && s != 128 {
				return value, false
			}
		}
		return n.Inputs[1-i], true
	}
	return value, false
}

// format tells how the graph makes a box of four numbers: of a centre and a size, or of two corners.
func (g *graph) format(value string) (centre, known bool) {
	before, _ := g.strided(value)
	n, _ := g.origin(before)
	if n == nil || n.Op != "Concat" || len(n.Inputs) != 2 {
		return false, false
	}
	op := func(i int) string {
		if x, _ := g.origin(n.Inputs[i]); x != nil {
			return x.Op
		}
		return ""
	}
	switch first, last := op(0), op(1); {
	case (first == "Div" || first == "Mul") && last == "Sub":
		return true, true
	case (first == "Sub" || first == "Add") && last == "Add":
		return false, true
	}
	return false, false
}
