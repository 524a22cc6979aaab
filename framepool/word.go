package framepool

import "sync/atomic"

// A control word is one 64-bit atomic: generation in the high half, references
// in the low half. The functions here are the whole protocol; decoders in C
// follow the same one with C11 atomics.
//
//	free      references = 0
//	acquire   compare-and-swap (gen, 0) → (gen+1, 1)
//	retain    add 1, only while holding a reference
//	release   subtract 1; at 0 the slot is free
//	retired   references = 1<<31: a closed pool has taken the free slot away
//
// Generations wrap after 2³² leases of one slot, four years at 30 a second.
const retired = 1 << 31

func pack(gen, refs uint32) uint64       { return uint64(gen)<<32 | uint64(refs) }
func unpack(v uint64) (gen, refs uint32) { return uint32(v >> 32), uint32(v) }

// acquireWord takes a free slot and gives its new generation.
func acquireWord(w *atomic.Uint64) (gen uint32, ok bool) {
	for {
		v := w.Load()
		g, refs := unpack(v)
		if refs != 0 {
			return 0, false
		}
		if w.CompareAndSwap(v, pack(g+1, 1)) {
			return g + 1, true
		}
	}
}

// retainWord adds a reference to a slot that is held in generation gen; it
// fails where no one holds that generation.
func retainWord(w *atomic.Uint64, gen uint32) bool {
	for {
		v := w.Load()
		if g, refs := unpack(v); g != gen || refs == 0 || refs >= retired {
			return false
		}
		if w.CompareAndSwap(v, v+1) {
			return true
		}
	}
}

// releaseWord ends a reference of generation gen and says whether it was the
// last. beforeLast, if not nil, runs while the caller is the only holder. It
// fails where no one holds that generation.
func releaseWord(w *atomic.Uint64, gen uint32, beforeLast func()) (last, ok bool) {
	for {
		v := w.Load()
		g, refs := unpack(v)
		if g != gen || refs == 0 || refs >= retired {
			return false, false
		}
		if refs == 1 && beforeLast != nil {
			beforeLast()
		}
		if w.CompareAndSwap(v, v-1) {
			return refs == 1, true
		}
	}
}

// retireWord takes a free slot away for good; it says false while it is held.
func retireWord(w *atomic.Uint64) bool {
	for {
		v := w.Load()
		gen, refs := unpack(v)
		switch {
		case refs >= retired:
			return true
		case refs > 0:
			return false
		case w.CompareAndSwap(v, pack(gen, retired)):
			return true
		}
	}
}

// heldWord says whether someone holds the slot.
func heldWord(w *atomic.Uint64) bool {
	_, refs := unpack(w.Load())
	return refs > 0 && refs < retired
}
