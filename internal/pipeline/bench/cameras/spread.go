package cameras

import (
	"math"
	"sync/atomic"
	"time"
)

// The buckets of a spread: each 1 % wider than the one before, from 10 µs to
// over 100 s.
const (
	spreadFrom    = 10 * time.Microsecond
	spreadStep    = 1.01
	spreadBuckets = 1640
)

// spread counts times by bucket, so that percentiles over any number of them are
// right to 1 %. add is for many goroutines.
type spread struct {
	counts [spreadBuckets]atomic.Uint64
}

func (s *spread) add(d time.Duration) {
	i := 0
	if d > spreadFrom {
		i = int(math.Log(float64(d)/float64(spreadFrom))/math.Log(spreadStep)) + 1
	}
	s.counts[min(i, spreadBuckets-1)].Add(1)
}

func (s *spread) reset() {
	for i := range s.counts {
		s.counts[i].Store(0)
	}
}

// Percentiles of a stage's age, in milliseconds.
type Percentiles struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

func (s *spread) percentiles() Percentiles {
	var counts [spreadBuckets]uint64
	total := uint64(0)
	for i := range s.counts {
		counts[i] = s.counts[i].Load()
		total += counts[i]
	}
	at := func(share float64) float64 {
		want := max(uint64(math.Ceil(share*float64(total))), 1)
		for i, n := range counts {
			if want <= n {
				return bound(i)
			}
			want -= n
		}
		return 0 // nothing was counted
	}
	return Percentiles{P50: at(0.50), P95: at(0.95), P99: at(0.99)}
}

// bound is the upper bound of a bucket, in milliseconds.
func bound(i int) float64 {
	return float64(spreadFrom) / float64(time.Millisecond) * math.Pow(spreadStep, float64(i))
}
