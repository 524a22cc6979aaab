package preprocess

import "encoding/binary"

// gather interpolates one output row of one component out of two input rows.
// taps count bytes; the second sample of a tap lies next bytes further (0 in a
// plane one sample wide). wy is the weight of bottom. Results are codes times
// weightOne². It is the inner loop of the package: four loads, three
// multiplications.
func gather8(dst []uint32, top, bottom []byte, next int, taps []tap, wy uint32) {
	// Four views of one length: the check of the first index covers all.
	b, d := top[next:], bottom[next:]
	n := min(len(b), len(d))
	a, b, c, d := top[:n], b[:n], bottom[:n], d[:n]
	dst = dst[:len(taps)]
	for i, t := range taps {
		x := t.at
		p, q := uint32(a[x]), uint32(b[x])
		u := p<<weightBits + (q-p)*t.w
		p, q = uint32(c[x]), uint32(d[x])
		v := p<<weightBits + (q-p)*t.w
		dst[i] = u<<weightBits + (v-u)*wy
	}
}

// gather16 is gather8 for 10-bit samples in little-endian words, shift bits
// above the lowest. The mask keeps stray high bits of a broken stream from
// overflowing the sums.
func gather16(dst []uint32, top, bottom []byte, next int, taps []tap, wy uint32, shift uint) {
	b, d := top[next:], bottom[next:]
	n := min(len(b), len(d))
	a, b, c, d := top[:n], b[:n], bottom[:n], d[:n]
	dst = dst[:len(taps)]
	shift &= 15
	for i, t := range taps {
		x := int(t.at)
		p, q := code(a, x, shift), code(b, x, shift)
		u := p<<weightBits + (q-p)*t.w
		p, q = code(c, x, shift), code(d, x, shift)
		v := p<<weightBits + (q-p)*t.w
		dst[i] = u<<weightBits + (v-u)*wy
	}
}

func code(row []byte, x int, shift uint) uint32 {
	return uint32(binary.LittleEndian.Uint16(row[x:x+2])) >> shift & 0x3ff
}
