package pipeline

import (
	"sync"
	"time"
)

// rateSeconds is the window of a rate, short enough to follow a camera that
// stops and long enough to be steady at 1 picture a second.
const rateSeconds = 5

// rate counts events in the last whole seconds. It is safe for concurrent use.
type rate struct {
	mu      sync.Mutex
	start   time.Time
	second  int64 // since start
	buckets [rateSeconds + 1]int
}

func newRate(start time.Time) *rate { return &rate{start: start} }

// add counts one event at t.
func (r *rate) add(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advanceLocked(t)
	r.buckets[r.second%int64(len(r.buckets))]++
}

// perSecond is the mean over the window's whole seconds before t; the second
// under way does not count, so that the figure does not saw.
func (r *rate) perSecond(t time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advanceLocked(t)
	if r.second == 0 {
		return 0
	}
	n := min(r.second, rateSeconds)
	sum := 0
	for i := int64(1); i <= n; i++ {
		sum += r.buckets[(r.second-i)%int64(len(r.buckets))]
	}
	return float64(sum) / float64(n)
}

func (r *rate) advanceLocked(t time.Time) {
	now := int64(t.Sub(r.start) / time.Second)
	for ; r.second < now; r.second++ {
		if now-r.second > int64(len(r.buckets)) {
			r.second = now - int64(len(r.buckets))
		}
		r.buckets[(r.second+1)%int64(len(r.buckets))] = 0
	}
}
