package schedule

import "time"

// Turn is a camera's place in a Queue. Its zero value, with Of set, waits for
// nothing.
type Turn[T any] struct {
	Of T

	due time.Time
	at  int // place in the heap, from 1; 0 = not waiting
}

// Waiting says whether the turn is in a queue.
func (t *Turn[T]) Waiting() bool { return t.at != 0 }

// Due is the deadline that the turn was queued with.
func (t *Turn[T]) Due() time.Time { return t.due }

// Queue holds the cameras that wait for a turn, the one with the earliest deadline
// first. A camera that waits keeps its deadline when a newer frame takes the place
// of the one that it came with: it cannot be overtaken for ever, however many
// cameras there are and however often they send. All operations cost the logarithm
// of those that wait, and allocate nothing once the queue has grown.
type Queue[T any] struct{ heap []*Turn[T] }

// Len is how many wait.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Push queues a turn; one that waits already keeps its deadline.
func (q *Queue[T]) Push(t *Turn[T], due time.Time) {
	if t.at != 0 {
		return
	}
	t.due = due
	q.heap = append(q.heap, t)
	t.at = len(q.heap)
	q.up(t.at)
}

// First is the turn with the earliest deadline, nil if none waits.
func (q *Queue[T]) First() *Turn[T] {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

// Remove takes a turn out, wherever it is.
func (q *Queue[T]) Remove(t *Turn[T]) {
	at := t.at
	if at == 0 {
		return
	}
	last := len(q.heap)
	q.swap(at, last)
	q.heap[last-1] = nil
	q.heap = q.heap[:last-1]
	t.at = 0
	if at < last {
		q.down(q.up(at))
	}
}

// The heap counts from 1: the children of i are 2i and 2i+1.

func (q *Queue[T]) less(i, j int) bool { return q.heap[i-1].due.Before(q.heap[j-1].due) }

func (q *Queue[T]) swap(i, j int) {
	h := q.heap
	h[i-1], h[j-1] = h[j-1], h[i-1]
	h[i-1].at, h[j-1].at = i, j
}

// up moves the turn at i to where it belongs above, and gives its new place.
func (q *Queue[T]) up(i int) int {
	for i > 1 && q.less(i, i/2) {
		q.swap(i, i/2)
		i /= 2
	}
	return i
}

func (q *Queue[T]) down(i int) {
	for {
		child := 2 * i
		if child > len(q.heap) {
			return
		}
		if child < len(q.heap) && q.less(child+1, child) {
			child++
		}
		if !q.less(child, i) {
			return
		}
		q.swap(i, child)
		i = child
	}
}
