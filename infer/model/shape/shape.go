// Package shape follows a graph from its inputs to its outputs: the shape of every value, the numbers that shapes are
// computed from, and what the operations cost.
package shape

import (
	"fmt"
	"math"
	"slices"

	"edgecam/infer/model/onnx"
)

const (
	// maxValues bounds the constants that are followed: those that shapes are made of are small.
	maxValues = 4096
	// maxWork bounds the constants of all operations together; what comes after is not known.
	maxWork = 16 << 20
	// maxSize is more than any side of a tensor.
	maxSize = 1 << 40
	// maxRank is more than any tensor of a detector has.
	maxRank = 16
)

// Fact is what is known of a value. The zero value is nothing.
type Fact struct {
	// Ranked tells a scalar from a value of which nothing is known.
	Ranked bool
	// Dims are sizes, −1 where not known.
	Dims []int64
	// Values are the numbers of a small constant, NaN where not known; nil for all others.
	Values []float64
	// Integer: division truncates.
	Integer bool
}

// Elements is the number of values, or −1.
func (f *Fact) Elements() int64 {
	if !f.Ranked {
		return -1
	}
	return product(f.Dims)
}

// product is −1 where a factor is or where it is too large to be a tensor.
func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		if d < 0 || d > 0 && n > math.MaxInt64/4/d {
			return -1
		}
		n *= d
	}
	return n
}

// Result is what Follow finds.
type Result struct {
	facts map[string]*Fact
	// FLOPs of one run: a multiplication and an addition count as two.
	FLOPs float64
	// Unknown are the operations whose result or cost could not be followed.
	Unknown []string
	// Misfit is the first operation whose inputs do not fit together, with their shapes; "" where all do.
	Misfit string
}

// Of gives what is known of a value; never nil.
func (r *Result) Of(name string) *Fact {
	if f := r.facts[name]; f != nil {
		return f
	}
	return &Fact{}
}

// Follow goes through the graph with inputs of these sizes.
func Follow(g *onnx.Graph, inputs map[string][]int64) *Result {
	w := walker{Result: Result{facts: map[string]*Fact{}}, symbols: map[string]int64{}, handlers: handlers()}
	for i := range g.Inputs {
		v := &g.Inputs[i]
		if dims, ok := inputs[v.Name]; ok {
			w.bind(v, dims)
			w.facts[v.Name] = &Fact{Ranked: true, Dims: dims}
		}
	}
	w.graph(g)
	slices.Sort(w.Unknown)
	w.Unknown = slices.Compact(w.Unknown)
	return &w.Result
}

// walker follows a graph and those inside of it.
type walker struct {
	Result
	symbols  map[string]int64 // named dimensions
	handlers map[string]handler
	work     int // values of constants so far
}

// bind remembers what the inputs' named dimensions are.
func (w *walker) bind(v *onnx.Value, dims []int64) {
	for i, name := range v.Names {
		if name != "" && i < len(dims) && dims[i] >= 0 {
			w.symbols[name] = dims[i]
		}
	}
}

// declared is what the file says of a value.
func (w *walker) declared(v *onnx.Value) *Fact {
	f := &Fact{Ranked: v.Shaped, Dims: slices.Clone(v.Dims)}
	for i, name := range v.Names {
		if size, ok := w.symbols[name]; ok && f.Dims[i] < 0 {
			f.Dims[i] = size
		}
	}
	return f
}

func (w *walker) graph(g *onnx.Graph) {
	said := map[string]*onnx.Value{}
	for _, list := range [][]onnx.Value{g.Values, g.Outputs} {
		for i := range list {
			said[list[i].Name] = &list[i]
		}
	}
	for i := range g.Inputs {
		if v := &g.Inputs[i]; w.facts[v.Name] == nil {
			w.facts[v.Name] = w.declared(v)
		}
	}
	for i := range g.Initializers {
		w.facts[g.Initializers[i].Name] = constant(&g.Initializers[i])
	}
	for i := range g.Nodes {
		w.node(&g.Nodes[i], said)
	}
}

// constant is what is known of a tensor in the file.
func constant(t *onnx.Tensor) *Fact {
	f := &Fact{Ranked: true, Dims: slices.Clone(t.Dims), Integer: integer(t.Type)}
	if n := t.Elements(); n <= maxValues {
		if v, err := t.Values(maxValues); err == nil && int64(len(v)) == n {
			f.Values = v
		}
	}
	return f
}

