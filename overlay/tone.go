package overlay

import (
	"math"

	"edgecam/framepool"
)

// tone converts codes of a stream to those of JFIF. Luma follows chroma where the
// matrix changes: a colour that BT.709 calls bright is less so in BT.601.
type tone struct {
	key   toneKey
	plain bool // nothing to do
	cross bool // the matrix changes
	// luma gives Y by the code of the stream, moved by a chroma sample's shift;
	// index 256 is code 0.
	luma [1024]byte
	// cb and cr give what the two codes of a chroma sample add to the new ones and
	// to the shift, in 1/65536; the constant parts are in cb.
	cb, cr [256]part
	chroma [256]byte // for both if the matrix stays
}

type part struct{ cb, cr, shift int32 }

type toneKey struct {
	r framepool.Range
	m framepool.Matrix
}

// set makes the tables for a range and matrix.
func (t *tone) set(k toneKey, made bool) {
	if made && k == t.key {
		return
	}
	t.key = k
	black, ys, cs := 16.0, 255.0/219, 255.0/224
	if k.r == framepool.RangeFull {
		black, ys, cs = 0, 1, 1
	}
	for i := range t.luma {
		t.luma[i] = code((float64(i-256) - black) * ys)
	}
	for i := range t.chroma {
		t.chroma[i] = code((float64(i)-128)*cs + 128)
	}
	t.cross = k.m != framepool.MatrixBT601
	t.plain = !t.cross && k.r == framepool.RangeFull
	if !t.cross {
		return
	}
	m := toBT601(k.m)
	fixed := func(v float64) int32 { return int32(math.Round(v * 65536)) }
	for i := range 256 {
		c := (float64(i) - 128) * cs
		t.cb[i] = part{fixed(c*m.cbCb + 128.5), fixed(c*m.cbCr + 128.5), fixed(c*m.cbY/ys + 0.5)}
		t.cr[i] = part{fixed(c * m.crCb), fixed(c * m.crCr), fixed(c * m.crY / ys)}
	}
}

// cross says how the old Cb and Cr go into the new Y, Cb and Cr. Grey stays grey,
// so that Y goes into Y alone.
type cross struct{ cbY, crY, cbCb, crCb, cbCr, crCr float64 }

// toBT601 goes to RGB by a matrix of ITU-T H.273 table 4 and back by BT.601.
func toBT601(m framepool.Matrix) cross {
	kr, kb := 0.299, 0.114
	switch m {
	case framepool.MatrixBT709:
		kr, kb = 0.2126, 0.0722
	case framepool.MatrixBT2020:
		kr, kb = 0.2627, 0.0593
	}
	kg := 1 - kr - kb
	rv, bu := 2*(1-kr), 2*(1-kb)
	gu, gv := bu*kb/kg, rv*kr/kg
	c := cross{cbY: 0.114*bu - 0.587*gu, crY: 0.299*rv - 0.587*gv}
	c.cbCb, c.crCb = (bu-c.cbY)/1.772, -c.crY/1.772
	c.cbCr, c.crCr = -c.cbY/1.402, (rv-c.crY)/1.402
	return c
}

func code(v float64) byte { return byte(min(max(math.Round(v), 0), 255)) }

// lumaRow converts a row that no chroma shifts. dst may be src.
func (t *tone) lumaRow(dst, src []byte) {
	if t.plain {
		copy(dst, src)
		return
	}
	table := (*[256]byte)(t.luma[256:512])
	look(dst, src, table)
}

// shiftedRow converts a row whose pairs of samples are shifted. dst may be src.
func (t *tone) shiftedRow(dst, src []byte, shift []int16) {
	n := 2 * len(shift)
	dst, src = dst[:n], src[:n]
	for i, s := range shift {
		at := int(s) + 256
		dst[2*i] = t.luma[(int(src[2*i])+at)&1023]
		dst[2*i+1] = t.luma[(int(src[2*i+1])+at)&1023]
	}
}

// chromaRow converts a row of both components and, if the matrix changes, notes
// by how much its luma is shifted. cb and cr may be the sources.
func (t *tone) chromaRow(cb, cr, srcCb, srcCr []byte, shift []int16) {
	switch {
	case t.plain:
		copy(cb, srcCb)
		copy(cr, srcCr)
	case !t.cross:
		look(cb, srcCb, &t.chroma)
		look(cr, srcCr, &t.chroma)
	default:
		n := len(srcCb)
		cb, cr, srcCr, shift = cb[:n], cr[:n], srcCr[:n], shift[:n]
		for i, u := range srcCb {
			a, b := &t.cb[u], &t.cr[srcCr[i]]
			cb[i] = byte(min(max((a.cb+b.cb)>>16, 0), 255))
			cr[i] = byte(min(max((a.cr+b.cr)>>16, 0), 255))
			shift[i] = int16((a.shift + b.shift) >> 16)
		}
	}
}

func look(dst, src []byte, table *[256]byte) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = table[v]
	}
}
