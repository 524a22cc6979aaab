package preprocess

// peak is the value 255, the upper end of the clamp.
const peak = 255 << sumBits

// converter turns rows of weighted codes into rows of the three channel planes,
// with vectors as far as the processor has them. color's methods are their twins
// and take the rest of a row; both give the same bits.
type converter struct {
	color   color
	norms   [3]norm // of R, G and B
	lanes   lanes
	vectors bool
}

func newConverter(c color, n *[3]norm, vectors bool) converter {
	k := converter{color: c, norms: *n, vectors: vectors}
	if vectors {
		k.lanes = newLanes(&c, n)
	}
	return k
}

func (k *converter) convert(r, g, b []float32, y []uint32, uv []uint64) {
	n := 0
	if k.vectors {
		n = k.lanes.convertVector(r, g, b, y, uv)
	}
	k.color.convert(r[n:], g[n:], b[n:], y[n:], uv[n:], &k.norms)
}

func (k *converter) convertGray(r, g, b []float32, y []uint32) {
	n := 0
	if k.vectors {
		n = k.lanes.convertGrayVector(r, g, b, y)
	}
	k.color.convertGray(r[n:], g[n:], b[n:], y[n:], &k.norms)
}

// convert writes one row of the three channel planes from weighted codes, those
// of chroma as gatherPair8 makes them. n holds the norms of R, G and B. All
// slices have the length of y.
func (c *color) convert(r, g, b []float32, y []uint32, uv []uint64, n *[3]norm) {
	r, g, b = r[:len(y)], g[:len(y)], b[:len(y)]
	uv = uv[:len(y)]
	nr, ng, nb := n[0], n[1], n[2]
	k := *c
	for i, v := range y {
		luma := int64(v) * k.y
		cb, cr := int64(uint32(uv[i])), int64(uv[i]>>32)
		r[i] = nr.of(luma + cr*k.rv + k.r0)
		g[i] = ng.of(luma - cb*k.gu - cr*k.gv + k.g0)
		b[i] = nb.of(luma + cb*k.bu + k.b0)
	}
}

// convertGray is convert of a picture without chroma.
func (c *color) convertGray(r, g, b []float32, y []uint32, n *[3]norm) {
	r, g, b = r[:len(y)], g[:len(y)], b[:len(y)]
	nr, ng, nb := n[0], n[1], n[2]
	k := *c
	for i, v := range y {
		l := float32(min(max(int64(v)*k.y+k.y0, 0), peak))
		r[i] = nr.normalise(l)
		g[i] = ng.normalise(l)
		b[i] = nb.normalise(l)
	}
}

// of clamps a value to 0..255 and normalises it.
func (n norm) of(v int64) float32 {
	return n.normalise(float32(min(max(v, 0), peak)))
}

// normalise rounds twice on every processor: the conversion keeps compilers from
// contracting the multiplication and the addition into one.
func (n norm) normalise(v float32) float32 { return float32(v*n.mul) + n.add }
