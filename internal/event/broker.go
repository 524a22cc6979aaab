package event

import (
	"errors"
	"sync"
	"sync/atomic"
)

// ErrClosed is returned by Next once the subscription or its broker is closed.
var ErrClosed = errors.New("subscription closed")

// Broker hands every published detection to its subscriptions. It starts no
// goroutine and keeps nothing: a detection that nobody is subscribed to is gone.
// All methods are safe for concurrent use.
type Broker struct {
	// subs is replaced whole, never changed in place, so that Publish walks it
	// without a lock: the cameras' goroutines must not queue behind each other.
	subs atomic.Pointer[[]*Subscription]

	mu     sync.Mutex // guards replacing subs, and closed
	closed bool
}

// NewBroker returns a broker without subscriptions.
func NewBroker() *Broker { return &Broker{} }

// Publish hands d to every subscription that wants its camera and returns: it
// never waits for a reader. d is shared by all of them, so neither it nor its
// objects may be changed after. Detections of one camera must be published by
// one goroutine at a time to arrive in order.
func (b *Broker) Publish(d *Detection) {
	subs := b.subs.Load()
	if subs == nil {
		return
	}
	for _, s := range *subs {
		s.put(d)
	}
}

// Watched says whether anybody would get detections of the camera, so that a
// publisher may spare itself the work of making them.
func (b *Broker) Watched(camera string) bool {
	subs := b.subs.Load()
	if subs == nil {
		return false
	}
	for _, s := range *subs {
		if s.wants(camera) {
			return true
		}
	}
	return false
}

// Subscribe returns a new subscription to the cameras named; none named means
// all, including those that come later. On a closed broker the subscription is
// closed from the start.
func (b *Broker) Subscribe(cameras []string) *Subscription {
	s := newSubscription(b, cameras)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.end()
		return s
	}
	var subs []*Subscription
	if old := b.subs.Load(); old != nil {
		subs = append(subs, *old...)
	}
	subs = append(subs, s)
	b.subs.Store(&subs)
	return s
}

// Close ends all subscriptions. It may be called twice.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	old := b.subs.Swap(nil)
	b.mu.Unlock()
	if old == nil {
		return
	}
	for _, s := range *old {
		s.end()
	}
}

// drop takes s off the list.
func (b *Broker) drop(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.subs.Load()
	if old == nil {
		return
	}
	subs := make([]*Subscription, 0, len(*old))
	for _, o := range *old {
		if o != s {
			subs = append(subs, o)
		}
	}
	b.subs.Store(&subs)
}
