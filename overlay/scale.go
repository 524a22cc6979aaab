package overlay

import (
	"encoding/binary"
	"math"
)

// reach is the run of samples that output sample i covers, of step samples each.
// An output beyond the last of count samples shows the last. from and to are
// its exact ends.
func reach(i, count int, step float64) (at, n int, from, to float64) {
	from = min(float64(i)*step, float64(count-1))
	to = min(max(float64(i+1)*step, from), float64(count))
	const dust = 1e-6 // of rounding, not worth a sample
	at = int(from + dust)
	n = max(int(math.Ceil(to-dust))-at, 1)
	return at, n, from, to
}

// band is a run of rows and the weight of each. Weights add up to 1<<bandBits,
// so that the four 16-bit lanes of a word can hold sums of rows.
type band struct {
	at      int
	weights []uint16
}

const bandBits = 8

func bands(n, count int, step float64) []band {
	out := make([]band, n)
	for i := range out {
		at, rows, from, to := reach(i, count, step)
		w := make([]uint16, rows)
		sum := uint16(0) // the sums are rounded, so that the last is exact
		for k := range w {
			covered := (min(float64(at+k+1), to) - from) / (to - from)
			next := uint16(covered*(1<<bandBits) + 0.5)
			w[k], sum = next-sum, next
		}
		out[i] = band{at, w}
	}
	return out
}

// span is a run of columns: the inner ones have one weight, the first and last
// what is covered of them. Weights add up to 1<<spanBits.
type span struct {
	at, n              uint32
	first, inner, last uint32
}

const spanBits = 16

func spans(n, count int, step float64) []span {
	out := make([]span, n)
	for i := range out {
		at, cols, from, to := reach(i, count, step)
		s := span{at: uint32(at), n: uint32(cols), first: 1 << spanBits}
		if cols > 1 {
			unit := (1 << spanBits) / (to - from)
			s.inner = uint32(unit)
			s.first = uint32(unit*(float64(at+1)-from) + 0.5)
			s.last = 1<<spanBits - s.first - s.inner*uint32(cols-2)
		}
		out[i] = s
	}
	return out
}

// scaler averages a component down to a plane of the canvas.
type scaler struct {
	key  scaleKey
	rows []band
	cols []span
	sums []uint64 // even and odd samples of eight, in turn
	mean []byte
}

type scaleKey struct {
	width, height, cols, rows int
	stepX, stepY              float64
}

// set makes the tables.
func (s *scaler) set(k scaleKey) {
	if s.key == k {
		return
	}
	words := (k.width + 7) / 8
	*s = scaler{
		key:  k,
		rows: bands(k.rows, k.height, k.stepY),
		cols: spans(k.cols, k.width, k.stepX),
		sums: make([]uint64, 2*words),
		mean: make([]byte, 8*words),
	}
}

// row gives output row j. It is valid until the next call and may lie in the
// frame: do not write it. dst is room for it.
func (s *scaler) row(dst []byte, c *component, j int) []byte {
	in := s.column(c, s.rows[j])
	if s.key.stepX == 1 && len(in) >= len(dst) {
		return in[:len(dst)]
	}
	averageColumns(dst, in, s.cols, s.key.stepX)
	return dst
}

// column averages the rows of a band.
func (s *scaler) column(c *component, v band) []byte {
	if len(v.weights) == 1 {
		return c.row(v.at)
	}
	clear(s.sums)
	for i, w := range v.weights {
		addRow(s.sums, s.mean, c.row(v.at+i), uint64(w))
	}
	for i := range len(s.sums) / 2 {
		const half, low = 0x0080008000800080, 0x00ff00ff00ff00ff
		even, odd := s.sums[2*i]+half, s.sums[2*i+1]+half
		binary.LittleEndian.PutUint64(s.mean[8*i:], even>>8&low|odd&^uint64(low))
	}
	return s.mean[:c.width]
}

// addRow adds a row times a weight to sums, eight samples at a time. tail is room
// for the last samples.
func addRow(sums []uint64, tail, row []byte, w uint64) {
	const low = 0x00ff00ff00ff00ff
	for len(row) >= 8 && len(sums) >= 2 {
		v := binary.LittleEndian.Uint64(row)
		sums[0] += v & low * w
		sums[1] += v >> 8 & low * w
		row, sums = row[8:], sums[2:]
	}
	if len(row) > 0 {
		clear(tail[:8])
		copy(tail, row)
		v := binary.LittleEndian.Uint64(tail)
		sums[0] += v & low * w
		sums[1] += v >> 8 & low * w
	}
}

// averageColumns averages the samples of each span.
func averageColumns(dst, src []byte, cols []span, step float64) {
	if step == 2 && len(src) == 2*len(dst) {
		for i := range dst {
			dst[i] = byte((uint(src[2*i]) + uint(src[2*i+1]) + 1) / 2)
		}
		return
	}
	cols = cols[:len(dst)]
	for i := range dst {
		v := &cols[i]
		part := src[v.at:][:v.n]
		sum := uint32(part[0]) * v.first
		if last := len(part) - 1; last > 0 {
			sum += uint32(part[last]) * v.last
			for _, p := range part[1:last] {
				sum += uint32(p) * v.inner
			}
		}
		dst[i] = byte((sum + 1<<(spanBits-1)) >> spanBits)
	}
}
