package decode

import (
	"sync/atomic"

	"edgecam/capture"
	"edgecam/framepool"
)

// Why access units and pictures are dropped.
const (
	DropWaiting   = capture.DropNoKeyFrame // no random access point yet
	DropDamaged   = "damaged"              // not whole; those that Decode returned an error for are among them
	DropReaders   = "readers_busy"         // readers hold all the frames that they may
	DropExhausted = "pool_exhausted"       // the decoder found no slot
)

// Stats is a snapshot of a decoder.
type Stats struct {
	Pools       []framepool.Stats // the one in use first, then those that are still held
	Frames      uint64            // emitted
	Dropped     map[string]uint64 // by reason; reasons that never came are left out
	CopiedBytes uint64            // bytes of emitted pixels that were copied: 0 but for decoders with memory of their own
	Waiting     bool              // for a random access point
	Damaged     uint64            // pictures that came broken and were not emitted: Dropped[DropDamaged]
}

type counts struct {
	frames, copied                       atomic.Uint64
	awaited, damaged, readers, exhausted atomic.Uint64
	waiting                              atomic.Bool
}

func (c *counts) of(reason string) *atomic.Uint64 {
	switch reason {
	case DropWaiting:
		return &c.awaited
	case DropDamaged:
		return &c.damaged
	case DropReaders:
		return &c.readers
	}
	return &c.exhausted
}

func (c *counts) drop(reason string) { c.of(reason).Add(1) }

// Stats may be called from any goroutine, also after Close.
func (d *Decoder) Stats() Stats {
	s := Stats{
		Pools: d.pools.stats(), Frames: d.counts.frames.Load(), CopiedBytes: d.counts.copied.Load(),
		Waiting: d.counts.waiting.Load(), Dropped: map[string]uint64{},
		Damaged: d.counts.damaged.Load(),
	}
	for _, reason := range []string{DropWaiting, DropDamaged, DropReaders, DropExhausted} {
		if n := d.counts.of(reason).Load(); n > 0 {
			s.Dropped[reason] = n
		}
	}
	return s
}
