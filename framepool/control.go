package framepool

// Control is what a decoder outside of Go needs to lend slots by itself. The
// control word of slot i is the 64-bit integer at Words + i*WordStride and its
// pixels start at Base + i*SlotStride. Words are 64 bytes apart, so that two
// cores do not share a cache line, and lie behind the pixels in the same
// mapping.
//
// A word holds the references in its low half and the generation in its high
// half, to be changed by atomics alone, each with the order that it is named for
// at least (Go's are sequentially consistent), so that whoever takes a slot sees
// what the one before has done with it, on processors too that reorder stores:
//
//	acquire   compare-and-swap (gen, 0) → (gen+1, 1)
//	retain    add 1, only while holding a reference; any order
//	release   subtract 1; do not touch the slot afterwards
//
// The addresses are valid while the pool is open, and after that as long as
// the decoder holds a reference.
type Control struct {
	Words      uintptr
	WordStride int // bytes
	Base       uintptr
	SlotStride int // bytes, a multiple of 4096
	Slots      int
}

// Control gives the addresses of the region. The pool must be open.
func (p *Pool) Control() Control {
	return Control{
		Words: p.region.wordBase(), WordStride: wordStride,
		Base: p.region.base(), SlotStride: p.slotStride, Slots: p.slots,
	}
}
