package decode

import (
	"bytes"
	"math/bits"
	"slices"
)

// set is a parameter set of H.264 that is in force.
type set struct {
	kind kind
	id   uint32
	nalu []byte
}

// The ids that the standard has, Rec. ITU-T H.264 7.4.2.
const (
	maxSPS = 31
	maxPPS = 255
)

// remember puts a parameter set in the place of the one with its id.
func (f *filter) remember(k kind, n []byte) {
	id, ok := setID(k, n)
	if !ok {
		return
	}
	for i := range f.known {
		s := &f.known[i]
		if s.kind == k && s.id == id {
			if !bytes.Equal(s.nalu, n) {
				s.nalu = slices.Clone(n)
			}
			return
		}
	}
	f.known = append(f.known, set{k, id, slices.Clone(n)})
}

// sets are the parameter sets in force, in the order in which a decoder wants
// them.
func (f *filter) sets() (out [][]byte) {
	for _, k := range []kind{kindSPS, kindPPS} {
		for _, s := range f.known {
			if s.kind == k {
				out = append(out, s.nalu)
			}
		}
	}
	return out
}

// setID reads the id of a parameter set: an SPS has it behind three fixed bytes
// and a PPS at once.
func setID(k kind, n []byte) (id uint32, ok bool) {
	skip, limit := 1, uint32(maxPPS)
	if k == kindSPS {
		skip, limit = 4, maxSPS
	}
	if len(n) <= skip {
		return 0, false
	}
	id, ok = golomb(n[skip:])
	return id, ok && id <= limit
}

// golomb reads an unsigned Exp-Golomb number of at most 17 bits from the start
// of b.
func golomb(b []byte) (uint32, bool) {
	var w uint32
	for i := range 4 {
		w <<= 8
		if i < len(b) {
			w |= uint32(b[i])
		}
	}
	zeros := bits.LeadingZeros32(w)
	if zeros > 8 || 2*zeros+1 > 8*len(b) {
		return 0, false
	}
	return w>>(31-2*zeros) - 1, true
}
