package sysav

import (
	"errors"
	"fmt"
)

const (
	// maxPending is how many units a decoder may hold: 16 pictures in fields, and
	// the queues of hardware on top.
	maxPending = 64

	// maxStrange is how many pictures in a row may come with a time that no unit had.
	maxStrange = 8

	// wrap keeps our times below a million: NVIDIA's decoder carries them in the
	// microseconds of a timeval. They begin at 1, since 0 is V4L2's word for none.
	wrap = 999_999
)

// order knows which unit a picture belongs to. The units are numbered, and the
// number goes through the decoder as time.
type order struct {
	sent    int64
	pts     [4 * maxPending]int64 // of the last units, by number
	shown   int64                 // number of the last unit whose picture came
	strange int
}

// send numbers a unit.
func (o *order) send(pts int64) int64 {
	o.sent++
	o.pts[o.sent%int64(len(o.pts))] = pts
	return (o.sent-1)%wrap + 1
}

// come gives the unit's time for that of a picture.
func (o *order) come(mark int64) (pts int64, ok bool) {
	for n := o.sent; n > 0 && n > o.sent-int64(len(o.pts)); n-- {
		if (n-1)%wrap+1 == mark {
			o.shown, o.strange = max(o.shown, n), 0
			return o.pts[n%int64(len(o.pts))], true
		}
	}
	o.strange++
	return 0, false
}

// late says what is wrong with the order in which pictures come.
func (o *order) late() error {
	switch {
	case o.strange > maxStrange:
		return errors.New("its pictures carry times that no access unit had")
	case o.shown > 0 && o.sent-o.shown > maxPending:
		return fmt.Errorf("it is %d access units behind", o.sent-o.shown)
	}
	return nil
}
