package pipeline

import "time"

// pace picks the pictures that are due at a rate, so that the average is the
// rate exactly and no picture is taken twice. It is used by one goroutine.
type pace struct {
	interval time.Duration // 0 = every picture
	next     time.Time
}

// newPace makes a pace of fps pictures a second; 0 means every picture.
func newPace(fps float64) pace {
	if fps <= 0 {
		return pace{}
	}
	return pace{interval: time.Duration(float64(time.Second) / fps)}
}

// due says whether the picture that arrived at t is taken. A picture may come
// up to half an interval early: cameras jitter, and waiting for the next one
// would halve the rate when the camera's rate equals the asked one.
func (p *pace) due(t time.Time) bool {
	if p.interval == 0 {
		return true
	}
	if p.next.IsZero() || t.Sub(p.next) > 4*p.interval {
		p.next = t.Add(p.interval) // first picture, or back after a gap: no catching up
		return true
	}
	if t.Before(p.next.Add(-p.interval / 2)) {
		return false
	}
	p.next = p.next.Add(p.interval)
	return true
}
