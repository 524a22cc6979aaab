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
	// Enter waits for the caller's turn. It is false when lost was closed before
	// that: then Leave is not called.
	Enter(t Turn, lost <-chan struct{}) bool
	Leave(t Turn)
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
// Set-ups have a place of their own, which they share with what Later takes, and
// go in the order in which they came. Nobody who waits holds a thread. Safe for
// concurrent use.
type Queue struct {
	mu      sync.Mutex
	places  lane
	setUps  lane
	arrived uint64
	setUp   time.Duration // that a set-up takes, smoothed
	began   time.Time     // of the set-up that is inside
}

// lane is one way in.
type lane struct {
	free    int
	waiting waiters
}

// waiter is a caller that waits.
type waiter struct {
	received time.Time // zero where arrival alone counts
	arrived  uint64
	setUp    bool
	turn     chan struct{} // closed when it has its place
	run      func()        // in place of turn: what is done there
	index    int           // in the heap; -1 = it has left it
}

// NewQueue makes a queue of so many places, at least one.
func NewQueue(places int) *Queue {
	return &Queue{places: lane{free: max(places, 1)}, setUps: lane{free: 1}}
}

// Enter implements Turnstile.
func (q *Queue) Enter(t Turn, lost <-chan struct{}) bool {
	q.mu.Lock()
	l := q.laneOf(t)
	if l.free > 0 { // nothing is allocated for those who need not wait
		l.free--
		q.insideLocked(t.SetUp)
		q.mu.Unlock()
		return true
	}
	w := &waiter{setUp: t.SetUp, turn: make(chan struct{})}
	if !t.SetUp {
		w.received = t.Received
	}
	q.waitLocked(l, w)
	q.mu.Unlock()
	select {
	case <-w.turn:
	case <-lost:
		if !q.withdraw(l, w) {
			q.Leave(t) // the place came at the same moment
		}
		return false
	}
	return true
}

func (q *Queue) laneOf(t Turn) *lane {
	if t.SetUp {
		return &q.setUps
	}
	return &q.places
}

// Later has f called on a goroutine of its own, in the place of set-ups and when its
// turn comes. It is for closing decoders: either holds the driver's locks, and one
// that closes makes room for one that is set up after it.
func (q *Queue) Later(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.setUps.free > 0 {
		q.setUps.free--
		go q.carryOut(f)
		return
	}
	q.waitLocked(&q.setUps, &waiter{run: f})
}

func (q *Queue) waitLocked(l *lane, w *waiter) {
	w.arrived = q.arrived
	q.arrived++
	heap.Push(&l.waiting, w)
}

// insideLocked notes that a caller was let in.
func (q *Queue) insideLocked(setUp bool) {
	if setUp {
		q.began = time.Now()
	}
}

func (q *Queue) carryOut(f func()) {
	f()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passOnLocked(&q.setUps)
}

// passOnLocked gives a place that has become free to the next one.
func (q *Queue) passOnLocked(l *lane) {
	if len(l.waiting) == 0 {
		l.free++
		return
	}
	w := heap.Pop(&l.waiting).(*waiter) //nolint:forcetypeassert // the heap holds nothing else
	if w.run != nil {
		go q.carryOut(w.run)
		return
	}
	q.insideLocked(w.setUp)
	close(w.turn)
}

// withdraw takes a waiter out; false when it has been given a place.
func (q *Queue) withdraw(l *lane, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.index < 0 {
		return false
	}
	heap.Remove(&l.waiting, w.index)
	return true
}

// Leave implements Turnstile.
func (q *Queue) Leave(t Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.SetUp {
		took := time.Since(q.began)
		if q.setUp == 0 {
			q.setUp = took
		}
		q.setUp += (took - q.setUp) / 8
	}
	q.passOnLocked(q.laneOf(t))
}

// SetUpTime is what setting up a decoder takes; 0 before the first.
func (q *Queue) SetUpTime() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.setUp
}

// Waiting is how many callers wait for a place, and how many set-ups and closes do.
func (q *Queue) Waiting() (places, setUps int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.places.waiting), len(q.setUps.waiting)
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
