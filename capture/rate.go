package capture

import (
	"sync"
	"time"
)

// rateWindow is what Status.FPS looks back on.
const rateWindow = 3 * time.Second

// rate measures decoded frames a second. It may be used concurrently.
type rate struct {
	mu    sync.Mutex
	times [256]time.Time // ring; 3 s of 60 frames a second and some
	next  int
	n     int
}

func (r *rate) add(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[r.next] = now
	r.next = (r.next + 1) % len(r.times)
	r.n = min(r.n+1, len(r.times))
}

// fps counts the intervals between the frames of the window; a stream that has
// stopped falls to 0.
func (r *rate) fps(now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first, last time.Time
	count := 0
	for i := 1; i <= r.n; i++ {
		t := r.times[(r.next-i+len(r.times))%len(r.times)]
		if now.Sub(t) > rateWindow {
			break
		}
		if count == 0 {
			last = t
		}
		first = t
		count++
	}
	if count < 2 {
		return 0
	}
	// The time since the last frame counts once it is longer than the frames
	// were apart: a stopped stream is seen to slow down.
	span := last.Sub(first)
	if gap := span / time.Duration(count-1); now.Sub(last) > 2*gap {
		span = now.Sub(first)
	}
	if span <= 0 {
		return 0
	}
	return float64(count-1) / span.Seconds()
}

func (r *rate) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n = 0
}
