package framepool

import (
	"log/slog"
	"sync/atomic"
	"unsafe"
)

const (
	wordStride = 64 // bytes; one cache line a word
	hugePage   = 2 << 20
)

// region is the memory of one pool: pixels first, on a 2 MiB boundary, control
// words behind them.
type region struct {
	pixels    []byte
	words     []byte
	locked    bool
	hugeBytes int
	node      int // -1 = not known
	size      int // bytes of the whole mapping
	free      func() error
}

// regionPlan is the arithmetic of a region before any memory is taken.
type regionPlan struct {
	pixels int // bytes, whole pages
	guard  int // bytes between pixels and words that no one may touch
	words  int // bytes, whole pages
	huge   bool
}

type regionOptions struct {
	name         string
	lock         bool
	node         int
	log          *slog.Logger
	firstWarning func() bool
}

// planRegion rounds pixels and words to pages, of 4 KiB on most machines, of 16
// or 64 KiB with some kernels for arm64. Regions of at least one huge
// page are rounded up to whole ones when they are asked for, since the kernel
// gives none for a broken rest.
func planRegion(pixels, slots, page int, huge bool) regionPlan {
	huge = huge && pixels >= hugePage
	p := regionPlan{pixels: alignUp(pixels, page), guard: page, words: alignUp(slots*wordStride, page), huge: huge}
	if huge {
		p.pixels = alignUp(pixels, hugePage)
	}
	return p
}

func (p regionPlan) total() int { return p.pixels + p.guard + p.words }

// most is what the region takes in the dearest way of allocating it.
func (p regionPlan) most() int {
	if p.huge {
		return alignUp(p.total(), hugePage)
	}
	return p.total()
}

// word is the control word of slot i.
func (r *region) word(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.words[i*wordStride]))
}

func (r *region) base() uintptr     { return uintptr(unsafe.Pointer(unsafe.SliceData(r.pixels))) }
func (r *region) wordBase() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(r.words))) }
func (r *region) bytes() int        { return r.size }
func (r *region) release() error    { return r.free() }

func (r *region) contains(b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	from := r.base()
	return len(b) > 0 && at >= from && at+uintptr(len(b)) <= from+uintptr(len(r.pixels))
}

// heapRegion is a region in Go's own memory: for systems without the calls,
// and for the race detector, which sees no other memory.
func heapRegion(p regionPlan) *region {
	mem := make([]byte, p.total()+slotAlign)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	skip := int(-at & (slotAlign - 1))
	mem = mem[skip : skip+p.total()]
	words := p.pixels + p.guard
	return &region{
		pixels: mem[:p.pixels:p.pixels], words: mem[words:], node: -1,
		size: p.total(), free: func() error { return nil },
	}
}
