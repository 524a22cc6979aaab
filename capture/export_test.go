package capture

import "time"

// SetJitter makes the waits of a supervisor exact: 0.5 is the middle.
func SetJitter(o *Options, jitter func() float64) { o.jitter = jitter }

// Waits gives the first n.
func Waits(minimum, maximum time.Duration, jitter float64, n int) []time.Duration {
	b := backoff{min: minimum, max: maximum, jitter: func() float64 { return jitter }}
	var waits []time.Duration
	for range n {
		waits = append(waits, b.next())
	}
	return waits
}

// RingAge is how far the decoder may be behind.
const RingAge = ringAge
