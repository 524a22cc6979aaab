package shape

import (
	"math"
	"slices"

	"edgecam/infer/model/onnx"
)

func constantNode(c *call) {
	if len(c.out) != 1 {
		return
	}
	if a := c.Attribute("value"); a != nil && a.Tensor != nil {
		c.out[0] = constant(a.Tensor)
		return
	}
	if a := c.Attribute("value_int"); a != nil {
		f := c.give(0)
		f.Values, f.Integer = []float64{float64(a.Int)}, true
	}
	if a := c.Attribute("value_float"); a != nil {
		c.give(0).Values = []float64{float64(a.Float)}
	}
	if a := c.Attribute("value_ints"); a != nil {
		f := c.give(0, int64(len(a.Ints)))
		f.Integer = true
		for _, v := range a.Ints[:min(len(a.Ints), maxValues)] {
			f.Values = append(f.Values, float64(v))
		}
	}
	if a := c.Attribute("value_floats"); a != nil {
		f := c.give(0, int64(len(a.Floats)))
		for _, v := range a.Floats[:min(len(a.Floats), maxValues)] {
			f.Values = append(f.Values, float64(v))
		}
	}
}

// shaped gives the shape that an input holds.
func (c *call) shaped(input int) *Fact {
	target := c.input(input)
	if target.Values == nil {
		if len(target.Dims) == 1 && target.Dims[0] >= 0 && target.Dims[0] <= maxRank {
			return c.give(0, slices.Repeat([]int64{-1}, int(target.Dims[0]))...)
		}
		return nil
	}
	if len(target.Values) > maxRank {
		return nil
	}
	dims := make([]int64, len(target.Values))
	for i, v := range target.Values {
		if dims[i] = -1; !math.IsNaN(v) && v >= 0 {
			dims[i] = whole(v)
		}
	}
	return c.give(0, dims...)
}

// fill sets all values of a small constant.
func (f *Fact) fill(v float64) {
	if n := f.Elements(); n >= 0 && n <= maxValues {
		f.Values = slices.Repeat([]float64{v}, int(n))
	}
}

func constantOfShape(c *call) {
	f := c.shaped(0)
	if f == nil {
		return
	}
	v := 0.0
	if a := c.Attribute("value"); a != nil && a.Tensor != nil {
		f.Integer = integer(a.Tensor.Type)
		if one, err := a.Tensor.Values(1); err == nil && len(one) == 1 {
			v = one[0]
		}
	}
	f.fill(v)
}

func expand(c *call) {
	x := c.input(0)
	f := c.shaped(1)
	if f == nil || !x.Ranked {
		return
	}
	dims, ok := broadcast(x.Dims, f.Dims)
	if !ok {
		return
	}
	f = c.give(0, dims...)
	f.Integer = x.Integer
	if len(x.Values) == 1 {
		f.fill(x.Values[0])
	}
}

func tile(c *call) {
	x := c.input(0)
	by, ok := c.integers(1)
	if !x.Ranked || ok && len(by) != len(x.Dims) {
		return
	}
	dims := slices.Clone(x.Dims)
	for i := range dims {
		if !ok || dims[i] < 0 || by[i] < 0 || by[i] > 1<<30 || dims[i] > 1<<30 {
			dims[i] = -1
			continue
		}
		dims[i] *= by[i]
	}
	c.give(0, dims...)
}

func pad(c *call) {
	x := c.input(0)
	pads := c.Ints("pads")
	if pads == nil {
		pads, _ = c.integers(1)
	}
	if !x.Ranked {
		return
	}
	rank := len(x.Dims)
	dims, over := slices.Clone(x.Dims), make([]int64, rank)
	for i := range over {
		over[i] = int64(i)
	}
	if c.has(3) {
		over, _ = c.integers(3)
	}
	if len(pads) != 2*len(over) {
		c.give(0, slices.Repeat([]int64{-1}, rank)...)
		return
	}
	for i, a := range over {
		if k, ok := axis(a, rank); ok && dims[k] >= 0 {
			dims[k] = max(dims[k]+pads[i]+pads[i+len(over)], -1)
		}
	}
	c.give(0, dims...)
}

func span(c *call) {
	var v [3]float64
	for i := range v {
		f := c.input(i)
		if len(f.Values) != 1 || math.IsNaN(f.Values[0]) {
			c.give(0, -1)
			return
		}
		v[i] = f.Values[0]
	}
	n := int64(-1)
	if v[2] != 0 {
		n = whole(max(math.Ceil((v[1]-v[0])/v[2]), 0))
	}
	f := c.give(0, n)
	if f.Integer = c.input(0).Integer; n >= 0 && n <= maxValues {
		for i := range n {
			f.Values = append(f.Values, v[0]+float64(i)*v[2])
		}
	}
}

