package preprocess

import "encoding/binary"

// The gather functions interpolate one output row out of two input rows. taps
// count bytes; the second sample of a tap lies next bytes further (0 in a plane
// one sample wide). wy is the weight of the bottom row. Results are codes times
// weightOne². They are the inner loops of the package: all slices of a loop get
// one length, so that the check of one index covers the loads from all of them.

// rows are the two rows of one component, from its first sample.
type rows struct{ top, bottom []byte }

// gather8 is for a component of its own, which is Y.
func gather8(dst []uint32, y rows, next int, taps []tap, wy uint32) {
	b, d := y.top[next:], y.bottom[next:]
	n := min(len(b), len(d))
	a, b, c, d := y.top[:n], b[:n], y.bottom[:n], d[:n]
	dst = dst[:len(taps)]
	for i, t := range taps {
		x := t.at
		p, q := uint32(a[x]), uint32(b[x])
		top := p<<weightBits + (q-p)*t.w
		p, q = uint32(c[x]), uint32(d[x])
		bottom := p<<weightBits + (q-p)*t.w
		dst[i] = top<<weightBits + (bottom-top)*wy
	}
}

// gatherPair8 is for Cb and Cr together, which share taps: Cb becomes the low
// half of a word and Cr the high half, so that one multiplication weights both. A
// difference may borrow from the high half, but the sums are never negative and
// come out right.
func gatherPair8(dst []uint64, u, v rows, next int, taps []tap, wy uint32) {
	n := min(len(u.top), len(u.bottom), len(v.top), len(v.bottom)) - next
	u0, u1, u2, u3 := u.top[:n], u.top[next:][:n], u.bottom[:n], u.bottom[next:][:n]
	v0, v1, v2, v3 := v.top[:n], v.top[next:][:n], v.bottom[:n], v.bottom[next:][:n]
	dst = dst[:len(taps)]
	for i, t := range taps {
		x, w := t.at, uint64(t.w)
		p := uint64(u0[x]) | uint64(v0[x])<<32
		q := uint64(u1[x]) | uint64(v1[x])<<32
		top := p<<weightBits + (q-p)*w
		p = uint64(u2[x]) | uint64(v2[x])<<32
		q = uint64(u3[x]) | uint64(v3[x])<<32
		bottom := p<<weightBits + (q-p)*w
		dst[i] = top<<weightBits + (bottom-top)*uint64(wy)
	}
}

// gather16 is gather8 for 10-bit samples in little-endian words, shift bits
// above the lowest.
func gather16(dst []uint32, y rows, next int, taps []tap, wy uint32, shift uint) {
	b, d := y.top[next:], y.bottom[next:]
	n := min(len(b), len(d))
	a, b, c, d := y.top[:n], b[:n], y.bottom[:n], d[:n]
	dst = dst[:len(taps)]
	shift &= 15
	for i, t := range taps {
		x := int(t.at)
		p, q := word(a, x, shift), word(b, x, shift)
		top := p<<weightBits + (q-p)*t.w
		p, q = word(c, x, shift), word(d, x, shift)
		bottom := p<<weightBits + (q-p)*t.w
		dst[i] = top<<weightBits + (bottom-top)*wy
	}
}

// gatherPair16 is gatherPair8 for 10-bit samples.
func gatherPair16(dst []uint64, u, v rows, next int, taps []tap, wy uint32, shift uint) {
	n := min(len(u.top), len(u.bottom), len(v.top), len(v.bottom)) - next
	u0, u1, u2, u3 := u.top[:n], u.top[next:][:n], u.bottom[:n], u.bottom[next:][:n]
	v0, v1, v2, v3 := v.top[:n], v.top[next:][:n], v.bottom[:n], v.bottom[next:][:n]
	dst = dst[:len(taps)]
	shift &= 15
	for i, t := range taps {
		x, w := int(t.at), uint64(t.w)
		p := uint64(word(u0, x, shift)) | uint64(word(v0, x, shift))<<32
		q := uint64(word(u1, x, shift)) | uint64(word(v1, x, shift))<<32
		top := p<<weightBits + (q-p)*w
		p = uint64(word(u2, x, shift)) | uint64(word(v2, x, shift))<<32
		q = uint64(word(u3, x, shift)) | uint64(word(v3, x, shift))<<32
		bottom := p<<weightBits + (q-p)*w
		dst[i] = top<<weightBits + (bottom-top)*uint64(wy)
	}
}

// word reads a 10-bit code. The mask keeps stray high bits of a broken stream from
// overflowing the sums.
func word(row []byte, x int, shift uint) uint32 {
	return uint32(binary.LittleEndian.Uint16(row[x:x+2])) >> shift & 0x3ff
}
