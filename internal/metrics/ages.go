package metrics

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// ageWindow and ageSamples bound what percentiles are taken from: the last
	// 10 s, and of these the last 512 frames (a camera at 30 fps gives 300).
	ageWindow  = 10 * time.Second
	ageSamples = 512
)

// Percentiles of the ages in the window.
type Percentiles struct {
	P50, P95, P99 time.Duration
	N             int // ages that they are taken from
}

// Ages keeps the ages of one camera's frames at one stage: percentiles over
// the last seconds, and a histogram since start. Observe allocates nothing and
// holds a lock for two stores. Safe for concurrent use. One takes 8 KiB.
type Ages struct {
	hist *Histogram
	now  func() time.Time

	mu    sync.Mutex
	start time.Time // what at counts from
	ring  [ageSamples]sample
	next  int // where the next sample goes
	n     int // valid samples
}

// sample is one age and when it was observed.
type sample struct {
	at  time.Duration
	age time.Duration
}

// NewAges returns an Ages without samples.
func NewAges() *Ages { return newAges(time.Now) }

func newAges(now func() time.Time) *Ages {
	return &Ages{hist: NewHistogram(AgeBuckets()), now: now, start: now()}
}

// Observe adds the age of one frame. A negative one (the clocks that it was
// taken from disagree) counts as 0.
func (a *Ages) Observe(age time.Duration) {
	age = max(age, 0)
	a.hist.Observe(age.Seconds())
	at := a.now().Sub(a.start)
	a.mu.Lock()
	a.ring[a.next] = sample{at: at, age: age}
	a.next = (a.next + 1) % ageSamples
	a.n = min(a.n+1, ageSamples)
	a.mu.Unlock()
}

// Percentiles returns the percentiles (nearest rank) of the window. It is
// false when nothing was observed in it: an old number is not shown as a new one.
func (a *Ages) Percentiles() (Percentiles, bool) {
	var buf [ageSamples]time.Duration
	ages := buf[:0]
	since := a.now().Sub(a.start) - ageWindow
	a.mu.Lock()
	for i := 1; i <= a.n; i++ { // newest first
		s := a.ring[(a.next-i+ageSamples)%ageSamples]
		if s.at < since {
			break
		}
		ages = append(ages, s.age)
	}
	a.mu.Unlock()
	if len(ages) == 0 {
		return Percentiles{}, false
	}
	slices.Sort(ages)
	return Percentiles{P50: rank(ages, 0.50), P95: rank(ages, 0.95), P99: rank(ages, 0.99), N: len(ages)}, true
}

// rank returns the smallest value that at least the share q of the sorted
// values do not exceed.
func rank(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}

// Rate returns how many frames a second were observed over the window, or
// since the Ages was made where that is shorter.
func (a *Ages) Rate() float64 {
	now := a.now().Sub(a.start)
	a.mu.Lock()
	defer a.mu.Unlock()
	count, oldest := 0, now
	for i := 1; i <= a.n; i++ {
		s := a.ring[(a.next-i+ageSamples)%ageSamples]
		if s.at < now-ageWindow {
			break
		}
		count, oldest = count+1, s.at
	}
	span := min(now, ageWindow)
	if a.n == ageSamples && count == ageSamples {
		span = now - oldest // the ring is shorter than the window
	}
	if count == 0 || span <= 0 {
		return 0
	}
	return float64(count) / span.Seconds()
}

// Histogram returns the histogram since start, in seconds.
func (a *Ages) Histogram() Counts { return a.hist.Snapshot() }
