package capture

import "time"

// The bounds of what counts as late.
const (
	// freezeLeast is the shortest silence of a stream that is a freeze.
	freezeLeast = 500 * time.Millisecond
	// lateLeast is the least lateness that is told: below it is the network's
	// usual jitter.
	lateLeast = 200 * time.Millisecond
	// lateMost bounds a freeze that the stream makes up for; more is a jump of
	// its clock.
	lateMost = time.Minute
	// latePatience is how long a stream that was late may not catch up before it
	// is taken as it is: its clock may have been wrong.
	latePatience = 2 * time.Second
)

// lateness tells how late access units come. After a freeze of the network or
// the camera, what was held up comes at once: those pictures are as old as the
// freeze was long, though they arrive now. It is used by one goroutine.
type lateness struct {
	known   bool
	arrived time.Time     // of the unit before
	newest  time.Duration // largest PTS
	debt    time.Duration // how late the stream is
	most    time.Duration // that debt has been since the freeze, at most
	paid    time.Time     // when debt was at its least
	least   time.Duration
}

// of gives how late a unit is; 0 for one in time.
func (l *lateness) of(pts time.Duration, arrived time.Time) time.Duration {
	gap, step := arrived.Sub(l.arrived), pts-l.newest
	first := !l.known
	l.known, l.arrived = true, arrived
	// A clock that was set: backwards beyond what B-frames do, or far ahead.
	if first || step < -time.Second || step > gap+l.debt+lateMost/2 {
		l.newest, l.debt, l.most = pts, 0, 0
		return 0
	}
	// A unit that does not come behind all others (a B-frame) is not new time.
	step = max(step, 0)
	l.newest = max(l.newest, pts)
	l.debt += gap - step
	if gap >= freezeLeast && l.debt > l.most && l.debt < lateMost {
		l.most, l.least, l.paid = l.debt, l.debt, arrived // a freeze
	}
	l.debt = max(0, min(l.debt, l.most))
	if l.debt < l.least {
		l.least, l.paid = l.debt, arrived
	}
	if l.debt < lateLeast || arrived.Sub(l.paid) > latePatience {
		if l.debt == 0 || arrived.Sub(l.paid) > latePatience {
			l.debt, l.most = 0, 0
		}
		return 0
	}
	return l.debt
}
