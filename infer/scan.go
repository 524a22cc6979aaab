package infer

import (
	"math"
	"slices"
)

// scan tells whether any score of a row has bits of at least lowest, and ORs
// the bits of all. Nearly all of the 283,920 scores of a picture are far below
// the threshold, so this loop is what decoding costs: it has no branch and no
// comparison. For floats from 0 on the order of the bits is the order of the
// values; NaN, infinite, negative and too large values all have bits above
// those of 1. b + (2^31 − lowest) has its top bit set when b ≥ lowest, for b
// below 2^31; b itself has it when the value is negative.
func scan(row []float32, lowest uint32) (hit bool, seen uint32) {
	const top = 1 << 31
	lift := top - lowest
	above, any, n := scanVector(row, lift)
	row = row[n:]
	for len(row) >= 8 {
		r := row[:8:8]
		b0, b1, b2, b3 := math.Float32bits(r[0]), math.Float32bits(r[1]), math.Float32bits(r[2]), math.Float32bits(r[3])
		b4, b5, b6, b7 := math.Float32bits(r[4]), math.Float32bits(r[5]), math.Float32bits(r[6]), math.Float32bits(r[7])
		above |= ((lift + b0) | (lift + b1)) | ((lift + b2) | (lift + b3)) |
			((lift + b4) | (lift + b5)) | ((lift + b6) | (lift + b7))
		any |= ((b0 | b1) | (b2 | b3)) | ((b4 | b5) | (b6 | b7))
		row = row[8:]
	}
	for _, v := range row {
		b := math.Float32bits(v)
		above |= lift + b
		any |= b
	}
	return (above|any)&top != 0, any
}

// scanReal is scan of numbers of either sign: it tells whether any of them is at
// least low or not finite.
func scanReal(row []float32, low float32) (hit bool, seen uint32) {
	const top, exponent = 1 << 31, 0x7f800000
	var any, lift uint32
	for _, v := range row {
		b := math.Float32bits(v)
		any |= b
		lift |= b&^top + top - exponent // carries into the top bit where the exponent is all ones
		if v >= low {
			hit = true
		}
	}
	return hit || lift&top != 0, any
}

// firstNotFinite is the place of the first NaN or infinity, or -1.
func firstNotFinite(values []float32) int {
	const exponent = 0x7f800000
	for i, v := range values {
		if math.Float32bits(v)&exponent == exponent {
			return i
		}
	}
	return -1
}

// best keeps the n best in the order of better.
func best(dets []Detection, n int) []Detection {
	slices.SortFunc(dets, better)
	return dets[:min(n, len(dets))]
}
