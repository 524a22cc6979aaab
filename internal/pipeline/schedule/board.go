package schedule

import "time"

// Lane is a camera's place among the others. Its zero value, with Of set, waits
// for nothing.
type Lane[T any] struct {
	Of T

	chosen
	due     time.Time // deadline of the turn that is waited for
	waiting bool      // a frame waits
	held    int       // frames that are being worked on
	closed  bool
	at      int // place in the heap, from 1; 0 = not queued
}

// Board holds the lanes of one engine and orders those that wait and may be served,
// the one with the earliest deadline first. A camera that waits keeps its deadline
// when a newer frame takes the place of the one that it came with: it cannot be
// overtaken for ever, however many cameras there are and however often they send.
// All operations cost the logarithm of those that wait, but that finding the next one
// costs their number while the engine chooses, and allocate nothing once the board has
// grown.
type Board[T any] struct {
	// PerLane is how many frames of one camera may be worked on at once. It defaults
	// to 1.
	PerLane int

	heap  []*Lane[T]
	young time.Duration // of the Choice
}

// Len is how many lanes wait and may be served.
func (b *Board[T]) Len() int { return len(b.heap) }

// Pressing is how many frames may have a batch begun before the engine is free, and the
// earliest deadline of those, the zero time if there are none. With a choice there are
// none: whoever begins later has younger ones.
func (b *Board[T]) Pressing() (n int, due time.Time) {
	if len(b.heap) == 0 || b.young > 0 {
		return 0, due
	}
	return len(b.heap), b.heap[0].due
}

// Offer notes that a frame waits in l that is due. One that waited there before has given
// way, and its deadline stays. ready reports whether the lane may be served only now, and
// owed whether the turn that was missed is made up for, see Choice.
func (b *Board[T]) Offer(l *Lane[T], s Sent) (ready, owed bool) {
	if l.closed {
		return false, false
	}
	if l.waiting {
		l.tries++
		owed = b.young > 0 && l.owed < mostOwed
	} else {
		l.wait(s)
	}
	if owed {
		l.owed++
	}
	if b.young == 0 {
		l.owed = 0
	}
	l.saw(s)
	return b.queue(l), owed
}

// wait has a turn begin.
func (l *Lane[T]) wait(s Sent) { l.waiting, l.due, l.tries = true, s.Due, 0 }

// Next takes the lane out that is the first to be served, nil if there is none. Its frame
// is being worked on until Done.
func (b *Board[T]) Next(now time.Time) *Lane[T] {
	l := b.first(now)
	if l == nil {
		return nil
	}
	b.unqueue(l)
	l.waiting = false
	l.held++
	return l
}

// Done notes that a frame of l is not worked on any more. It reports whether the
// lane may be served only now.
func (b *Board[T]) Done(l *Lane[T]) (ready bool) {
	l.held--
	return b.queue(l)
}

// Remove takes a lane out for good. What is worked on still needs its Done.
func (b *Board[T]) Remove(l *Lane[T]) {
	l.closed, l.waiting = true, false
	b.unqueue(l)
}

func (b *Board[T]) queue(l *Lane[T]) bool {
	if !l.waiting || l.at != 0 || l.held >= max(b.PerLane, 1) {
		return false
	}
	b.heap = append(b.heap, l)
	l.at = len(b.heap)
	b.up(l.at)
	return true
}

func (b *Board[T]) unqueue(l *Lane[T]) {
	at := l.at
	if at == 0 {
		return
	}
	last := len(b.heap)
	b.swap(at, last)
	b.heap[last-1] = nil
	b.heap = b.heap[:last-1]
	l.at = 0
	if at < last {
		b.down(b.up(at))
	}
}

// The heap counts from 1: the children of i are 2i and 2i+1.

func (b *Board[T]) less(i, j int) bool { return b.heap[i-1].due.Before(b.heap[j-1].due) }

func (b *Board[T]) swap(i, j int) {
	h := b.heap
	h[i-1], h[j-1] = h[j-1], h[i-1]
	h[i-1].at, h[j-1].at = i, j
}

// up moves the lane at i to where it belongs above, and gives its new place.
func (b *Board[T]) up(i int) int {
	for i > 1 && b.less(i, i/2) {
		b.swap(i, i/2)
		i /= 2
	}
	return i
}

func (b *Board[T]) down(i int) {
	for {
		child := 2 * i
		if child > len(b.heap) {
			return
		}
		if child < len(b.heap) && b.less(child+1, child) {
			child++
		}
		if !b.less(child, i) {
			return
		}
		b.swap(i, child)
		i = child
	}
}
