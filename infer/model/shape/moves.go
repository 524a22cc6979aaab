package shape

import (
	"math"
	"slices"
)

func shapeOf(c *call) {
	x := c.input(0)
	if !x.Ranked {
		return
	}
	from, to := bounds(c.Int("start", 0), c.Int("end", math.MaxInt32), int64(len(x.Dims)))
	f := c.give(0, to-from)
	f.Integer, f.Values = true, make([]float64, 0, to-from)
	for _, d := range x.Dims[from:to] {
		v := float64(d)
		if d < 0 {
			v = math.NaN()
		}
		f.Values = append(f.Values, v)
	}
}

// bounds brings a half-open range with negative ends into 0…n.
func bounds(from, to, n int64) (int64, int64) {
	if from < 0 {
		from += n
	}
	if to < 0 {
		to += n
	}
	from = min(max(from, 0), n)
	return from, min(max(to, from), n)
}

func size(c *call) {
	f := c.give(0)
	f.Integer = true
	if n := c.input(0).Elements(); n >= 0 {
		f.Values = []float64{float64(n)}
	}
}

// take gives the values of the first input a new shape.
func (c *call) take(f *Fact) {
	x := c.input(0)
	f.Integer = x.Integer
	if x.Values != nil && f.Elements() == int64(len(x.Values)) {
		f.Values = x.Values
	}
}

func reshape(c *call) {
	x, target := c.input(0), c.input(1).Values
	if a := c.Ints("shape"); a != nil {
		target = nil
		for _, v := range a {
			target = append(target, float64(v))
		}
	}
	if target == nil {
		if f := c.input(1); f.Ranked && len(f.Dims) == 1 && f.Dims[0] >= 0 && f.Dims[0] <= maxRank {
			c.give(0, slices.Repeat([]int64{-1}, int(f.Dims[0]))...)
		}
		return
	}
	if len(target) > maxRank {
		return
	}
	free, dims := -1, make([]int64, len(target))
	for i, v := range target {
		switch {
		case math.IsNaN(v):
			dims[i] = -1
		case v == 0 && c.Int("allowzero", 0) == 0:
			dims[i] = -1
			if i < len(x.Dims) {
				dims[i] = x.Dims[i]
			}
		case v < 0:
			dims[i], free = 1, i
		default:
			dims[i] = whole(v)
		}
	}
	if free >= 0 {
		n, rest := x.Elements(), product(dims)
		dims[free] = -1
		if n >= 0 && rest > 0 && n%rest == 0 {
			dims[free] = n / rest
		}
	}
	c.take(c.give(0, dims...))
}

func flatten(c *call) {
	x := c.input(0)
	a := c.Int("axis", 1)
	if a < 0 {
		a += int64(len(x.Dims))
	}
	if !x.Ranked || a < 0 || a > int64(len(x.Dims)) {
		return
	}
	c.give(0, product(x.Dims[:a]), product(x.Dims[a:]))
}

func transpose(c *call) {
	x, perm := c.input(0), c.Ints("perm")
	if !x.Ranked {
		return
	}
	if perm == nil {
		for i := range x.Dims {
			perm = append(perm, int64(len(x.Dims)-1-i))
		}
	}
	if len(perm) != len(x.Dims) {
		return
	}
	dims := make([]int64, len(perm))
	for i, p := range perm {
		k, ok := axis(p, len(perm))
		if !ok {
			return
		}
		dims[i] = x.Dims[k]
	}
	c.give(0, dims...)
}

func squeeze(c *call) {
	x := c.input(0)
	set, ok := c.axes(1, len(x.Dims))
	if !x.Ranked || !ok {
		return
	}
	dims := []int64{}
	for i, d := range x.Dims {
		if len(set) == 0 && d == 1 || set[i] {
			continue
		}
		dims = append(dims, d)
	}
	c.take(c.give(0, dims...))
}

func unsqueeze(c *call) {
	x := c.input(0)
	list := c.Ints("axes")
	if list == nil {
		list, _ = c.integers(1)
	}
	rank := len(x.Dims) + len(list)
	set, ok := c.axes(1, rank)
	if !x.Ranked || !ok || len(set) != len(list) {
		return
	}
	dims, next := make([]int64, 0, rank), 0
	for i := range rank {
		if set[i] {
			dims = append(dims, 1)
			continue
		}
		dims = append(dims, x.Dims[next])
		next++
	}
	c.take(c.give(0, dims...))
}

