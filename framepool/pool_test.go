package framepool_test

import (
	"testing"

	"edgecam/framepool"
)

func small(t testing.TB, o framepool.Options) *framepool.Pool {
	t.Helper()
	if o.Name == "" {
		o.Name = "gate"
	}
	if o.Slots == 0 {
		o.Slots = 3
	}
	if o.Layout.Size == 0 {
		l, err := framepool.NewLayout(framepool.I420, 64, 48)
		if err != nil {
			t.Fatal(err)
		}
		o.Layout = l
	}
	p, err := framepool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func meta(p *framepool.Pool, seq uint64) framepool.Meta {
	l := p.Layout()
	return framepool.Meta{Camera: "gate", Seq: seq, Format: l.Format, Width: l.Width, Height: l.Height, Offset: l.Offset, Stride: l.Stride}
}

func TestLeaseReturnsSlotWithLastHandle(t *testing.T) {
	b := framepool.NewBudget(0)
	p := small(t, framepool.Options{Slots: 1, Budget: b, Lock: true, HugePages: true, Node: 0})
	buf, ok := p.TryGet()
	if !ok {
		t.Fatal("fresh pool has no slot")
	}
	buf.Plane(0)[0] = 42
	f := buf.Seal(meta(p, 1))
	g := f.Retain()
	f.Release()
	if _, ok := p.TryGet(); ok {
		t.Fatal("slot lent twice")
	}
	if g.Plane(0)[0] != 42 || !p.Contains(g.Plane(0)) {
		t.Fatal("plane is not the slot's memory")
	}
	p.Close()
	if p.Reap() {
		t.Fatal("region given back under a live handle")
	}
	g.Release()
	if !p.Reap() || b.Used() != 0 || framepool.Live() != 0 {
		t.Fatalf("reap %v, used %d, live %d", p.Reap(), b.Used(), framepool.Live())
	}
}
