package shape

import (
	"math"
	"slices"

	"edgecam/infer/model/onnx"
)

// broadcast is the shape of two that are combined value by value.
func broadcast(a, b []int64) ([]int64, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, d := range b {
		k := i + len(a) - len(b)
		switch {
		case out[k] == 1:
			out[k] = d
		case d == 1 || out[k] == d || d < 0:
		case out[k] < 0:
			out[k] = d
		default:
			return nil, false
		}
	}
	return out, true
}

// same keeps the first input's shape, at a cost per value.
func same(per int64) handler {
	return func(c *call) {
		x := c.input(0)
		if !x.Ranked {
			return
		}
		for i := range c.out {
			c.give(i, slices.Clone(x.Dims)...)
		}
		c.cost(per)
	}
}

// unary is same for what can be computed of constants.
func unary(per int64, fn func(float64) float64) handler {
	keep := same(per)
	return func(c *call) {
		keep(c)
		x := c.input(0)
		if len(c.out) == 0 || c.out[0] == nil || x.Values == nil {
			return
		}
		f := c.out[0]
		f.Integer, f.Values = x.Integer, make([]float64, len(x.Values))
		for i, v := range x.Values {
			f.Values[i] = fn(v)
		}
	}
}

func cast(c *call) {
	unary(0, func(v float64) float64 { return v })(c)
	if len(c.out) == 0 || c.out[0] == nil {
		return
	}
	f := c.out[0]
	f.Integer = integer(onnx.Type(c.Int("to", int64(onnx.Float32))))
	if f.Integer {
		for i, v := range f.Values {
			f.Values[i] = math.Trunc(v)
		}
	}
}

// binary combines two inputs; fn may be nil where constants need not be followed.
func binary(fn func(a, b float64) float64) handler {
	return func(c *call) {
		a, b := c.input(0), c.input(1)
		if !a.Ranked || !b.Ranked {
			return
		}
		dims, ok := broadcast(a.Dims, b.Dims)
		if !ok {
			c.misfit(a.Dims, b.Dims)
			return
		}
		f := c.give(0, dims...)
		f.Integer = a.Integer && b.Integer
		c.cost(1)
		if fn == nil || a.Values == nil || b.Values == nil {
			return
		}
		if n := f.Elements(); n < 0 || n > maxValues {
			return
		}
		f.Values = make([]float64, f.Elements())
		for i := range f.Values {
			f.Values[i] = fn(a.at(i, dims), b.at(i, dims))
			if f.Integer && c.Op == "Div" {
				f.Values[i] = math.Trunc(f.Values[i])
			}
		}
	}
}

// at is the value that stands at place i of a shape that the constant is stretched to.
func (f *Fact) at(i int, dims []int64) float64 {
	index, step := int64(0), int64(1)
	rest := int64(i)
	for k := len(dims) - 1; k >= 0; k-- {
		own := k - (len(dims) - len(f.Dims))
		place := rest % dims[k]
		rest /= dims[k]
		if own < 0 {
			continue
		}
		if f.Dims[own] != 1 {
			index += place * step
		}
		step *= f.Dims[own]
	}
	if index < 0 || index >= int64(len(f.Values)) {
		return math.NaN()
	}
	return f.Values[index]
}

// many combines any number of inputs (Sum, Mean, Min and Max of more than two).
func many(fn func(a, b float64) float64) handler {
	two := binary(fn)
	return func(c *call) {
		if len(c.in) == 2 {
			two(c)
			return
		}
		dims := []int64{}
		for _, f := range c.in {
			var ok bool
			if dims, ok = broadcast(dims, f.Dims); !ok || !f.Ranked {
				return
			}
		}
		c.give(0, dims...)
		c.cost(int64(len(c.in)))
	}
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// compare is a comparison, of which nothing is known where a side is not.
func compare(fn func(a, b float64) bool) handler {
	return binary(func(a, b float64) float64 {
		if math.IsNaN(a) || math.IsNaN(b) {
			return math.NaN()
		}
		return truth(fn(a, b))
	})
}

func where(c *call) {
	cond, a, b := c.input(0), c.input(1), c.input(2)
	dims, ok := broadcast(a.Dims, b.Dims)
	if ok {
		dims, ok = broadcast(dims, cond.Dims)
	}
	if !ok || !cond.Ranked || !a.Ranked || !b.Ranked {
		return
	}
	f := c.give(0, dims...)
	f.Integer = a.Integer && b.Integer
	n := f.Elements()
	if cond.Values == nil || a.Values == nil || b.Values == nil || n < 0 || n > maxValues {
		return
	}
	f.Values = make([]float64, n)
	for i := range f.Values {
		switch v := cond.at(i, dims); {
		case math.IsNaN(v):
			f.Values[i] = math.NaN()
		case v != 0:
			f.Values[i] = a.at(i, dims)
		default:
			f.Values[i] = b.at(i, dims)
		}
	}
}
