package ort

import "math"

// toHalf rounds to the nearest float16, ties to even.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	magnitude := b & 0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return sign | 0x7e00 // NaN
	case magnitude >= 0x477ff000: // rounds beyond 65504
		return sign | 0x7c00
	case magnitude < 0x38800000: // below 2^-14: subnormal, in units of 2^-24
		return sign | uint16(math.RoundToEven(math.Abs(float64(v))*(1<<24)))
	}
	round := uint32(0xfff) + magnitude>>13&1
	return sign | uint16((magnitude+round)>>13-(127-15)<<10)
}

func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0:
		v := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
