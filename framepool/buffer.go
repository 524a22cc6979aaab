package framepool

import (
	"fmt"
	"sync/atomic"
)

// Buffer is a slot that one holder may write. It ends with Seal or Discard;
// any use after that panics. It belongs to one goroutine at a time.
type Buffer struct {
	pool  *Pool
	slot  int
	gen   uint32
	spent atomic.Bool
	track tracker
	next  published // the frame to be: one allocation serves both phases
}

func newBuffer(p *Pool, slot int, gen uint32) *Buffer {
	b := &Buffer{pool: p, slot: slot, gen: gen}
	live.Add(1)
	trackBuffer(b)
	return b
}

func (b *Buffer) check(verb string) {
	if b.spent.Load() {
		panic(fmt.Sprintf("framepool: %s of a buffer of pool %s after Seal or Discard", verb, b.pool.name))
	}
}

// Plane gives all bytes of plane i of the layout, padding of rows included;
// nil for a plane that the format lacks.
func (b *Buffer) Plane(i int) []byte {
	b.check("plane")
	l := &b.pool.layout
	if i < 0 || i >= l.Format.Planes() {
		return nil
	}
	n := planeBytes(l.Format, i, l.Width, l.Height, l.Stride[i])
	return b.pool.slotBytes(b.slot)[l.Offset[i] : l.Offset[i]+n : l.Offset[i]+n]
}

// Stride is the distance of two rows of plane i in bytes.
func (b *Buffer) Stride(i int) int {
	b.check("stride")
	return b.pool.layout.Stride[i]
}

// Layout is the layout of the slot.
func (b *Buffer) Layout() Layout {
	b.check("layout")
	return b.pool.layout
}

// Seal publishes the picture and spends b. The planes of m must lie in the
// slot and have the pool's format, or it panics.
func (b *Buffer) Seal(m Meta) *Frame {
	b.check("seal")
	if err := b.pool.check(&m); err != nil {
		panic(fmt.Sprintf("framepool: seal picture %s/%d in pool %s: %v", m.Camera, m.Seq, b.pool.name, err))
	}
	b.spend("seal")
	return publish(&b.next, b.pool, b.slot, b.gen, m)
}

// Discard gives the slot back unpublished and spends b.
func (b *Buffer) Discard() {
	b.spend("discard")
	b.pool.drop(b.slot, b.gen)
}

func (b *Buffer) spend(verb string) {
	if b.spent.Swap(true) {
		panic(fmt.Sprintf("framepool: %s of a buffer of pool %s after Seal or Discard", verb, b.pool.name))
	}
	live.Add(-1)
	b.track.end()
}

// drop ends one reference of a slot. After it the region may be gone.
func (p *Pool) drop(slot int, gen uint32) {
	last, ok := releaseWord(p.region.word(slot), gen, p.poisoner(slot))
	if !ok {
		panic(fmt.Sprintf("framepool: release slot %d of pool %s: generation %d is stale", slot, p.name, gen))
	}
	if last && p.closed.Load() {
		p.Reap()
	}
}
