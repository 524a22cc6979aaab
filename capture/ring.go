package capture

import (
	"context"
	"sync"
	"time"
)

// The bounds of the queue before the decoder.
const (
	ringUnits = 256 // 8 s at 30 a second: more than the times below let wait
	// ringAge is how far the decoder may be behind with no prospect of catching
	// up. A picture is of use for a second from its arrival to its result: with
	// more than this gone there is not enough left for inference, and decoding
	// what comes to nothing only keeps the next ones waiting.
	ringAge = 600 * time.Millisecond
	// ringMost is how far it may be behind at all. A machine that was busy with
	// other things for a moment catches up much sooner than the next key frame
	// comes, up to which everything would have to be given up.
	ringMost = 2 * time.Second
	// ringKeyAge is how far it may be behind when a key frame comes, from which it
	// can begin anew at the price of the few units that wait, and ringKeeps the part
	// of the stream's pace above which it does not catch up by itself.
	ringKeyAge = 100 * time.Millisecond
	ringKeeps  = 0.75

	ringBytes = 16 << 20 // two of the largest access units

	// ringPatience ends the wait for a random access point in streams that
	// have none, such as those with a rolling intra refresh.
	ringPatience = 5 * time.Second
)

// ringItem is an access unit, or the decoder for those behind it.
type ringItem struct {
	au      *AccessUnit
	decoder Decoder
}

// ring is the queue between a source, which must not wait, and the decoder,
// which may be slow. Before the first random access point, and after an
// overflow, units are dropped up to one.
type ring struct {
	drop func(reason string, n uint64)
	wake chan struct{} // cap 1: something was put in

	mu       sync.Mutex
	items    []ringItem
	bytes    int
	pace     time.Duration // that the decoder takes for a unit, of late
	skipping string        // reason; "" = units are taken
	since    time.Time
	closed   bool
}

func newRing(drop func(reason string, n uint64)) *ring {
	return &ring{drop: drop, wake: make(chan struct{}, 1), skipping: DropNoKeyFrame}
}

// push queues a unit, or drops it. It never waits.
func (r *ring) push(au *AccessUnit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.skipping != "" && !r.resumeLocked(au) {
		r.drop(r.skipping, 1)
		return
	}
	if r.behindLocked(au) || au.RandomAccess && r.slowLocked(au) {
		r.clearLocked(au)
		if !au.RandomAccess {
			r.skipping, r.since = DropOverflow, au.Received
			r.drop(DropOverflow, 1)
			return
		}
	}
	size := unitSize(au)
	if len(r.items) >= ringUnits || (r.bytes+size > ringBytes && len(r.items) > 0) {
		if !au.RandomAccess {
			r.skipping, r.since = DropOverflow, au.Received
			r.drop(DropOverflow, 1)
			return
		}
		r.clearLocked(au)
	}
	r.items = append(r.items, ringItem{au: au})
	r.bytes += size
	r.wakeLocked()
}

// behindLocked says whether the decoder is so late that the oldest unit before
// au is of no use any more, and what waits would make the next ones late too.
func (r *ring) behindLocked(au *AccessUnit) bool {
	_, late := r.oldestLocked(au)
	return late > ringMost || late > ringAge && time.Duration(len(r.items))*r.pace > ringAge/2
}

// slowLocked says whether what waits before au is late and stays so.
func (r *ring) slowLocked(au *AccessUnit) bool {
	at, late := r.oldestLocked(au)
	return late > ringKeyAge && float64(len(r.items)-at)*float64(r.pace) > ringKeeps*float64(late)
}

// oldestLocked gives the place of the oldest unit that waits, and how late that is as
// au comes; 0 where none waits.
func (r *ring) oldestLocked(au *AccessUnit) (at int, late time.Duration) {
	for i, it := range r.items {
		if it.au != nil {
			return i, au.Received.Sub(it.au.Received)
		}
	}
	return 0, 0
}

// decoded notes how long the decoder took for a unit.
func (r *ring) decoded(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// One picture that took very long says little of the next ones.
	r.pace += (min(took, 4*r.pace+5*time.Millisecond) - r.pace) / 4
}

// resumeLocked says whether decoding can go on with au.
func (r *ring) resumeLocked(au *AccessUnit) bool {
	if r.since.IsZero() {
		r.since = au.Received
	}
	if !au.RandomAccess && au.Received.Sub(r.since) < ringPatience {
		return false
	}
	if r.skipping == DropOverflow {
		r.clearLocked(au)
	}
	r.skipping = ""
	return true
}

// clearLocked drops the queued units in favour of au: they are older, and au
// does not need them.
func (r *ring) clearLocked(au *AccessUnit) {
	kept := r.items[:0]
	var dropped uint64
	for _, it := range r.items {
		if it.decoder != nil {
			kept = append(kept, it)
		} else {
			dropped++
		}
	}
	clear(r.items[len(kept):]) // let go of the units' bytes
	r.items, r.bytes = kept, 0
	r.drop(DropOverflow, dropped)
	au.LossBefore = true
}

// pushDecoder queues the decoder for all units behind it; false when the ring
// is closed.
func (r *ring) pushDecoder(d Decoder) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.items = append(r.items, ringItem{decoder: d})
	r.skipping, r.since = DropNoKeyFrame, time.Time{}
	r.wakeLocked()
	return true
}

// pop waits for an item; false when ctx has ended.
func (r *ring) pop(ctx context.Context) (ringItem, bool) {
	for ctx.Err() == nil {
		if it, ok := r.tryPop(); ok {
			return it, true
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
	return ringItem{}, false
}

func (r *ring) tryPop() (ringItem, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) == 0 {
		return ringItem{}, false
	}
	it := r.items[0]
	copy(r.items, r.items[1:])
	r.items[len(r.items)-1] = ringItem{}
	r.items = r.items[:len(r.items)-1]
	if it.au != nil {
		r.bytes -= unitSize(it.au)
	}
	return it, true
}

// close gives the decoders that nobody took; nothing goes in any more.
func (r *ring) close() []Decoder {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []Decoder
	for _, it := range r.items {
		if it.decoder != nil {
			left = append(left, it.decoder)
		}
	}
	r.items, r.bytes, r.closed = nil, 0, true
	return left
}

func (r *ring) wakeLocked() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func unitSize(au *AccessUnit) int {
	n := 0
	for _, nalu := range au.NALUs {
		n += len(nalu)
	}
	return n
}