func reduce(c *call) {
	x := c.input(0)
	set, ok := c.axes(1, len(x.Dims))
	if !x.Ranked || !ok {
		return
	}
	keep, all := c.Int("keepdims", 1) != 0, len(set) == 0 && c.Int("noop_with_empty_axes", 0) == 0
	dims := []int64{}
	for i, d := range x.Dims {
		switch {
		case !all && !set[i]:
			dims = append(dims, d)
		case keep:
			dims = append(dims, 1)
		}
	}
	f := c.give(0, dims...)
	if n := x.Elements(); n > 0 {
		c.w.FLOPs += float64(n)
	}
	if f.Integer = x.Integer; c.Op == "ReduceProd" && len(x.Values) > 0 && f.Elements() == 1 {
		v := 1.0
		for _, e := range x.Values {
			v *= e
		}
		f.Values = []float64{v}
	}
}

func argMax(c *call) {
	x := c.input(0)
	a, ok := axis(c.Int("axis", 0), len(x.Dims))
	if !x.Ranked || !ok {
		return
	}
	dims := slices.Clone(x.Dims)
	if c.Int("keepdims", 1) != 0 {
		dims[a] = 1
	} else {
		dims = slices.Delete(dims, a, a+1)
	}
	c.give(0, dims...).Integer = true
}

func topK(c *call) {
	x := c.input(0)
	a, ok := axis(c.Int("axis", -1), len(x.Dims))
	if !x.Ranked || !ok {
		return
	}
	dims := slices.Clone(x.Dims)
	dims[a] = -1
	if k, ok := c.integers(1); ok && len(k) == 1 {
		dims[a] = k[0]
	} else if k := c.Int("k", -1); k > 0 {
		dims[a] = k
	}
	c.give(0, dims...)
	c.give(1, slices.Clone(dims)...).Integer = true
}

// likeSecond has the shape of the second input (GatherElements).
func likeSecond(c *call) {
	if f := c.input(1); f.Ranked {
		c.give(0, slices.Clone(f.Dims)...)
	}
}

func gatherND(c *call) {
	x, index := c.input(0), c.input(1)
	b := int(c.Int("batch_dims", 0))
	if !x.Ranked || len(index.Dims) == 0 || b < 0 || b > len(x.Dims) {
		return
	}
	last := index.Dims[len(index.Dims)-1]
	if last < 0 || b+int(min(last, maxRank)) > len(x.Dims) {
		return
	}
	c.give(0, slices.Concat(index.Dims[:len(index.Dims)-1], x.Dims[b+int(last):])...)
}

func gridSample(c *call) {
	x, grid := c.input(0).Dims, c.input(1).Dims
	if len(x) != 4 || len(grid) != 4 {
		return
	}
	c.give(0, x[0], x[1], grid[1], grid[2])
	c.cost(8)
}

func nonZero(c *call) { c.give(0, int64(len(c.input(0).Dims)), -1).Integer = true }

func suppression(c *call) { c.give(0, -1, 3).Integer = true }

// efficientNMS is TensorRT's plugin.
func efficientNMS(c *call) {
	boxes := c.input(0).Dims
	if len(boxes) == 0 {
		return
	}
	b, n := boxes[0], c.Int("max_output_boxes", c.Int("keepTopK", -1))
	c.give(0, b, 1)
	c.give(1, b, n, 4)
	c.give(2, b, n)
	c.give(3, b, n)
}

func dynamicQuantize(c *call) {
	x := c.input(0)
	if !x.Ranked {
		return
	}
	c.give(0, slices.Clone(x.Dims)...)
	c.give(1)
	c.give(2)
	c.cost(2)
}

func oneHot(c *call) {
	x := c.input(0)
	depth, ok := c.integers(1)
	if !x.Ranked || !ok || len(depth) != 1 {
		return
	}
	a := c.Int("axis", -1)
	if a < 0 {
		a += int64(len(x.Dims)) + 1
	}
	if a < 0 || a > int64(len(x.Dims)) {
		return
	}
	c.give(0, slices.Insert(slices.Clone(x.Dims), int(a), depth[0])...)
}

// choose follows the branch that a constant takes, or both where they agree.
func choose(c *call) {
	branches := [2]*onnx.Graph{}
	for i, name := range [2]string{"else_branch", "then_branch"} {
		if a := c.Attribute(name); a != nil && len(a.Graphs) == 1 {
			branches[i] = a.Graphs[0]
		}
	}
	if branches[0] == nil || branches[1] == nil {
		return
	}
	if v := c.input(0).Values; len(v) == 1 && !math.IsNaN(v[0]) {
		g := branches[int(truth(v[0] != 0))]
		c.w.graph(g)
		for i := range min(len(c.out), len(g.Outputs)) {
			c.out[i] = c.w.Of(g.Outputs[i].Name)
		}
		return
	}
	c.w.graph(branches[0])
	c.w.graph(branches[1])
	for i := range c.out {
		if i >= len(branches[0].Outputs) || i >= len(branches[1].Outputs) {
			return
		}
		a, b := c.w.Of(branches[0].Outputs[i].Name), c.w.Of(branches[1].Outputs[i].Name)
		if !a.Ranked || len(a.Dims) != len(b.Dims) {
			continue
		}
		dims := slices.Clone(a.Dims)
		for k := range dims {
			if dims[k] != b.Dims[k] {
				dims[k] = -1
			}
		}
		c.give(i, dims...)
	}
}
