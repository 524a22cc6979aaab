package schedule

import (
	"math"
	"sync"
	"time"
)

const (
	// maxBuckets is enough for batches of 256.
	maxBuckets = 9
	// smooth is the part of a new measurement in the running estimate.
	smooth = 1.0 / 8
	// outlier bounds one measurement, in estimates: a hiccup of the machine must
	// not make every batch that follows wait, while a lasting slow-down is
	// followed within a few batches.
	outlier = 2
	// measureEvery is which batch is run in a size that seems dear, to see whether it
	// still is.
	measureEvery = 16
	// restsAfter is how many batches of other sizes make one that is not run any more.
	restsAfter = 8
)

// Times keeps how long the engine takes for a batch. Engines run batches of a few
// sizes (1, 2, 4 and so on up to the largest), so there is one running estimate
// for each of those buckets. It is safe for concurrent use.
type Times struct {
	most int

	mu       sync.Mutex
	estimate [maxBuckets]time.Duration // guarded by mu; by bucket, 0 = not known
	ran      [maxBuckets]int           // guarded by mu; the last batch of each, by number
	batches  int                       // guarded by mu
	left     int                       // guarded by mu; how often Fill would have left some
}

// NewTimes is for batches of up to most pictures.
func NewTimes(most int) *Times { return &Times{most: max(1, most)} }

// bucket is the index of the smallest bucket that holds n.
func (t *Times) bucket(n int) int {
	k := 0
	for k+1 < maxBuckets && t.size(k) < n && t.size(k) < t.most {
		k++
	}
	return k
}

func (t *Times) size(k int) int { return min(1<<k, t.most) }

// Observe notes that a batch of n took that long.
func (t *Times) Observe(n int, took time.Duration) {
	if took <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.bucket(n)
	t.batches++
	t.ran[k] = t.batches
	e := &t.estimate[k]
	if *e == 0 {
		*e = took
		return
	}
	before := *e
	took = min(took, outlier**e)
	*e += time.Duration(smooth * float64(took-*e))
	t.followLocked(k, float64(*e)/float64(before))
}

// followLocked has larger sizes that are not run any more follow bucket k, whose estimate
// has changed by a factor: it is the engine that has got slower or faster.
func (t *Times) followLocked(k int, factor float64) {
	for k++; k < maxBuckets && t.batches-t.ran[k] > restsAfter; k++ {
		t.estimate[k] = time.Duration(factor * float64(t.estimate[k]))
	}
}

// ObserveAtMost notes that a batch of n took no longer than that. How long it
// really took is not known, because nobody waited for its end.
func (t *Times) ObserveAtMost(n int, bound time.Duration) {
	t.mu.Lock()
	known := t.estimate[t.bucket(n)]
	t.mu.Unlock()
	if known == 0 || bound < known {
		t.Observe(n, bound)
	}
}

// Of predicts how long a batch of n takes, 0 where nothing is known. A bucket that
// never ran is judged by its neighbours: it takes no less than a smaller one, and
// no more than its pictures would one by one at the rate of that one.
func (t *Times) Of(n int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.bucket(n)
	if t.estimate[k] > 0 {
		return t.estimate[k]
	}
	for above := k + 1; above < maxBuckets; above++ {
		if t.estimate[above] > 0 {
			return t.estimate[above]
		}
	}
	for below := k - 1; below >= 0; below-- {
		if t.estimate[below] > 0 {
			return t.estimate[below] * time.Duration(t.size(k)) / time.Duration(t.size(below))
		}
	}
	return 0
}

// Fill is how many of n pictures that wait the next batch should take. The engine runs
// any number as the next larger of its batch sizes: five may take it as long as eight.
// Where a picture would cost less in the next smaller batch, which is full then, the
// others are left to the batch after that; often they are done no later there. One batch
// in some is filled all the same, as a size that is not run is not measured either.
func (t *Times) Fill(n int) int {
	k := t.bucket(n)
	n = min(n, t.size(k))
	if k == 0 || n == t.size(k) {
		return n
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	full, larger, smaller := t.size(k-1), t.estimate[k], t.estimate[k-1]
	if smaller == 0 || larger/time.Duration(n) <= smaller/time.Duration(full) {
		return n
	}
	if t.left++; t.left%measureEvery == 0 {
		return n
	}
	return full
}

// PerPicture is what a picture costs in the bucket that is best at it, of those
// that have run; 0 before the first.
func (t *Times) PerPicture() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	best := time.Duration(math.MaxInt64)
	for k, e := range t.estimate {
		if e > 0 {
			best = min(best, e/time.Duration(t.size(k)))
		}
	}
	if best == math.MaxInt64 {
		return 0
	}
	return best
}