func integer(t onnx.Type) bool {
	switch t {
	case onnx.Float32, onnx.Float16, onnx.Float64, onnx.BFloat16:
		return false
	}
	return true
}

// call is one node being followed.
type call struct {
	*onnx.Node
	w   *walker
	in  []*Fact // as many as the node names, left out ones are empty
	out []*Fact
}

type handler func(*call)

func (w *walker) node(n *onnx.Node, said map[string]*onnx.Value) {
	c := call{Node: n, w: w, out: make([]*Fact, len(n.Outputs))}
	for _, name := range n.Inputs {
		c.in = append(c.in, w.Of(name))
	}
	h, known := w.handlers[n.Op]
	if known {
		h(&c)
	}
	lost := !known
	for i, name := range n.Outputs {
		f := c.out[i]
		if f == nil || !f.Ranked || len(f.Dims) > maxRank {
			f = &Fact{}
		}
		if v := said[name]; v != nil {
			f = w.refine(f, v)
		}
		if w.work += len(f.Values); w.work > maxWork {
			f.Values = nil
		}
		lost = lost || name != "" && !f.Ranked
		w.facts[name] = f
	}
	if lost {
		w.Unknown = append(w.Unknown, n.Op)
	}
}

// refine fills what was not followed with what the file declares.
func (w *walker) refine(f *Fact, v *onnx.Value) *Fact {
	d := w.declared(v)
	if !f.Ranked {
		d.Integer = f.Integer
		return d
	}
	if !d.Ranked || len(d.Dims) != len(f.Dims) {
		return f
	}
	for i := range f.Dims {
		if f.Dims[i] < 0 {
			f.Dims[i] = d.Dims[i]
		}
	}
	return f
}

// input is the i-th input, or an empty fact.
func (c *call) input(i int) *Fact {
	if i < len(c.in) {
		return c.in[i]
	}
	return &Fact{}
}

// misfit notes that two inputs do not fit together.
func (c *call) misfit(a, b []int64) {
	if c.w.Misfit == "" {
		c.w.Misfit = fmt.Sprintf("%s of %v and %v", c.Op, a, b)
	}
}

// has tells whether the i-th input is given.
func (c *call) has(i int) bool { return c.Node.Input(i) != "" }

// give sets the shape of an output.
func (c *call) give(i int, dims ...int64) *Fact {
	for k, d := range dims {
		if d < 0 || d > maxSize {
			dims[k] = -1
		}
	}
	f := &Fact{Ranked: true, Dims: dims}
	if i < len(c.out) {
		c.out[i] = f
	}
	return f
}

// cost counts per times the elements of the first output.
func (c *call) cost(per int64) {
	if len(c.out) == 0 || c.out[0] == nil {
		return
	}
	if n := c.out[0].Elements(); n > 0 && per > 0 {
		c.w.FLOPs += float64(n) * float64(per)
	}
}

// integers are the values of a constant input.
func (c *call) integers(i int) ([]int64, bool) {
	f := c.input(i)
	if f.Values == nil {
		return nil, false
	}
	out := make([]int64, len(f.Values))
	for k, v := range f.Values {
		if math.IsNaN(v) {
			return nil, false
		}
		out[k] = whole(v)
	}
	return out, true
}

// whole turns a number into an integer, the largest there is standing for infinity.
func whole(v float64) int64 {
	const most = 1 << 62
	return int64(max(min(v, most), -most))
}

// axis makes a negative axis positive; ok is false beyond the rank.
func axis(a int64, rank int) (int, bool) {
	if a < 0 {
		a += int64(rank)
	}
	return int(a), a >= 0 && a < int64(rank)
}

// axes are those of an attribute, or since opset 13 of an input.
func (c *call) axes(input, rank int) (map[int]bool, bool) {
	list := c.Ints("axes")
	if list == nil && c.has(input) {
		var ok bool
		if list, ok = c.integers(input); !ok {
			return nil, false
		}
	}
	set := map[int]bool{}
	for _, a := range list {
		i, ok := axis(a, rank)
		if !ok {
			return nil, false
		}
		set[i] = true
	}
	return set, true
}
