package decode

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/platform"
	"edgecam/platform/cuda"
)

// callLimit is how long the driver may take to set up or to close a decoder before the
// card counts as lost: either takes some 80 ms, and nothing else of any card is set up or
// closed meanwhile.
const callLimit = 10 * time.Second

// mostGrace bounds how long the decoders of a lost card are left as they are.
const mostGrace = 30 * time.Second

// Card is what a Closer wants to know of a card, and says of it: *cuda.Device.
type Card interface {
	Lost() <-chan struct{}
	Err() error       // nil, or why it is lost
	Lose(cause error) // gives it up
	// Hold counts something that is open in the card's context, until end. The error
	// is the loss.
	Hold() (end func(), err error)
}

// Closer closes the decoders of a card, behind their cameras' backs: nobody waits
// for it but [Closer.Close]. It closes one at a time, in the order in which they were
// given up, in the place where decoders are set up. Hundreds that are closed at
// once hold the driver's locks for seconds, in which nobody else has an answer of the
// card. Those of a lost card, which may hang, are closed apart from it and after a grace.
//
// Decoders hold the card until their closing has returned. Where the context itself is
// gone nothing of it is called any more, and what is left of the decoders is abandoned.
// Safe for concurrent use.
type Closer struct {
	queue *Queue
	card  Card
	limit time.Duration
	end   func()      // of the card's hold
	gone  atomic.Bool // the card's context is

	mu    sync.Mutex
	open  int           // guarded by mu
	jobs  int           // guarded by mu; that wait or are under way
	given int           // guarded by mu; jobs in all
	idle  chan struct{} // guarded by mu; closed while there are none, nil before the first
	grace grace         // guarded by mu
}

// grace is the time for which nothing of a lost card is closed: its cameras get decoders
// on others first, and the driver closes none while it sets one up, on whatever card.
type grace struct {
	begun bool
	jobs  []job   // that wait for its end
	after *SetUps // where they are done from then on; nil before
}

// job is something that is closed.
type job struct {
	number int // in the order in which they were given up
	do     func()
}

// NewCloser makes the closer of a card, with the queue in front of its decoders. It
// holds the card itself until [Closer.Close].
func NewCloser(q *Queue, card Card) (*Closer, error) {
	end, err := card.Hold()
	if err != nil {
		return nil, err
	}
	return &Closer{queue: q, card: card, limit: callLimit, end: end}, nil
}

// Open counts the decoders that are open, or that are still being closed.
func (c *Closer) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// take counts a decoder, until end is called. The error is errLost.
func (c *Closer) take() (end func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	if c.lost() {
		return nil, errLost
	}
	release, err := c.card.Hold()
	if err != nil {
		return nil, errLost
	}
	c.count(1)
	return func() {
		c.count(-1)
		release()
	}, nil
}

func (c *Closer) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
}

// Close calls f, which closes what the decoders stand on, behind all that is being closed
// (on a lost card behind all that waits out its grace), and waits for that; not for a card
// that is lost, and no longer than most: it is false where decoders were still being closed
// then. It is called once.
func (c *Closer) Close(f func(), most time.Duration) bool {
	c.later(f, c.end)
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-idle:
	case <-c.card.Lost():
	case <-timer.C:
		return false
	}
	return true
}

// later calls f in its turn, and then after it. Where the card's context is gone it
// leaves f out. Without a closer it calls both at once.
func (c *Closer) later(f, then func()) {
	if c == nil {
		f()
		then()
		return
	}
	c.mu.Lock()
	if c.jobs++; c.jobs == 1 {
		c.idle = make(chan struct{})
	}
	c.given++
	number := c.given
	c.mu.Unlock()
	c.submit(job{number, func() {
		if !c.contextGone() {
			c.call(f)
		}
		then()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.jobs--; c.jobs == 0 {
			close(c.idle)
		}
	}})
}

// submit has a job done in its turn.
func (c *Closer) submit(j job) {
	if c.postpone(j) {
		return
	}
	c.queue.SetUps().Later(func() {
		if !c.postpone(j) { // the card may have been lost before the turn came
			j.do()
		}
	}, c.card.Lost())
}

// postpone takes in a job of a lost card whose context is there, to be done after the
// grace. The first one begins it.
func (c *Closer) postpone(j job) bool {
	if !isLost(c.card.Lost()) || c.contextGone() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.grace
	if g.after != nil {
		g.after.Later(j.do, nil)
		return true
	}
	g.jobs = append(g.jobs, j)
	if !g.begun {
		g.begun = true
		time.AfterFunc(min(time.Duration(c.open)*c.queue.SetUps().Takes()*3/2, mostGrace), c.endGrace)
	}
	return true
}

func (c *Closer) endGrace() {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.grace
	g.after = NewSetUps()
	slices.SortFunc(g.jobs, func(a, b job) int { return a.number - b.number })
	for _, j := range g.jobs {
		g.after.Later(j.do, nil)
	}
	g.jobs = nil
}

// call bounds a call into the driver: others wait for the place behind it.
func (c *Closer) call(f func()) {
	defer c.bound("close decoder")()
	f()
}

// bound gives the card up where a call of that name takes too long, until end is called.
func (c *Closer) bound(name string) (end func()) {
	if c == nil {
		return func() {}
	}
	late := time.AfterFunc(c.limit, func() {
		c.card.Lose(&cuda.TimeoutError{Name: name, Limit: c.limit})
	})
	return func() { late.Stop() }
}

// lost says that nothing but closing may call the card any more.
func (c *Closer) lost() bool {
	return c.gone.Load() || isLost(c.card.Lost())
}

// Abandon says that the card's context is gone, so that nothing of it is called any more.
func (c *Closer) Abandon() { c.gone.Store(true) }

func (c *Closer) contextGone() bool { return c.gone.Load() || cuda.ContextGone(c.card.Err()) }

// failed tells the card of a decoder's failure after which its context serves no more
// calls. "Unknown" loses no card: the decoder's library says so of streams, too, and
// if there is more to it the card's next batch says the same.
func (c *Closer) failed(err *platform.DriverError) {
	if c == nil || err.Code == cuda.CodeUnknown {
		return
	}
	if cuda.ContextGone(err) {
		c.gone.Store(true)
	}
	c.card.Lose(err)
}

// lease is a decoder of a card and the surfaces that it has lent out. It is closed
// when it was given up and all of them are back: whoever gave the last reference back
// would otherwise destroy the decoder in the driver, wherever he is.
type lease struct {
	closer *Closer // nil = what is to be called is called at once
	close  func()
	ended  func() // called after close

	mu   sync.Mutex
	lent int  // guarded by mu
	over bool // guarded by mu; it was given up
}

// lend counts a surface that leaves the decoder.
func (l *lease) lend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent++
}

// back gives a surface back by f. A card that is lost may not answer: nobody waits
// for it.
func (l *lease) back(f func()) {
	if l.closer != nil && l.closer.lost() {
		l.closer.later(f, l.returned)
		return
	}
	f()
	l.returned()
}

func (l *lease) returned() {
	l.mu.Lock()
	l.lent--
	last := l.over && l.lent == 0
	l.mu.Unlock()
	if last {
		l.finish()
	}
}

// end gives the decoder up. Only the lease may touch it from now on.
func (l *lease) end() {
	l.mu.Lock()
	first := !l.over
	l.over = true
	last := first && l.lent == 0
	l.mu.Unlock()
	if last {
		l.finish()
	}
}

func (l *lease) finish() {
	l.closer.later(l.close, l.ended)
}
