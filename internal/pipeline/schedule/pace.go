package schedule

import (
	"math"
	"time"
)

// catchUp is how far, in intervals, a pace may fall behind and still make up for
// it: a camera's jitter must not cost rate. Beyond it there was a gap, and a burst
// after a gap is no use to anybody.
const catchUp = 4

// golden spreads any number of phases evenly over an interval.
const golden = math.Phi - 1

// Phase is the phase for the nth of any number of cameras, in intervals.
func Phase(n int) float64 {
	_, part := math.Modf(float64(n) * golden)
	return part
}

// Pace picks the pictures that are due at a rate. It counts along a fixed grid and
// not from one picture to the next, so that the mean is the rate exactly however
// the pictures jitter. Grids of cameras with different phases do not coincide even
// where all start, or change their rate, at the same moment: what is due is then
// spread over the interval, and waits are short. The zero value takes every
// picture.
type Pace struct {
	phase    float64
	interval time.Duration // 0 = every picture
	next     time.Time     // of the grid; zero before the first picture
	apart    bool          // the grid has been moved by the phase
	last     time.Time     // arrival of the picture before
}

// NewPace makes a pace of fps pictures a second; 0 means every picture. phase is
// between 0 and 1.
func NewPace(fps, phase float64) Pace { return Pace{phase: phase, interval: intervalOf(fps)} }

func intervalOf(fps float64) time.Duration {
	if fps <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / fps)
}

// SetRate changes the rate from the picture on that arrived at t and is to be
// judged next.
func (p *Pace) SetRate(fps float64, t time.Time) {
	interval := intervalOf(fps)
	if interval == p.interval {
		return
	}
	switch {
	case interval == 0 || p.interval == 0:
		p.next = time.Time{}
		if interval > 0 {
			p.next = t.Add(p.part(interval))
		}
	case p.next.IsZero():
	case p.apart && interval < 2*p.interval:
		// What has passed of the interval stays passed: grids that are apart stay so.
		part := float64(p.next.Sub(t)) / float64(p.interval)
		p.next = t.Add(time.Duration(part * float64(interval)))
	default:
		// All pictures may have been due until now: then all cameras would take the
		// next one, at once.
		p.next = t.Add(p.part(interval))
	}
	p.apart = interval > p.interval && p.interval > 0 || p.apart && interval > 0
	p.interval = interval
}

// part is the phase in time, from the earliest moment at which a picture is due.
func (p *Pace) part(interval time.Duration) time.Duration {
	return time.Duration((0.5 + p.phase) * float64(interval))
}

// Due says whether the picture that arrived at t is taken. A picture may come up
// to half an interval early: cameras jitter, and waiting for the next one would
// halve the rate when the camera's rate equals the asked one.
func (p *Pace) Due(t time.Time) bool { return p.DueUnless(t, func() bool { return false }) }

// DueUnless is Due for an engine that may be crowded: a picture that comes before its
// time is then left to the next one, which will be as young, if that is to come early
// enough. So pictures meet a free engine wherever the camera gives more than are taken,
// and the mean is still the rate.
func (p *Pace) DueUnless(t time.Time, crowded func() bool) bool {
	if p.interval == 0 {
		return true
	}
	following := t.Add(t.Sub(p.last))
	p.last = t
	if p.next.IsZero() {
		p.next = t.Add(p.part(p.interval))
		return true
	}
	if behind := t.Sub(p.next); behind > catchUp*p.interval {
		// After a gap it goes on along its grid, and makes up for one picture: a camera
		// that gives less than is asked of it may be held up and send two at once.
		p.next = p.next.Add(behind - behind%p.interval - p.interval)
	}
	if t.Before(p.next.Add(-p.interval / 2)) {
		return false
	}
	if t.Before(p.next) && following.Before(p.next.Add(p.interval/2)) && crowded() {
		return false
	}
	p.next = p.next.Add(p.interval)
	return true
}
