package framepool

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
)

// maxSlots bounds a pool; real ones have a few dozen slots.
const maxSlots = 4096

// Mapper makes a pool's pixels visible to a GPU. Map pins size bytes at host
// and gives the device's address of the first; Unmap undoes it and returns
// once the device has finished with them.
type Mapper interface {
	Map(host uintptr, size int) (device uintptr, err error)
	Unmap(host uintptr) error
}

// Keeper is a Mapper that may hide memory from the device later which it could not
// unmap at first. Keep calls free then, once.
type Keeper interface {
	Keep(host uintptr, free func())
}

// Options says what a pool is made of.
type Options struct {
	Name      string       // names the pool in errors, logs and stats; usually the camera's id
	Layout    Layout       // of every slot
	Slots     int          // 1 to 4096, fixed for the pool's life
	Budget    *Budget      // nil counts nothing
	Node      int          // NUMA node to prefer, -1 for any; a host of one node ignores it
	Lock      bool         // keep the pages in RAM; a refusal is logged once and tolerated
	HugePages bool         // ask for 2 MiB pages
	Guard     Guard        // for tests: a page beside every slot that faults
	Mapper    Mapper       // nil means no GPU; a failure is logged and tolerated
	Logger    *slog.Logger // nil discards
}

// Pool is a fixed number of slots in one region of memory. Its methods are
// safe for concurrent use.
type Pool struct {
	name       string
	layout     Layout
	slots      int
	slotStride int // bytes, a multiple of 4096
	budget     *Budget
	mapper     Mapper
	log        *slog.Logger
	region     *region // valid while a reference is held, or under mu while !gone
	device     uintptr
	onDevice   bool

	closed    atomic.Bool
	freed     atomic.Bool
	exhausted atomic.Uint64
	highWater atomic.Int64

	mu       sync.Mutex
	gone     bool   // guarded by mu: the region is being or has been given back
	acquired uint64 // guarded by mu: leases in all, once gone
}

// Bytes is what New reserves of the budget, at most: for one that has to choose
// a number of slots. It is 0 for options that New refuses.
func (o Options) Bytes() int64 {
	stride, err := o.slotStride()
	if err != nil {
		return 0
	}
	return int64(planRegion(stride*o.Slots, o.Slots, os.Getpagesize(), o.HugePages).most())
}

// slotStride checks the geometry and gives the bytes from slot to slot.
func (o Options) slotStride() (int, error) {
	if err := o.Layout.Validate(); err != nil {
		return 0, err
	}
	if o.Slots < 1 || o.Slots > maxSlots {
		return 0, fmt.Errorf("%d slots, want 1 to %d", o.Slots, maxSlots)
	}
	stride := o.Guard.stride(o.Layout.Size, os.Getpagesize())
	if stride > math.MaxInt32 {
		return 0, errors.New("a slot of 2 GiB or more")
	}
	return stride, nil
}

// New makes a pool and commits all of its memory. The error is a *BudgetError
// (wrapped) where the budget does not hold it.
func New(o Options) (*Pool, error) {
	p, err := newPool(o)
	if err != nil {
		return nil, fmt.Errorf("make frame pool %s of %d slots of %s: %w",
			o.Name, o.Slots, FormatBytes(int64(max(o.Layout.Size, 0))), err)
	}
	return p, nil
}

func newPool(o Options) (*Pool, error) {
	stride, err := o.slotStride()
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := allocateWithin(o, planRegion(stride*o.Slots, o.Slots, os.Getpagesize(), o.HugePages))
	if err != nil {
		return nil, err
	}
	p := &Pool{
		name: o.Name, layout: o.Layout, slots: o.Slots, slotStride: stride,
		budget: o.Budget, mapper: o.Mapper, log: o.Logger, region: r,
	}
	p.mapDevice()
	return p, nil
}

// allocateWithin takes the region's memory under the budget: the most that it
// may need first, so that the limit holds at every moment.
func allocateWithin(o Options, plan regionPlan) (*region, error) {
	ro := regionOptions{name: o.Name, lock: o.Lock, node: o.Node, log: o.Logger, firstWarning: o.Budget.firstWarning}
	if o.Budget == nil {
		return o.guarded(plan.allocate(ro))
	}
	if err := o.Budget.Reserve(int64(plan.most())); err != nil {
		return nil, err
	}
	r, err := o.guarded(plan.allocate(ro))
	if err != nil {
		o.Budget.Release(int64(plan.most()))
		return nil, err
	}
	o.Budget.Release(int64(plan.most() - r.bytes()))
	return r, nil
}

