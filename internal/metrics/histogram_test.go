package metrics_test

import (
	"math"
	"slices"
	"testing"

	"edgecam/internal/metrics"
)

func TestHistogram(t *testing.T) {
	cases := []struct {
		name    string
		observe []float64
		want    []uint64 // cumulative at 1, 2, 4
		count   uint64
		sum     float64
	}{
		{"empty", nil, []uint64{0, 0, 0}, 0, 0},
		{"a bound is inclusive", []float64{1, 2, 4}, []uint64{1, 2, 3}, 3, 7},
		{"between bounds", []float64{0.5, 1.5, 3}, []uint64{1, 2, 3}, 3, 5},
		{"above the last", []float64{9}, []uint64{0, 0, 0}, 1, 9},
		{"not numbers are ignored", []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1}, []uint64{1, 1, 1}, 1, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := metrics.NewHistogram([]float64{4, 1, 2, 2}) // sorted and made unique
			for _, v := range tc.observe {
				h.Observe(v)
			}
			got := h.Snapshot()
			if !slices.Equal(got.Bounds, []float64{1, 2, 4}) || !slices.Equal(got.Cumulative, tc.want) || got.Count != tc.count || got.Sum != tc.sum {
				t.Errorf("got %+v, want cumulative %v, count %d, sum %v", got, tc.want, tc.count, tc.sum)
			}
		})
	}
}

func TestMean(t *testing.T) {
	h := metrics.NewHistogram(metrics.BatchBuckets())
	if got := h.Snapshot().Mean(); got != 0 {
		t.Errorf("Mean of nothing = %v, want 0", got)
	}
	h.Observe(1)
	h.Observe(4)
	if got := h.Snapshot().Mean(); got != 2.5 {
		t.Errorf("Mean = %v, want 2.5", got)
	}
}

func TestHistogramObserveAllocatesNothing(t *testing.T) {
	h := metrics.NewHistogram(metrics.RunBuckets())
	if n := testing.AllocsPerRun(1000, func() { h.Observe(0.017) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
