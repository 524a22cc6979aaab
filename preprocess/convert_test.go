package preprocess

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
)

// testColors are all conversions that frames ask for, with their depths.
func testColors() map[string]struct {
	depth int
	color color
} {
	all := map[string]struct {
		depth int
		color color
	}{}
	for _, depth := range []int{8, 10} {
		for _, r := range []framepool.Range{framepool.RangeLimited, framepool.RangeFull} {
			for _, m := range []framepool.Matrix{framepool.MatrixBT601, framepool.MatrixBT709, framepool.MatrixBT2020} {
				all[fmt.Sprintf("%d bit, range %d, matrix %d", depth, r, m)] = struct {
					depth int
					color color
				}{depth, newColor(depth, r, m)}
			}
		}
	}
	return all
}

// weightedCode gives what a gather may give: the ends often, and what black, white
// and grey are.
func weightedCode(rng *rand.Rand, depth int) uint32 {
	const one = 1 << (2 * weightBits)
	top := uint32(1)<<depth - 1
	switch rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return top * one
	case 2:
		return uint32(rng.IntN(int(top)+1)) * one
	case 3:
		return 1<<(depth-1)*one + uint32(rng.IntN(3)) - 1
	case 4:
		return 1<<(depth-4)*one + uint32(rng.IntN(3)) - 1
	default:
		return uint32(rng.Uint64N(uint64(top)*one + 1))
	}
}

// differ gives the first value that has other bits, or -1.
func differ(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

func TestConvertVectorsGiveTheTwinsBits(t *testing.T) {
	if !haveVectors() {
		t.Skip("this build or processor has no vectors")
	}
	spec := infer.InputSpec{Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395}}
	norms, _ := newNorms(spec)
	none, _ := newNorms(infer.InputSpec{})
	for name, k := range testColors() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(k.depth)))
			for n := 0; n <= 200; n++ {
				nm := &norms
				if n%5 == 0 {
					nm = &none // values 0..255 as they are
				}
				v, twin := newConverter(k.color, nm, true), newConverter(k.color, nm, false)
				at := n % 9 // unaligned
				y, uv := make([]uint32, at+n)[at:], make([]uint64, at+n)[at:]
				for i := range y {
					y[i] = weightedCode(rng, k.depth)
					uv[i] = uint64(weightedCode(rng, k.depth)) | uint64(weightedCode(rng, k.depth))<<32
				}
				const mark = 12345
				var got, want [3][]float32
				for i := range got {
					got[i], want[i] = make([]float32, at+i+n+8), make([]float32, at+i+n+8)
					fill(got[i], mark)
					fill(want[i], mark)
				}
				check := func(what string) {
					t.Helper()
					for i := range got {
						if d := differ(got[i], want[i]); d >= 0 {
							t.Fatalf("%s of %d, channel %d, value %d: %v, want %v", what, n, i, d-at-i, got[i][d], want[i][d])
						}
					}
				}
				row := func(p *[3][]float32, i int) []float32 { return p[i][at+i:][:n] }
				v.convert(row(&got, 0), row(&got, 1), row(&got, 2), y, uv)
				twin.convert(row(&want, 0), row(&want, 1), row(&want, 2), y, uv)
				check("row")
				v.convertGray(row(&got, 0), row(&got, 1), row(&got, 2), y)
				twin.convertGray(row(&want, 0), row(&want, 1), row(&want, 2), y)
				check("grey row")
			}
		})
	}
}

func BenchmarkConvert(b *testing.B) {
	norms, _ := newNorms(infer.InputSpec{Std: [3]float32{57.375, 57.12, 58.395}})
	const n = 416
	rng := rand.New(rand.NewPCG(1, 2))
	y, uv := make([]uint32, n), make([]uint64, n)
	for i := range y {
		y[i] = weightedCode(rng, 8)
		uv[i] = uint64(weightedCode(rng, 8)) | uint64(weightedCode(rng, 8))<<32
	}
	out := make([]float32, 3*n)
	for _, vectors := range []bool{false, true} {
		k := newConverter(newColor(8, framepool.RangeLimited, framepool.MatrixBT709), &norms, vectors && haveVectors())
		b.Run(fmt.Sprintf("colour/vectors=%v", vectors), func(b *testing.B) {
			for b.Loop() {
				k.convert(out[:n], out[n:2*n], out[2*n:], y, uv)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
		})
		b.Run(fmt.Sprintf("grey/vectors=%v", vectors), func(b *testing.B) {
			for b.Loop() {
				k.convertGray(out[:n], out[n:2*n], out[2*n:], y)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
		})
	}
}