// concat joins inputs first, first+step, …
func concat(first, step int) handler {
	return func(c *call) {
		if len(c.in) <= first || !c.in[first].Ranked {
			return
		}
		dims := slices.Clone(c.in[first].Dims)
		a, ok := axis(c.Int("axis", 1), len(dims))
		if !ok {
			return
		}
		values, integer := []float64{}, true
		dims[a] = 0
		for i := first; i < len(c.in); i += step {
			f := c.in[i]
			if len(f.Dims) != len(dims) {
				return
			}
			for k, d := range f.Dims {
				switch {
				case k != a && dims[k] >= 0 && d >= 0 && dims[k] != d:
					c.misfit(dims, f.Dims)
					return
				case k != a && dims[k] < 0:
					dims[k] = d
				case k == a && (d < 0 || dims[a] < 0):
					dims[a] = -1
				case k == a:
					dims[a] += d
				}
			}
			if integer = integer && f.Integer; f.Values == nil || len(dims) != 1 || len(values) > maxValues {
				values = nil
			} else if values != nil {
				values = append(values, f.Values...)
			}
		}
		f := c.give(0, dims...)
		f.Integer, f.Values = integer, values
	}
}

func split(c *call) {
	x := c.input(0)
	a, ok := axis(c.Int("axis", 0), len(x.Dims))
	if !x.Ranked || !ok || len(c.out) == 0 {
		return
	}
	parts := c.Ints("split")
	if parts == nil && c.has(1) {
		parts, _ = c.integers(1)
	}
	n := int64(len(c.out))
	even := (max(x.Dims[a], 0) + n - 1) / n
	at := int64(0)
	for i := range c.out {
		d := int64(-1)
		switch {
		case i < len(parts):
			d = parts[i]
		case parts == nil && !c.has(1) && x.Dims[a] >= 0:
			d = max(min(even, x.Dims[a]-at), 0)
		}
		dims := slices.Clone(x.Dims)
		dims[a] = d
		f := c.give(i, dims...)
		if f.Integer = x.Integer; len(dims) == 1 && x.Values != nil && d >= 0 && d <= int64(len(x.Values))-at {
			f.Values = x.Values[at : at+d]
		}
		at += min(max(d, 0), maxSize)
	}
}

// cut is one axis of a slice.
type cut struct{ axis, from, to, step int64 }

func (c *call) cuts(rank int) ([]cut, bool) {
	from, to, axes, steps := c.Ints("starts"), c.Ints("ends"), c.Ints("axes"), []int64(nil)
	if from == nil {
		var ok bool
		if from, ok = c.integers(1); !ok {
			return nil, false
		}
		if to, ok = c.integers(2); !ok {
			return nil, false
		}
		if axes, ok = c.integers(3); !ok && c.has(3) {
			return nil, false
		}
		if steps, ok = c.integers(4); !ok && c.has(4) {
			return nil, false
		}
	}
	if len(from) != len(to) {
		return nil, false
	}
	var out []cut
	for i := range from {
		k := cut{axis: int64(i), from: from[i], to: to[i], step: 1}
		if i < len(axes) {
			k.axis = axes[i]
		}
		if i < len(steps) {
			k.step = steps[i]
		}
		a, ok := axis(k.axis, rank)
		if !ok || k.step == 0 {
			return nil, false
		}
		k.axis = int64(a)
		out = append(out, k)
	}
	return out, true
}

// places are the first place and how many of an axis of size n are taken.
func (k *cut) places(n int64) (first, count int64) {
	if k.step > 0 {
		from, to := bounds(k.from, k.to, n)
		return from, (to - from + k.step - 1) / k.step
	}
	from, to := k.from, k.to
	if from < 0 {
		from += n
	}
	if to < 0 {
		to += n
	}
	from, to = min(from, n-1), max(to, -1)
	if from <= to {
		return 0, 0
	}
	step := min(-k.step, n+1)
	return from, (from - to + step - 1) / step
}

func slice(c *call) {
	x := c.input(0)
	if !x.Ranked {
		return
	}
	cuts, ok := c.cuts(len(x.Dims))
	dims := slices.Clone(x.Dims)
	if !ok {
		for i := range dims {
			dims[i] = -1
		}
		c.give(0, dims...)
		return
	}
	for _, k := range cuts {
		if dims[k.axis] >= 0 {
			_, dims[k.axis] = k.places(x.Dims[k.axis])
		}
	}
	f := c.give(0, dims...)
	if f.Integer = x.Integer; len(dims) != 1 || x.Values == nil || len(cuts) != 1 {
		return
	}
	first, count := cuts[0].places(int64(len(x.Values)))
	f.Values = make([]float64, 0, count)
	for i := range count {
		f.Values = append(f.Values, x.Values[first+i*cuts[0].step])
	}
}

func gather(c *call) {
	x, index := c.input(0), c.input(1)
	a, ok := axis(c.Int("axis", 0), len(x.Dims))
	if !x.Ranked || !index.Ranked || !ok {
		return
	}
	dims := slices.Concat(x.Dims[:a], index.Dims, x.Dims[a+1:])
	f := c.give(0, dims...)
	if f.Integer = x.Integer; len(x.Dims) != 1 || x.Values == nil || index.Values == nil {
		return
	}
	for _, v := range index.Values {
		k, ok := axis(whole(v), len(x.Values))
		if !ok || math.IsNaN(v) {
			f.Values = append(f.Values, math.NaN())
			continue
		}
		f.Values = append(f.Values, x.Values[k])
	}
}
