//go:build (amd64 || arm64) && !purego && !noasm

package preprocess

// reader says how the assembly reads the taps of a component: one load of four
// bytes has both samples of a tap. Its zero value reads none.
type reader struct {
	first, second [16]byte // byte shuffles that spread the samples; the second is for Cr
	mask, shift   uint32   // of a code in its word
	taps          int      // the first ones, whose loads stay within a row, in whole steps
	shared        bool     // the loads for Cb have Cr
}

// newReader is for samples of size bytes; pair tells that those of Cb and Cr
// alternate.
func newReader(s *sampling, size int, shift uint, pair bool) (r reader) {
	const none = 0x80
	var spread [4]byte // which of four bytes makes which of a tap's two words
	switch {
	case size == 1 && s.next == 1:
		spread, r.mask = [4]byte{0, none, 1, none}, 0xff
	case size == 1 && s.next == 2 && pair:
		spread, r.mask, r.shared = [4]byte{0, none, 2, none}, 0xff, true
	case size == 2 && s.next == 2:
		spread, r.mask = [4]byte{0, 1, 2, 3}, 0x3ff
	default:
		return reader{}
	}
	for i := range r.first {
		from := spread[i%4]
		if from != none {
			from += byte(i &^ 3)
		}
		r.first[i], r.second[i] = from, from
		if r.shared && from != none {
			r.second[i]++
		}
	}
	r.mask |= r.mask << 16
	r.shift = uint32(shift)
	for r.taps < len(s.cols) && int(s.cols[r.taps].at)+4 <= s.width {
		r.taps++
	}
	r.taps &^= vectorStep - 1
	return r
}

// gather is gather8 or gather16 for the first samples, as many as it returns.
func (r *reader) gather(dst []uint32, y rows, taps []tap, wy uint32) int {
	n := r.taps
	if n == 0 {
		return 0
	}
	end := taps[:n][n-1].at + 4 // taps never go back
	top, bottom, dst := y.top[:end], y.bottom[:end], dst[:n]
	gatherRow(&dst[0], &top[0], &bottom[0], &taps[0], n, wy, r)
	return n
}

// gatherPair is gatherPair8 or gatherPair16 for the first samples, as many as it
// returns.
func (r *reader) gatherPair(dst []uint64, u, v rows, taps []tap, wy uint32) int {
	n := r.taps
	if n == 0 {
		return 0
	}
	end := taps[:n][n-1].at + 4
	ut, ub, dst := u.top[:end], u.bottom[:end], dst[:n]
	if r.shared {
		gatherSharedRow(&dst[0], &ut[0], &ub[0], &taps[0], n, wy, r)
		return n
	}
	vt, vb := v.top[:end], v.bottom[:end]
	gatherPairRow(&dst[0], &ut[0], &ub[0], &vt[0], &vb[0], &taps[0], n, wy, r)
	return n
}

// The functions below are for n taps, a multiple of vectorStep and not 0.

//go:noescape
func gatherRow(dst *uint32, top, bottom *byte, taps *tap, n int, wy uint32, r *reader)

//go:noescape
func gatherPairRow(dst *uint64, utop, ubottom, vtop, vbottom *byte, taps *tap, n int, wy uint32, r *reader)

//go:noescape
func gatherSharedRow(dst *uint64, top, bottom *byte, taps *tap, n int, wy uint32, r *reader)
