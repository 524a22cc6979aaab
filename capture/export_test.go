package capture

import (
	"context"
	"time"
)

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

// SetDial makes a supervisor look at ports with dial.
func SetDial(o *Options, dial func(ctx context.Context, addr string) error) {
	o.Prober = NewProber()
	o.Prober.dial = dial
}

// SetWall gives a supervisor a wall clock.
func SetWall(o *Options, wall func() time.Time) { o.wall = wall }

// Late gives how late units are that arrive at the times, with PTS, both from
// an arbitrary zero.
func Late(start time.Time, arrivals, pts []time.Duration) []time.Duration {
	var l lateness
	var late []time.Duration
	for i := range arrivals {
		late = append(late, l.of(pts[i], start.Add(arrivals[i])))
	}
	return late
}

// SetProberDial makes a prober look at ports with dial.
func SetProberDial(p *Prober, dial func(ctx context.Context, addr string) error) { p.dial = dial }
