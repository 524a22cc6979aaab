package capture

import (
	"context"
	"slices"
	"time"
)

// notFirst is how long somebody waits who is not the first in line: whoever makes him
// the first wakes him.
const notFirst = time.Hour

// Line is who waits for a turn, in the order in which they came. Its owner's lock guards
// it. The zero value is empty.
type Line struct{ waiting []chan struct{} }

// Join takes one more in at the end. Who has joined must Leave.
func (l *Line) Join() (wake chan struct{}) {
	wake = make(chan struct{}, 1)
	l.waiting = append(l.waiting, wake)
	return wake
}

// Leave takes one out, and wakes the next.
func (l *Line) Leave(wake chan struct{}) {
	l.waiting = slices.DeleteFunc(l.waiting, func(c chan struct{}) bool { return c == wake })
	l.Wake()
}

// Len is how many wait.
func (l *Line) Len() int { return len(l.waiting) }

// First says whether one is the next.
func (l *Line) First(wake chan struct{}) bool { return l.waiting[0] == wake }

// Wake tells the next one that it may be its turn. It does not wait.
func (l *Line) Wake() {
	if len(l.waiting) == 0 {
		return
	}
	select {
	case l.waiting[0] <- struct{}{}:
	default: // it is told already
	}
}

// Pause waits, without the lock, until one that has joined a line is woken, for a time at
// most if it is the first, or until ctx ends.
func Pause(ctx context.Context, wake chan struct{}, first bool, most time.Duration) {
	if !first {
		most = notFirst
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
	case <-ctx.Done():
	}
}
