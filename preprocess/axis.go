package preprocess

import "math"

// Interpolation weights are fractions of 1<<weightBits. With 11 bits (what
// OpenCV takes for 8-bit pictures) a 10-bit sample weighted in both directions
// still fits 32 bits: 1023·2¹¹·2¹¹ < 2³², and positions are off by no more than
// 1/4096 of a sample.
const (
	weightBits = 11
	weightOne  = 1 << weightBits
)

// tap is the pair of samples that one output sample lies between.
type tap struct {
	at uint32 // the first sample of the two, in units of the axis's step
	w  uint32 // weight of the second, 0..weightOne
}

// axis gives the taps of n output samples that cover extent input samples, of
// which count exist (extent is half a luma size for subsampled chroma, where
// count is rounded up). at is counted in step units. Where count allows, at+1 is
// a sample too, so that readers need no test at the border.
func axis(n, count int, extent float64, step int) []tap {
	taps := make([]tap, n)
	last := max(count-2, 0)
	for i := range taps {
		pos := (float64(i)+0.5)*extent/float64(n) - 0.5
		pos = min(max(pos, 0), float64(count-1))
		at := min(int(pos), last)
		taps[i] = tap{
			at: uint32(at * step),
			w:  uint32(math.Round((pos - float64(at)) * weightOne)),
		}
	}
	return taps
}
