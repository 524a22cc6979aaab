package metrics

import (
	"math"
	"slices"
	"sync/atomic"
)

// AgeBuckets are upper bounds for ages of frames, in seconds: dense around
// what a healthy appliance does, 20 to 300 ms.
func AgeBuckets() []float64 {
	return []float64{0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.5, 1, 2, 5}
}

// RunBuckets are upper bounds for the time of one inference run, in seconds.
func RunBuckets() []float64 {
	return []float64{0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.25, 0.5, 1, 5}
}

// BatchBuckets are upper bounds for the number of pictures in one run.
func BatchBuckets() []float64 { return []float64{1, 2, 4, 8, 16, 32, 64} }

// Histogram counts values by bucket since it was made. Observe takes no lock
// and allocates nothing. Safe for concurrent use.
type Histogram struct {
	bounds []float64       // upper, inclusive, ascending
	counts []atomic.Uint64 // one a bound, and one for what is above the last
	sum    atomic.Uint64   // bits of a float64
}

// NewHistogram returns an empty histogram with the given upper bounds, which
// are sorted; infinity needs no bound.
func NewHistogram(bounds []float64) *Histogram {
	b := slices.Clone(bounds)
	slices.Sort(b)
	b = slices.Compact(b)
	return &Histogram{bounds: b, counts: make([]atomic.Uint64, len(b)+1)}
}

// Observe counts v. NaN and infinities are ignored: one would spoil the sum
// for ever.
func (h *Histogram) Observe(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// Counts is a copy of a histogram.
type Counts struct {
	Bounds     []float64 // upper, inclusive, ascending; read-only
	Cumulative []uint64  // values at or below each bound
	Count      uint64    // all values
	Sum        float64
}

// Snapshot returns a copy. Values that are observed meanwhile may be in the
// counts and not yet in the sum.
func (h *Histogram) Snapshot() Counts {
	c := Counts{Bounds: h.bounds, Cumulative: make([]uint64, len(h.bounds))}
	for i := range h.counts {
		c.Count += h.counts[i].Load()
		if i < len(c.Cumulative) {
			c.Cumulative[i] = c.Count
		}
	}
	c.Sum = math.Float64frombits(h.sum.Load())
	return c
}

// Mean returns the mean of all values, 0 without one.
func (c Counts) Mean() float64 {
	if c.Count == 0 {
		return 0
	}
	return c.Sum / float64(c.Count)
}
