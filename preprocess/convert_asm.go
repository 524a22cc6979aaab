//go:build (amd64 || arm64) && !purego && !noasm

package preprocess

// vectorStep is how many samples the assembly takes at a time. What is left of
// a row goes to the twin.
const vectorStep = 8

// lanes hold what the assembly needs of color and norms, in the order and width
// in which it loads them.
//
// The sums of color are whole numbers below 1<<53, and so is each product and
// partial sum: float64 holds them exactly, in any order and with fused
// operations or without. So the assembly gives the twin's bits. A weighted code
// becomes a float64 by standing in the low half of the number 1<<52; black and
// the middle of chroma are taken off together with that.
type lanes struct {
	black, mid, magic float64 // the first two with magic added
	y, rv, gu, gv, bu float64
	peak              [4]float32
	norms             [3][2][4]float32 // mul and add of R, G and B
}

func newLanes(c *color, n *[3]norm) (l lanes) {
	const magic = 1 << 52
	l.black, l.mid, l.magic = float64(magic+c.black), float64(magic+c.mid), magic
	l.y, l.rv, l.gu, l.gv, l.bu = float64(c.y), float64(c.rv), float64(c.gu), float64(c.gv), float64(c.bu)
	for i := range l.peak {
		l.peak[i] = peak
		for ch := range n {
			l.norms[ch][0][i], l.norms[ch][1][i] = n[ch].mul, n[ch].add
		}
	}
	return l
}

// convertVector is convert for the first samples, as many as it returns.
func (l *lanes) convertVector(r, g, b []float32, y []uint32, uv []uint64) int {
	n := len(y) &^ (vectorStep - 1)
	if n == 0 {
		return 0
	}
	r, g, b, uv = r[:n], g[:n], b[:n], uv[:n]
	convertRow(&r[0], &g[0], &b[0], &y[0], &uv[0], n, l)
	return n
}

// convertGrayVector is convertGray for the first samples, as many as it returns.
func (l *lanes) convertGrayVector(r, g, b []float32, y []uint32) int {
	n := len(y) &^ (vectorStep - 1)
	if n == 0 {
		return 0
	}
	r, g, b = r[:n], g[:n], b[:n]
	convertGrayRow(&r[0], &g[0], &b[0], &y[0], n, l)
	return n
}

// convertRow is for n samples, a multiple of vectorStep and not 0.
//
//go:noescape
func convertRow(red, green, blue *float32, y *uint32, uv *uint64, n int, l *lanes)

// convertGrayRow is convertRow without chroma.
//
//go:noescape
func convertGrayRow(red, green, blue *float32, y *uint32, n int, l *lanes)
