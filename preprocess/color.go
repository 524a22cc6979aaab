package preprocess

import (
	"math"

	"edgecam/framepool"
	"edgecam/infer"
)

// coefBits scales the matrix's coefficients. A weighted sample takes 32 bits,
// the largest coefficient (2.16 for Cb to B of BT.2020, limited) 22: sums stay
// far below 63 bits.
const (
	coefBits = 20
	sumBits  = coefBits + 2*weightBits
)

// color turns weighted codes into sample values 0..255 times 1<<sumBits.
type color struct {
	y              int64 // of Y to all three
	rv, gu, gv, bu int64 // of Cr to R, of Cb and Cr to G (subtracted), of Cb to B
	black, mid     int64 // their weighted codes
	y0             int64 // black's code in the sum of a grey picture
	r0, g0, b0     int64 // black's and the middle chroma's in those of a coloured one
}

// norm is (value−mean)/std of one channel, for values that color gives.
type norm struct{ mul, add float32 }

// coefficients turn codes into values 0..255: y*(luma-black) is the grey part,
// the others take chroma less mid.
type coefficients struct {
	y, black       float64
	rv, gu, gv, bu float64 // of Cr to R, of Cb and Cr to G (subtracted), of Cb to B
	mid            float64
}

// colorCoefficients follows ITU-T H.273 section 8.3: the matrix from Kr and Kb,
// ranges scaled to the bit depth. A code is expanded to 0..255 whatever its depth.
func colorCoefficients(depth int, full framepool.Range, m framepool.Matrix) coefficients {
	kr, kb := lumaWeights(m)
	kg := 1 - kr - kb
	unit := float64(int(1) << (depth - 8))
	k := coefficients{y: 255 / (219 * unit), black: 16 * unit, mid: 128 * unit}
	cs := 255 / (224 * unit)
	if full == framepool.RangeFull {
		peak := 256*unit - 1
		k.black, k.y, cs = 0, 255/peak, 255/peak
	}
	k.rv = cs * 2 * (1 - kr)
	k.gu = cs * 2 * (1 - kb) * kb / kg
	k.gv = cs * 2 * (1 - kr) * kr / kg
	k.bu = cs * 2 * (1 - kb)
	return k
}

// newColor is colorCoefficients in fixed point.
func newColor(depth int, full framepool.Range, m framepool.Matrix) color {
	k := colorCoefficients(depth, full, m)
	fixed := func(v float64) int64 { return int64(math.Round(v * (1 << coefBits))) }
	c := color{y: fixed(k.y), rv: fixed(k.rv), gu: fixed(k.gu), gv: fixed(k.gv), bu: fixed(k.bu)}
	const one = 1 << (2 * weightBits)
	c.black, c.mid = int64(k.black)*one, int64(k.mid)*one
	c.y0 = -c.y * c.black
	c.r0 = c.y0 - c.rv*c.mid
	c.g0 = c.y0 + (c.gu+c.gv)*c.mid
	c.b0 = c.y0 - c.bu*c.mid
	return c
}

// lumaWeights are Kr and Kb of H.273 table 4.
func lumaWeights(m framepool.Matrix) (kr, kb float64) {
	switch m {
	case framepool.MatrixBT709:
		return 0.2126, 0.0722
	case framepool.MatrixBT2020:
		return 0.2627, 0.0593
	default:
		return 0.299, 0.114
	}
}

// newNorms gives the channels in the tensor's order. A Std of 0 counts as 1.
func newNorms(spec infer.InputSpec) (n [3]norm, pad [3]float32) {
	for i := range n {
		std := float64(spec.Std[i])
		if std == 0 {
			std = 1
		}
		mean := float64(spec.Mean[i])
		n[i] = norm{
			mul: float32(1 / (std * (1 << sumBits))),
			add: float32(-mean / std),
		}
		pad[i] = float32((float64(spec.Pad) - mean) / std)
	}
	return n, pad
}
