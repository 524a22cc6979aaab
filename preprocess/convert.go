package preprocess

// peak is the value 255, the upper end of the clamp.
const peak = 255 << sumBits

// convert writes one row of the three channel planes from weighted codes.
// n holds the norms of R, G and B. All slices have the length of y.
func (c *color) convert(r, g, b []float32, y, cb, cr []uint32, n *[3]norm) {
	r, g, b = r[:len(y)], g[:len(y)], b[:len(y)]
	cb, cr = cb[:len(y)], cr[:len(y)]
	nr, ng, nb := n[0], n[1], n[2]
	k := *c
	for i, v := range y {
		l := int64(v) * k.y
		u, w := int64(cb[i]), int64(cr[i])
		r[i] = nr.of(l + w*k.rv + k.r0)
		g[i] = ng.of(l - u*k.gu - w*k.gv + k.g0)
		b[i] = nb.of(l + u*k.bu + k.b0)
	}
}

// convertGray is convert of a picture without chroma.
func (c *color) convertGray(r, g, b []float32, y []uint32, n *[3]norm) {
	r, g, b = r[:len(y)], g[:len(y)], b[:len(y)]
	nr, ng, nb := n[0], n[1], n[2]
	k := *c
	for i, v := range y {
		l := float32(min(max(int64(v)*k.y+k.y0, 0), peak))
		r[i] = l*nr.mul + nr.add
		g[i] = l*ng.mul + ng.add
		b[i] = l*nb.mul + nb.add
	}
}

// of clamps a value to 0..255 and normalises it.
func (n norm) of(v int64) float32 {
	return float32(min(max(v, 0), peak))*n.mul + n.add
}
