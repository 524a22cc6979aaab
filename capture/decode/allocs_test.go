//go:build cgo && !race

package decode_test

import "testing"

func TestAllocationsPerFrame(t *testing.T) {
	l := newLoop(t)
	for range 50 {
		l.step(t)
	}
	// The frame's handle and the record behind it.
	if n := testing.AllocsPerRun(100, func() { l.step(t) }); n > 4 {
		t.Errorf("%v allocations a frame, want at most 4", n)
	}
}
