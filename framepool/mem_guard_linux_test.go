//go:build linux && !race

package framepool_test

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"edgecam/framepool"
)

// TestGuards writes every byte of every slot, and then one too many.
func TestGuards(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, size := range []int{64, 4096, 4160, 10048, 8192 - 64} {
		for guard, beyond := range map[framepool.Guard]int{framepool.GuardAbove: size, framepool.GuardBelow: -1} {
			l := framepool.Layout{Format: framepool.Gray8, Width: 64, Height: 1, Stride: [3]int{64}, Size: size}
			budget := framepool.NewBudget(1 << 20)
			p, err := framepool.New(framepool.Options{Layout: l, Slots: 3, Node: -1, Guard: guard, Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			c := p.Control()
			if c.Base%64 != 0 || c.SlotStride%4096 != 0 {
				t.Errorf("base %#x, stride %d", c.Base, c.SlotStride)
			}
			for i := range c.Slots {
				slot := unsafe.Add(unsafe.Pointer(nil), c.Base+uintptr(i*c.SlotStride)) //nolint:govet // memory outside of Go's heap
				for k := range size {
					*(*byte)(unsafe.Add(slot, k)) = byte(k)
				}
				if !faults(func() { *(*byte)(unsafe.Add(slot, beyond)) = 1 }) {
					t.Errorf("size %d, slot %d: a byte at %d can be written", size, i, beyond)
				}
			}
			p.Close()
			if budget.Used() != 0 {
				t.Errorf("%d bytes are still reserved", budget.Used())
			}
		}
	}
}

func faults(f func()) (fault bool) {
	defer func() { fault = recover() != nil }()
	f()
	return false
}
