package framepool_test

import (
	"testing"

	"edgecam/framepool"
)

// The ceilings hold the promise of the hot path: one small allocation a
// handle, none for pixels, none to pass a frame on. Builds with framedebug
// keep stacks and are exempt; see allocs_test.go.

func BenchmarkGetSealRelease(b *testing.B) {
	p := newPool(b, framepool.Options{Slots: 8})
	m := meta(p, 1)
	b.ReportAllocs()
	for b.Loop() {
		get(b, p).Seal(m).Release()
	}
}

func BenchmarkAdoptRelease(b *testing.B) {
	p := newPool(b, framepool.Options{Slots: 8})
	d := cdecoder{p.Control()}
	m := meta(p, 1)
	b.ReportAllocs()
	for b.Loop() {
		slot, gen, _ := d.acquire()
		f := p.Adopt(slot, gen, m)
		d.release(slot)
		f.Release()
	}
}

func BenchmarkRetainRelease(b *testing.B) {
	p := newPool(b, framepool.Options{})
	f := get(b, p).Seal(meta(p, 1))
	defer f.Release()
	b.ReportAllocs()
	for b.Loop() {
		f.Retain().Release()
	}
}

func BenchmarkPlane(b *testing.B) {
	p := newPool(b, framepool.Options{})
	f := get(b, p).Seal(meta(p, 1))
	defer f.Release()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n += len(f.Plane(1))
	}
	if n == 0 {
		b.Error("empty plane")
	}
}

func BenchmarkMailbox(b *testing.B) {
	p := newPool(b, framepool.Options{})
	m := framepool.NewMailbox()
	defer m.Close()
	f := get(b, p).Seal(meta(p, 1))
	b.ReportAllocs()
	for b.Loop() {
		m.Put(f)
		<-m.Ready()
		f, _ = m.TryTake()
	}
	f.Release()
}

func BenchmarkStats(b *testing.B) {
	p := newPool(b, framepool.Options{Slots: 16})
	b.ReportAllocs()
	for b.Loop() {
		p.Stats()
	}
}

// BenchmarkNew is what a change of geometry costs: 12 slots of 1080p.
func BenchmarkNew(b *testing.B) {
	l := layout(b, framepool.I420, 1920, 1080)
	for name, o := range map[string]framepool.Options{
		"plain":       {Layout: l, Slots: 12},
		"locked":      {Layout: l, Slots: 12, Lock: true},
		"locked+huge": {Layout: l, Slots: 12, Lock: true, HugePages: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := framepool.New(o)
				if err != nil {
					b.Fatal(err)
				}
				p.Close()
			}
		})
	}
}