// guarded puts the pages beside the slots of a region that was just made.
func (o Options) guarded(r *region, err error) (*region, error) {
	if err != nil || o.Guard == GuardNone {
		return r, err
	}
	stride, err := o.slotStride()
	if err == nil {
		err = r.fence(o.Guard, o.Layout.Size, stride, o.Slots)
	}
	if err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

// mapDevice shows the pixels to the GPU. A driver that cannot (no register
// call, size limits) leaves a pool that must be staged.
func (p *Pool) mapDevice() {
	if p.mapper == nil {
		return
	}
	dev, err := p.mapper.Map(p.region.base(), len(p.region.pixels))
	if err != nil {
		p.log.Warn("frame pool is not visible to the GPU: pictures will be copied", "pool", p.name, "bytes", len(p.region.pixels), "err", err)
		return
	}
	p.device, p.onDevice = dev, true
}

// TryGet takes a free slot to write a picture into, or says false at once: the
// pool is exhausted (which Stats counts) or closed.
func (p *Pool) TryGet() (*Buffer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() || p.gone {
		return nil, false
	}
	for i := range p.slots {
		if gen, ok := acquireWord(p.region.word(i)); ok {
			p.markLocked()
			return newBuffer(p, i, gen), true
		}
	}
	p.exhausted.Add(1)
	return nil, false
}

// Adopt publishes the picture that a decoder has written into a slot. The
// decoder's own reference must keep the slot alive during the call; Adopt adds
// one for the frame. It panics where no one holds that generation of the slot
// and where the planes of m leave the slot.
func (p *Pool) Adopt(slot int, gen uint32, m Meta) *Frame {
	if err := p.check(&m); err != nil {
		panic(fmt.Sprintf("framepool: adopt slot %d of pool %s: %v", slot, p.name, err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot < 0 || slot >= p.slots {
		panic(fmt.Sprintf("framepool: adopt slot %d of pool %s: it has %d", slot, p.name, p.slots))
	}
	if p.gone || !retainWord(p.region.word(slot), gen) {
		panic(fmt.Sprintf("framepool: adopt slot %d of pool %s: generation %d is stale", slot, p.name, gen))
	}
	p.markLocked()
	return publish(&published{}, p, slot, gen, m)
}

// check says what is wrong with a picture's description for this pool.
func (p *Pool) check(m *Meta) error {
	if m.Format != p.layout.Format {
		return fmt.Errorf("pixel format %v in a pool of %v", m.Format, p.layout.Format)
	}
	return fits(m.Format, m.Width, m.Height, m.Offset, m.Stride, p.layout.Size)
}

// markLocked raises the high-water mark. Decoders acquire without a call into
// Go, so the words are counted, not the calls.
func (p *Pool) markLocked() {
	if n := p.inUseLocked(); n > p.highWater.Load() {
		p.highWater.Store(n)
	}
}

func (p *Pool) inUseLocked() (n int64) {
	for i := range p.slots {
		if heldWord(p.region.word(i)) {
			n++
		}
	}
	return n
}

// Close ends the lending: TryGet says false from now on and slots that come
// free stay free. The region goes back with the last reference, at once if
// there is none. References of decoders in C end without a call into Go: their
// owner calls Reap until it says true. No one may acquire slots through
// Control any more when Close is called. Close may be called again.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.Reap()
}

// Reap gives the region of a closed pool back if no reference is left, and
// says whether that has happened.
func (p *Pool) Reap() bool {
	if !p.closed.Load() {
		return false
	}
	if !p.retireAll() {
		return p.freed.Load()
	}
	p.giveBack()
	p.freed.Store(true)
	return true
}

// retireAll takes the free slots away. It is true once: for the call that
// takes the last and so has to give the region back.
func (p *Pool) retireAll() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	all := true
	for i := range p.slots {
		all = retireWord(p.region.word(i)) && all
	}
	if all {
		p.gone, p.acquired = true, p.acquiredLocked()
	}
	return all
}

func (p *Pool) giveBack() {
	if p.onDevice {
		if err := p.mapper.Unmap(p.region.base()); err != nil {
			// The device may still read the pages: leaking them is the lesser evil.
			p.log.Error("unmap frame pool from the GPU: its memory is kept", "pool", p.name, "bytes", p.region.bytes(), "err", err)
			if k, ok := p.mapper.(Keeper); ok {
				k.Keep(p.region.base(), p.freeRegion)
			}
			return
		}
	}
	p.freeRegion()
}

func (p *Pool) freeRegion() {
	if err := p.region.release(); err != nil {
		p.log.Error("unmap frame pool: its memory is kept", "pool", p.name, "bytes", p.region.bytes(), "err", err)
		return
	}
	if p.budget != nil {
		p.budget.Release(int64(p.region.bytes()))
	}
}

// Device gives the device's address of the region's first byte, and false
// where no GPU sees it.
func (p *Pool) Device() (uintptr, bool) { return p.device, p.onDevice }

// Contains says whether all of b lies inside the region's pixels.
func (p *Pool) Contains(b []byte) bool { return p.region.contains(b) }

// Layout is the layout of every slot.
func (p *Pool) Layout() Layout { return p.layout }

// memory is the kind of the pool's frames.
func (p *Pool) memory() MemoryKind {
	if p.region.locked || p.onDevice {
		return MemoryPinned // a mapper pins the pages itself
	}
	return MemoryHeap
}

// slotBytes are the bytes of slot i.
func (p *Pool) slotBytes(i int) []byte {
	o := i * p.slotStride
	return p.region.pixels[o : o+p.layout.Size : o+p.layout.Size]
}
