package preprocess

// peak is the value 255, the upper end of the clamp.
const peak = 255 << sumBits

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
		r[i] = l*nr.mul + nr.add
		g[i] = l*ng.mul + ng.add
		b[i] = l*nb.mul + nb.add
	}
}

// of clamps a value to 0..255 and normalises it.
func (n norm) of(v int64) float32 {
	return float32(min(max(v, 0), peak))*n.mul + n.add
}
