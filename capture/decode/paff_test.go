//go:build cgo

package decode_test

import (
	"math/bits"

	"edgecam/internal/testkit"
)

// fieldClip is H.264 in pairs of fields (PAFF), which no encoder here makes: all
// macroblocks are uncompressed, so every sample is known. Each unit holds one
// field. width is a multiple of 16, height of 32; value must not be below 16.
func fieldClip(width, height, pairs int, value func(pair, plane, x, y int) byte) testkit.Clip {
	c := testkit.Clip{Codec: "h264"}
	for pair := range pairs {
		for bottom := range 2 {
			unit := [][]byte{fieldSlice(width, height, pair, bottom, value)}
			if bottom == 0 {
				unit = append([][]byte{fieldSPS(width, height), fieldPPS()}, unit...)
			}
			c.Units = append(c.Units, unit)
		}
	}
	return c
}

func fieldSPS(width, height int) []byte {
	w := &golombWriter{}
	w.u(8, 77) // Main
	w.u(8, 0)
	w.u(8, 30)
	w.ue(0, 0, 0, 4, 1) // id, frame numbers of 4 bits, order counts of 8, one reference
	w.u(1, 0)
	w.ue(width/16-1, height/32-1)
	w.u(1, 0) // fields are allowed
	w.u(1, 0) // not within a frame
	w.u(1, 1)
	w.u(2, 0)
	return w.nal(0x67)
}

func fieldPPS() []byte {
	w := &golombWriter{}
	w.ue(0, 0)
	w.u(2, 0) // CAVLC
	w.ue(0, 0, 0)
	w.u(3, 0)
	w.ue(0, 0, 0)
	w.u(3, 4) // the slice says how to deblock
	return w.nal(0x68)
}

func fieldSlice(width, height, pair, bottom int, value func(pair, plane, x, y int) byte) []byte {
	w := &golombWriter{}
	w.ue(0, 7, 0) // first macroblock, I, PPS
	w.u(4, 0)     // frame number
	w.u(1, 1)     // a field
	w.u(1, bottom)
	if bottom == 0 {
		w.ue(pair % 2) // IDR number
	}
	w.u(8, bottom) // order count
	w.u(2-bottom, 0)
	w.ue(0, 1) // no change of QP, no deblocking
	for my := range height / 32 {
		for mx := range width / 16 {
			w.ue(25) // I_PCM
			w.align()
			for plane, side := range []int{16, 8, 8} {
				for y := range side {
					for x := range side {
						w.u(8, int(value(pair, plane, mx*side+x, 2*(my*side+y)+bottom)))
					}
				}
			}
		}
	}
	if bottom == 1 {
		return w.nal(0x61)
	}
	return w.nal(0x65)
}

// golombWriter writes the bits of NAL units.
type golombWriter struct {
	out  []byte
	free int // bits of the last byte
}

func (w *golombWriter) u(n, v int) {
	for i := n - 1; i >= 0; i-- {
		if w.free == 0 {
			w.out, w.free = append(w.out, 0), 8
		}
		w.free--
		w.out[len(w.out)-1] |= byte(v>>i&1) << w.free
	}
}

func (w *golombWriter) ue(values ...int) {
	for _, v := range values {
		w.u(2*bits.Len(uint(v+1))-1, v+1)
	}
}

func (w *golombWriter) align() { w.free = 0 }

// nal ends the unit and keeps start codes out of it.
func (w *golombWriter) nal(head byte) []byte {
	w.u(1, 1)
	out, zeros := []byte{head}, 0
	for _, b := range w.out {
		if zeros >= 2 && b <= 3 {
			out, zeros = append(out, 3), 0
		}
		if out = append(out, b); b == 0 {
			zeros++
		} else {
			zeros = 0
		}
	}
	return out
}
