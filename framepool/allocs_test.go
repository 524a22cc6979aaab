//go:build !framedebug && !race

package framepool_test

import (
	"testing"

	"edgecam/framepool"
)

func TestAllocationCeilings(t *testing.T) {
	p := newPool(t, framepool.Options{Slots: 8})
	d := cdecoder{p.Control()}
	m := meta(p, 1)
	box := framepool.NewMailbox()
	f := get(t, p).Seal(m)
	defer f.Release()
	for _, tt := range []struct {
		name    string
		ceiling float64
		do      func()
	}{
		{"get, seal, release", 1, func() { get(t, p).Seal(m).Release() }},
		{"get, discard", 1, func() { get(t, p).Discard() }},
		{"adopt, release", 1, func() {
			slot, gen, _ := d.acquire()
			f := p.Adopt(slot, gen, m)
			d.release(slot)
			f.Release()
		}},
		{"retain, release", 1, func() { f.Retain().Release() }},
		{"read", 0, func() { _, _, _ = f.Plane(0), f.Stride(0), f.Meta() }},
		{"mailbox", 1, func() {
			box.Put(f.Retain())
			<-box.Ready()
			g, _ := box.TryTake()
			g.Release()
		}},
		{"stats", 0, func() { p.Stats() }},
	} {
		if n := testing.AllocsPerRun(200, tt.do); n > tt.ceiling {
			t.Errorf("%s: %.0f allocations, at most %.0f", tt.name, n, tt.ceiling)
		}
	}
}
