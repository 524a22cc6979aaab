package infer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestScanAgreesWithComparisons compares scan with plain comparisons over
// every kind of float and row length.
func TestScanAgreesWithComparisons(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	special := []float32{
		0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, 1e-38, 0.01, 0.45, math.Nextafter32(0.45, 0), math.Nextafter32(0.45, 1),
		1, math.Nextafter32(1, 2), 2, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), -0.1, -1, -math.MaxFloat32,
		math.Float32frombits(0x7fffffff), math.Float32frombits(0xffffffff), math.Float32frombits(0x80000001), math.Float32frombits(0xffc00000),
	}
	for _, threshold := range []float32{minThreshold, 0.45, 1, math.Nextafter32(1, 2)} {
		for n := range 200 {
			for range 50 {
				row := make([]float32, n+n%5)[n%5:] // unaligned
				for i := range row {
					row[i] = rng.Float32() * threshold * 0.999
				}
				if n > 0 && rng.IntN(3) > 0 {
					row[rng.IntN(n)] = special[rng.IntN(len(special))]
				}
				want, seen := false, uint32(0)
				for _, v := range row {
					b := math.Float32bits(v)
					seen |= b
					// A negative zero may hit: collect looks at it again.
					want = want || !(v < threshold) || b>>31 == 1
				}
				if hit, any := scan(row, math.Float32bits(threshold)); hit != want || any != seen {
					t.Fatalf("scan(%v, %v) = %v, %#x; want %v, %#x", row, threshold, hit, any, want, seen)
				}
			}
		}
	}
}
