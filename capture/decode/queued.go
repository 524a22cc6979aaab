package decode

import (
	"sync/atomic"
	"time"
)

// turnstile is the one that calls to the engine go through, nil without.
func (d *Decoder) turnstile() Turnstile {
	switch e := d.engines[0]; {
	case e.nvdec:
		return d.opts.Queue
	case e.blind():
		return nil
	}
	return d.opts.CPU
}

// queued adds up the time that a decoder has waited for turns. The times are
// monotonic, from base on.
type queued struct {
	base  time.Time
	total atomic.Int64 // nanoseconds, of the waits that are over
	since atomic.Int64 // when the wait that goes on began, 0 = none does
}

// enter passes a turnstile.
func (q *queued) enter(t Turnstile, turn Turn, lost <-chan struct{}) (leave func()) {
	began := max(time.Since(q.base), 1)
	q.since.Store(int64(began))
	leave = t.Enter(turn, lost)
	q.since.Store(0)
	q.total.Add(int64(time.Since(q.base) - began))
	return leave
}

// Queued implements capture.Patient. It may be called from any goroutine.
func (d *Decoder) Queued() time.Duration {
	total := time.Duration(d.queued.total.Load())
	if since := d.queued.since.Load(); since > 0 {
		total += time.Since(d.queued.base) - time.Duration(since)
	}
	return total
}
