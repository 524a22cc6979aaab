package decode

import (
	"container/heap"
	"sync"
	"time"
)

// Turnstile lets callers through as many at once as is good, in an order that
// it thinks fair. The CPU that a picture costs grows with the number of threads
// that are inside the GPU's driver, or decode in software, at once. Calls come
// from the decoding goroutines.
type Turnstile interface {
	// Enter waits for the caller's turn, which ends with leave. leave is nil where lost was
	// closed before the turn came.
	Enter(t Turn, lost <-chan struct{}) (leave func())
}

// Turn is what a caller wants to be let in for.
type Turn struct {
	Received time.Time // of the access unit
	// SetUp: the call sets up a decoder in the GPU's driver, which takes 50 ms and
	// does not do it for two at once.
	SetUp bool
}

// Queue is a Turnstile of a few places. Who has the oldest access unit goes
// first, so that no camera falls behind the others while all of them wait.
// Set-ups go through a place of their own, see [SetUps]. Nobody who waits holds a
// thread. Safe for concurrent use.
type Queue struct {
	setUps *SetUps
	places int
	leave  func() // q.left, bound once
	back   func() // q.givenBack, bound once

	mu      sync.Mutex
	inside  int     // guarded by mu
	taken   int     // guarded by mu; places that others work in
	waiting waiters // guarded by mu
	arrived uint64  // guarded by mu
}

// waiter is a caller that waits.
type waiter struct {
	received time.Time
	arrived  uint64
	turn     chan struct{} // closed when it has its place
	index    int           // in the heap; -1 = it has left it
}

// NewQueue makes a queue of so many places, at least one. setUps may be those of
// other queues too; nil = of its own.
func NewQueue(places int, setUps *SetUps) *Queue {
	if setUps == nil {
		setUps = NewSetUps()
	}
	q := &Queue{places: max(places, 1), setUps: setUps}
	q.leave, q.back = q.left, q.givenBack
	return q
}

// SetUps is where the decoders behind the queue are set up and closed.
func (q *Queue) SetUps() *SetUps { return q.setUps }

// Enter implements Turnstile.
func (q *Queue) Enter(t Turn, lost <-chan struct{}) (leave func()) {
	if t.SetUp {
		return q.setUps.enter(lost)
	}
	q.mu.Lock()
	if q.openLocked() { // nothing is allocated for those who need not wait
		q.inside++
		q.mu.Unlock()
		return q.leave
	}
	w := &waiter{turn: make(chan struct{}), received: t.Received, arrived: q.arrived}
	q.arrived++
	heap.Push(&q.waiting, w)
	q.mu.Unlock()
	select {
	case <-w.turn:
	case <-lost:
		if !q.withdraw(w) {
			q.left() // the place came at the same moment
		}
		return nil
	}
	return q.leave
}

// withdraw takes a waiter out; false when it has been given a place.
func (q *Queue) withdraw(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.index < 0 {
		return false
	}
	heap.Remove(&q.waiting, w.index)
	return true
}

// TakePlace has one caller fewer inside until giveBack is called: somebody else works
// with what the queue stands before, such as the processors. It does not wait for those
// who are inside, and leaves one place, so that nobody who decodes waits for whoever
// takes places without end.
func (q *Queue) TakePlace() (giveBack func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken++
	return q.back
}

func (q *Queue) givenBack() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	q.letInLocked()
}

// openLocked says whether there is a place for one more.
func (q *Queue) openLocked() bool { return q.inside < max(q.places-q.taken, 1) }

// left gives a place to the next one.
func (q *Queue) left() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inside--
	q.letInLocked()
}

// letInLocked gives the places that are free to those who wait.
func (q *Queue) letInLocked() {
	for len(q.waiting) > 0 && q.openLocked() {
		w := heap.Pop(&q.waiting).(*waiter) //nolint:forcetypeassert // the heap holds nothing else
		q.inside++
		close(w.turn)
	}
}

// Waiting is how many callers wait for a place.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// waiters is a heap, the one that goes next at its top.
type waiters []*waiter

// Len implements heap.Interface.
func (h waiters) Len() int { return len(h) }

// Less implements heap.Interface.
func (h waiters) Less(i, j int) bool {
	if !h[i].received.Equal(h[j].received) {
		return h[i].received.Before(h[j].received)
	}
	return h[i].arrived < h[j].arrived
}

// Swap implements heap.Interface.
func (h waiters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *waiters) Push(x any) {
	w := x.(*waiter) //nolint:forcetypeassert // the heap holds nothing else
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *waiters) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}
