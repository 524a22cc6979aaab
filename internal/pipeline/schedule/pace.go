package schedule

import "time"

// catchUp is how far, in intervals, a pace may fall behind and still make up for
// it: a camera's jitter must not cost rate. Beyond it there was a gap, and a burst
// after a gap is no use to anybody.
const catchUp = 4

// Pace picks the pictures that are due at a rate. It counts along a fixed grid and
// not from one picture to the next, so that the mean is the rate exactly however
// the pictures jitter. The zero value takes every picture.
type Pace struct {
	interval time.Duration // 0 = every picture
	next     time.Time     // of the grid; zero before the first picture
}

// NewPace makes a pace of fps pictures a second; 0 means every picture.
func NewPace(fps float64) Pace {
	var p Pace
	p.SetRate(fps)
	return p
}

// SetRate changes the rate from the next picture on. What has passed of the
// interval under way counts.
func (p *Pace) SetRate(fps float64) {
	var interval time.Duration
	if fps > 0 {
		interval = time.Duration(float64(time.Second) / fps)
	}
	if interval == p.interval {
		return
	}
	if !p.next.IsZero() && p.interval > 0 && interval > 0 {
		last := p.next.Add(-p.interval)
		p.next = last.Add(interval)
	} else {
		p.next = time.Time{}
	}
	p.interval = interval
}

// Due says whether the picture that arrived at t is taken. A picture may come up
// to half an interval early: cameras jitter, and waiting for the next one would
// halve the rate when the camera's rate equals the asked one.
func (p *Pace) Due(t time.Time) bool {
	if p.interval == 0 {
		return true
	}
	if p.next.IsZero() || t.Sub(p.next) > catchUp*p.interval {
		p.next = t.Add(p.interval) // the first picture, or one after a gap
		return true
	}
	if t.Before(p.next.Add(-p.interval / 2)) {
		return false
	}
	p.next = p.next.Add(p.interval)
	return true
}
