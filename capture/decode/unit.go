package decode

import (
	"time"

	"edgecam/capture"
)

// unit is what must be known of an access unit when its picture comes out.
type unit struct {
	key          int64 // PTS that libavcodec carries along
	received     time.Time
	capturedAt   time.Time
	rtpTime      uint32
	randomAccess bool
	waiting      bool // a random access point was awaited when it came
	damaged      bool
	settled      bool // its picture was emitted, or counted as dropped
	used         bool
}

// pending remembers the last units. libavcodec holds at most 16 pictures back,
// each of at most two units (fields).
type pending struct {
	ring [64]unit
}

// add notes a unit and returns it, and the one whose place it took.
func (p *pending) add(key int64, au *capture.AccessUnit) (u *unit, old unit) {
	u = &p.ring[key%int64(len(p.ring))]
	old = *u
	*u = unit{
		key: key, received: au.Received, capturedAt: au.CapturedAt, rtpTime: au.RTPTime,
		randomAccess: au.RandomAccess, used: true,
	}
	return u, old
}

// find returns the unit of a key, nil if it is not remembered.
func (p *pending) find(key int64) *unit {
	if key < 0 {
		return nil
	}
	if u := &p.ring[key%int64(len(p.ring))]; u.used && u.key == key {
		return u
	}
	return nil
}

func (p *pending) clear() { p.ring = [64]unit{} }
