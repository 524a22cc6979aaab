package schedule

import (
	"math"
	"time"
)

const (
	tailLeast  = 100 * time.Microsecond
	tailGrowth = 1.05 // width of a step: as exact as the governor's bounds need
	tailSteps  = 256  // up to 25 s
)

// Tail counts durations to tell their percentiles to 5 %, without keeping them.
type Tail struct {
	n     int
	steps [tailSteps]int32
}

// Add counts one.
func (t *Tail) Add(d time.Duration) {
	k := 0
	if d > tailLeast {
		k = min(tailSteps-1, 1+int(math.Log(float64(d)/float64(tailLeast))/math.Log(tailGrowth)))
	}
	t.steps[k]++
	t.n++
}

// Len is how many were counted.
func (t *Tail) Len() int { return t.n }

// Quantile is the least duration that at least the part q of them do not exceed, 0
// without any.
func (t *Tail) Quantile(q float64) time.Duration {
	if t.n == 0 {
		return 0
	}
	want, seen := int32(math.Ceil(q*float64(t.n))), int32(0)
	for k, n := range t.steps {
		if seen += n; seen >= want {
			return time.Duration(float64(tailLeast) * math.Pow(tailGrowth, float64(k)))
		}
	}
	return 0
}

// Reset forgets all.
func (t *Tail) Reset() { *t = Tail{} }
