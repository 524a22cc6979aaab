package sysav

import (
	"bytes"
	"slices"
)

// sets are the parameter sets of a stream. They go to the decoder in the stream
// alone: it is the one way that all versions and decoders have in common.
type sets struct {
	codec string
	known [][]byte
}

// maxSets is more than any stream has at once.
const maxSets = 64

// learn notes the parameter sets among the parts, and says whether a sequence
// parameter set was among them.
func (s *sets) learn(parts [][]byte) (sequence bool) {
	for _, n := range parts {
		kind, is := s.kind(n)
		if !is {
			continue
		}
		sequence = sequence || kind == 2
		s.put(kind, n)
	}
	return sequence
}

// put replaces the set of the same kind and id, and keeps the kinds in order.
func (s *sets) put(kind int, n []byte) {
	same := func(have []byte) bool {
		k, _ := s.kind(have)
		return k == kind && s.id(have) == s.id(n)
	}
	if i := slices.IndexFunc(s.known, same); i >= 0 {
		if !bytes.Equal(s.known[i], n) {
			s.known[i] = slices.Clone(n)
		}
		return
	}
	if len(s.known) == maxSets {
		return
	}
	later := func(have []byte) bool { k, _ := s.kind(have); return k > kind }
	i := slices.IndexFunc(s.known, later)
	if i < 0 {
		i = len(s.known)
	}
	s.known = slices.Insert(s.known, i, slices.Clone(n))
}

// with puts the sets before the first unit of a decoder.
func (s *sets) with(parts [][]byte, first bool) [][]byte {
	out := make([][]byte, 0, len(parts)+len(s.known))
	if first {
		out = append(out, s.known...)
	}
	for _, p := range parts {
		if len(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// kind is 1 for a video, 2 for a sequence, 3 for a picture parameter set.
func (s *sets) kind(n []byte) (int, bool) {
	switch {
	case s.codec == "h264" && len(n) > 1:
		k := int(n[0]&31) - 5 // 7 and 8
		return k, k == 2 && len(n) > 4 || k == 3
	case s.codec == "hevc" && len(n) > 2:
		k := int(n[0]>>1&63) - 31 // 32 to 34
		return k, k >= 1 && k <= 3
	}
	return 0, false
}

// id is enough of the beginning of a set to tell its id.
func (s *sets) id(n []byte) int {
	kind, _ := s.kind(n)
	switch {
	case s.codec == "hevc" && kind == 1:
		return int(n[2] >> 4)
	case s.codec == "hevc" && kind == 2:
		return 0 // its id lies behind the levels of its layers; cameras have one
	case s.codec == "hevc":
		return golomb(n[2:])
	case kind == 2:
		return golomb(n[4:])
	}
	return golomb(n[1:])
}

// golomb reads an unsigned Exp-Golomb number of a set's id.
func golomb(b []byte) int {
	var bits uint64
	for i := range 8 {
		bits <<= 8
		if i < len(b) {
			bits |= uint64(b[i])
		}
	}
	zeros := 0
	for zeros < 16 && bits>>(63-zeros)&1 == 0 {
		zeros++
	}
	return int(bits>>(63-2*zeros)) - 1
}
