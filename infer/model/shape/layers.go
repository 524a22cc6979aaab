package shape

import "slices"

// window is what convolutions and poolings share.
type window struct {
	kernel, strides, pads, dilations []int64
	auto                             string
}

func (c *call) window(kernel []int64) window {
	n := len(kernel)
	w := window{kernel: kernel, strides: c.Ints("strides"), pads: c.Ints("pads"), dilations: c.Ints("dilations")}
	if len(w.strides) != n {
		w.strides = ones(n)
	}
	if len(w.dilations) != n {
		w.dilations = ones(n)
	}
	if len(w.pads) != 2*n {
		w.pads = make([]int64, 2*n)
	}
	if a := c.Attribute("auto_pad"); a != nil {
		w.auto = a.Text
	}
	return w
}

func ones(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// size is how many places the window has along one side.
func (w *window) size(i int, in int64, ceil bool) int64 {
	k, s := w.kernel[i], w.strides[i]
	if in < 0 || k < 1 || s < 1 || k > 1<<20 || w.dilations[i] > 1<<20 {
		return -1
	}
	switch w.auto {
	case "SAME_UPPER", "SAME_LOWER":
		return (in + s - 1) / s
	case "VALID":
		w.pads = make([]int64, 2*len(w.kernel))
	}
	left := in + w.pads[i] + w.pads[i+len(w.kernel)] - (w.dilations[i]*(k-1) + 1)
	if left < 0 {
		return -1
	}
	if ceil {
		left += s - 1
	}
	return left/s + 1
}

// conv has the weights' shape [out, in/groups, kernel…].
func conv(weights int) handler {
	return func(c *call) {
		x, k := c.input(0), c.input(weights)
		if len(x.Dims) < 3 || len(k.Dims) != len(x.Dims) {
			return
		}
		w := c.window(k.Dims[2:])
		dims := []int64{x.Dims[0], k.Dims[0]}
		for i, d := range x.Dims[2:] {
			dims = append(dims, w.size(i, d, false))
		}
		c.give(0, dims...)
		c.cost(2 * product(k.Dims[1:]))
	}
}

func convTranspose(c *call) {
	x, k := c.input(0), c.input(1)
	if len(x.Dims) < 3 || len(k.Dims) != len(x.Dims) {
		return
	}
	w, groups := c.window(k.Dims[2:]), max(c.Int("group", 1), 1)
	extra, sides := c.Ints("output_padding"), len(w.kernel)
	dims := []int64{x.Dims[0], k.Dims[1] * groups}
	for i, d := range x.Dims[2:] {
		if d < 0 || d > 1<<30 {
			dims = append(dims, -1)
			continue
		}
		size := w.strides[i]*(d-1) + w.dilations[i]*(w.kernel[i]-1) + 1 - w.pads[i] - w.pads[i+sides]
		if len(extra) == sides {
			size += extra[i]
		}
		if w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER" {
			size = d * w.strides[i]
		}
		dims = append(dims, max(size, -1))
	}
	if shape := c.Ints("output_shape"); len(shape) == sides {
		copy(dims[2:], shape)
	}
	c.give(0, dims...)
	// Every value of the input meets every weight of its group.
	if n, per := x.Elements(), product(k.Dims[1:]); n > 0 && per > 0 {
		c.w.FLOPs += 2 * float64(n) * float64(per)
	}
}

func pool(c *call) {
	x, kernel := c.input(0), c.Ints("kernel_shape")
	if len(x.Dims) != len(kernel)+2 || len(kernel) == 0 {
		return
	}
	w := c.window(kernel)
	dims := slices.Clone(x.Dims[:2])
	for i, d := range x.Dims[2:] {
		dims = append(dims, w.size(i, d, c.Int("ceil_mode", 0) != 0))
	}
	c.give(0, dims...)
	c.cost(product(kernel))
	if len(c.out) > 1 {
		c.give(1, slices.Clone(dims)...)
	}
}

func globalPool(c *call) {
	x := c.input(0)
	if len(x.Dims) < 3 {
		return
	}
	c.give(0, append(slices.Clone(x.Dims[:2]), ones(len(x.Dims)-2)...)...)
	if n := x.Elements(); n > 0 {
		c.w.FLOPs += float64(n)
	}
}

// matMul multiplies inputs a and b.
func matMul(a, b int) handler {
	return func(c *call) {
		x, y := c.input(a).Dims, c.input(b).Dims
		if len(x) == 0 || len(y) == 0 {
			return
		}
		inner := x[len(x)-1]
		if len(x) == 1 {
			x = []int64{1, x[0]}
		}
		if len(y) == 1 {
			y = []int64{y[0], 1}
		}
		dims, ok := broadcast(x[:len(x)-2], y[:len(y)-2])
		if !ok {
			return
		}
		if len(c.input(a).Dims) > 1 {
			dims = append(dims, x[len(x)-2])
		}
		if len(c.input(b).Dims) > 1 {
			dims = append(dims, y[len(y)-1])
		}
		c.give(0, dims...)
		c.cost(2 * inner)
	}
}

func gemm(c *call) {
	x, y := c.input(0).Dims, c.input(1).Dims
	if len(x) != 2 || len(y) != 2 {
		return
	}
	rows, inner, columns := x[0], x[1], y[1]
	if c.Int("transA", 0) != 0 {
		rows, inner = inner, rows
	}
	if c.Int("transB", 0) != 0 {
		columns = y[0]
	}
	c.give(0, rows, columns)
	c.cost(2 * inner)
}

func resize(c *call) {
	x := c.input(0)
	scales, sizes := 2, 3
	if c.Op == "Upsample" || len(c.Inputs) == 2 { // opset 10 and before
		scales, sizes = 1, -1
	}
	if !x.Ranked {
		return
	}
	dims := slices.Clone(x.Dims)
	over := c.Ints("axes")
	place := func(i int) (int, bool) {
		if over == nil {
			return i, i < len(dims)
		}
		if i >= len(over) {
			return 0, false
		}
		return axis(over[i], len(dims))
	}
	var by []float64
	if f := c.input(scales); c.has(scales) {
		by = f.Values
	} else if a := c.Attribute("scales"); a != nil {
		for _, v := range a.Floats {
			by = append(by, float64(v))
		}
	}
	if wanted, ok := c.integers(sizes); sizes > 0 && c.has(sizes) && ok && len(wanted) > 0 {
		for i, size := range wanted {
			if p, ok := place(i); ok {
				dims[p] = size
			}
		}
	} else if len(by) > 0 {
		for i, s := range by {
			if p, ok := place(i); ok {
				dims[p] = scaled(dims[p], s)
			}
		}
	} else {
		for i := range dims {
			dims[i] = -1
		}
	}
	c.give(0, dims...)
	c.cost(1)
}

func scaled(d int64, s float64) int64 {
	if d < 0 || !(s > 0 && s < 1e6) {
		return -1
	}
	return whole(float64(d)*s + 1e-6)
}

// blocks is SpaceToDepth and DepthToSpace.
func blocks(c *call) {
	x, b := c.input(0).Dims, c.Int("blocksize", 1)
	if len(x) != 4 || b < 1 || b > 1<<15 || slices.Min(x) < 0 {
		return
	}
	if c.Op == "SpaceToDepth" {
		c.give(0, x[0], x[1]*b*b, x[2]/b, x[3]/b)
	} else {
		c.give(0, x[0], x[1]/(b*b), x[2]*b, x[3]*b)
	}
}
