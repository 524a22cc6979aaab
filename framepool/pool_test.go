package framepool_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"edgecam/framepool"
)

// newPool makes a pool that the test's end closes: 3 slots of 64×48 I420,
// where o says nothing else.
func newPool(t testing.TB, o framepool.Options) *framepool.Pool {
	t.Helper()
	if o.Name == "" {
		o.Name = "gate"
	}
	if o.Slots == 0 {
		o.Slots = 3
	}
	if o.Layout.Size == 0 {
		o.Layout = layout(t, framepool.I420, 64, 48)
	}
	p, err := framepool.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func layout(t testing.TB, f framepool.PixelFormat, w, h int) framepool.Layout {
	t.Helper()
	l, err := framepool.NewLayout(f, w, h)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// meta describes a picture that fills the pool's layout.
func meta(p *framepool.Pool, seq uint64) framepool.Meta {
	l := p.Layout()
	return framepool.Meta{Camera: "gate", Seq: seq, Format: l.Format, Width: l.Width, Height: l.Height, Offset: l.Offset, Stride: l.Stride}
}

func get(t testing.TB, p *framepool.Pool) *framepool.Buffer {
	t.Helper()
	b, ok := p.TryGet()
	if !ok {
		t.Fatalf("no free slot: %+v", p.Stats())
	}
	return b
}

func TestLeaseReturnsSlotWithLastHandle(t *testing.T) {
	budget := framepool.NewBudget(0)
	p := newPool(t, framepool.Options{Slots: 1, Budget: budget})
	buf := get(t, p)
	buf.Plane(0)[0] = 42
	f := buf.Seal(meta(p, 1))
	g := f.Retain()
	f.Release()
	if _, ok := p.TryGet(); ok {
		t.Fatal("slot lent while a handle lives")
	}
	if got := g.Plane(0)[0]; got != 42 {
		t.Errorf("first sample %d, want 42", got)
	}
	g.Release()
	get(t, p).Discard()
	want := framepool.Stats{Name: "gate", Slots: 1, HighWater: 1, Acquired: 2, Exhausted: 1, Bytes: budget.Used()}
	got := p.Stats()
	got.Node = 0 // depends on the host
	if got != want {
		t.Errorf("stats %+v\nwant  %+v", got, want)
	}
}

func TestClosedPoolGivesRegionBackWithLastReference(t *testing.T) {
	type world struct {
		p *framepool.Pool
		d cdecoder
	}
	tests := []struct {
		name string
		hold func(w world) (release func())
	}{
		{"frame", func(w world) func() { b, _ := w.p.TryGet(); return b.Seal(meta(w.p, 1)).Release }},
		{"buffer", func(w world) func() { b, _ := w.p.TryGet(); return b.Discard }},
		{"decoder", func(w world) func() { i, _, _ := w.d.acquire(); return func() { w.d.release(i) } }},
		{"frame after decoder", func(w world) func() {
			i, gen, _ := w.d.acquire()
			f := w.p.Adopt(i, gen, meta(w.p, 1))
			return func() { w.d.release(i); f.Release() }
		}},
		{"decoder after frame", func(w world) func() {
			i, gen, _ := w.d.acquire()
			f := w.p.Adopt(i, gen, meta(w.p, 1))
			return func() { f.Release(); w.d.release(i) }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			budget := framepool.NewBudget(0)
			p := newPool(t, framepool.Options{Budget: budget})
			if p.Reap() {
				t.Fatal("open pool reaped")
			}
			release := tt.hold(world{p, cdecoder{p.Control()}})
			p.Close()
			if p.Reap() || budget.Used() == 0 {
				t.Fatal("region given back under a reference")
			}
			if s := p.Stats(); !s.Closed || s.InUse != 1 {
				t.Errorf("stats %+v, want closed with one slot in use", s)
			}
			if _, ok := p.TryGet(); ok {
				t.Error("closed pool lends")
			}
			release()
			if !p.Reap() || !p.Reap() {
				t.Error("region not given back")
			}
			p.Close()
			if budget.Used() != 0 {
				t.Errorf("budget has %d bytes in use after the end", budget.Used())
			}
			if s := p.Stats(); s.InUse != 0 || s.HighWater != 1 || s.Acquired != 1 {
				t.Errorf("stats after the end %+v", s)
			}
		})
	}
}

// A decoder that still scans the words of a closed pool, against the rule,
// finds no slot there as long as the region stands.
func TestClosedPoolHasNoSlotForDecoders(t *testing.T) {
	p := newPool(t, framepool.Options{})
	d := cdecoder{p.Control()}
	f := get(t, p).Seal(meta(p, 1))
	p.Close()
	if i, _, ok := d.acquire(); ok {
		t.Errorf("slot %d acquired in a closed pool", i)
	}
	f.Release()
}

func TestAdoptSharesTheDecodersSlot(t *testing.T) {
	p := newPool(t, framepool.Options{Layout: layout(t, framepool.NV12, 65, 33)})
	d := cdecoder{p.Control()}
	slot, gen, ok := d.acquire()
	if !ok {
		t.Fatal("no slot")
	}
	px := d.pixels(slot)
	for i := range px {
		px[i] = byte(i)
	}
	m := meta(p, 9)
	m.Width, m.Height = 63, 31
	m.Offset[0] += 2*m.Stride[0] + 2 // cropped left and top
	m.Offset[1] += m.Stride[1] + 2
	f := p.Adopt(slot, gen, m)
	for i, want := range []int{30*128 + 63, 15*128 + 64} {
		b := f.Plane(i)
		if len(b) != want || cap(b) != want || !p.Contains(b) || b[0] != px[m.Offset[i]] {
			t.Errorf("plane %d: %d bytes from %d, want %d from %d inside the region", i, len(b), b[0], want, px[m.Offset[i]])
		}
	}
	if f.Plane(2) != nil || f.Plane(-1) != nil || f.Stride(1) != 128 || f.Meta().Seq != 9 {
		t.Errorf("planes %v %v, stride %d, seq %d", f.Plane(2), f.Plane(-1), f.Stride(1), f.Meta().Seq)
	}
	d.release(slot)
	if n := p.Stats().InUse; n != 1 {
		t.Errorf("%d slots in use under the frame, want 1", n)
	}
	f.Release()
	if n := p.Stats().InUse; n != 0 {
		t.Errorf("%d slots in use at the end, want 0", n)
	}
}

func TestContains(t *testing.T) {
	p := newPool(t, framepool.Options{})
	f := get(t, p).Seal(meta(p, 1))
	defer f.Release()
	for name, tt := range map[string]struct {
		b    []byte
		want bool
	}{
		"plane":   {f.Plane(1), true},
		"foreign": {make([]byte, 8), false},
		"empty":   {f.Plane(0)[:0], false},
		"nil":     {nil, false},
	} {
		if got := p.Contains(tt.b); got != tt.want {
			t.Errorf("%s: contains %v, want %v", name, got, tt.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := layout(t, framepool.I420, 64, 48)
	with := func(change func(o *framepool.Options)) framepool.Options {
		o := framepool.Options{Name: "gate", Layout: good, Slots: 2}
		change(&o)
		return o
	}
	tests := []struct {
		name string
		o    framepool.Options
		err  string
	}{
		{"no format", with(func(o *framepool.Options) { o.Layout.Format = 0 }), "make frame pool gate of 2 slots of 6.0 KiB: layout: pixel format unknown(0)"},
		{"no size", with(func(o *framepool.Options) { o.Layout.Height = 0 }), "make frame pool gate of 2 slots of 6.0 KiB: layout: size 64×0, want 1 to 32768 a side"},
		{"absurd size", with(func(o *framepool.Options) { o.Layout.Width = 1 << 20 }), "make frame pool gate of 2 slots of 6.0 KiB: layout: size 1048576×48, want 1 to 32768 a side"},
		{"odd stride", with(func(o *framepool.Options) { o.Layout.Stride[1] = 65 }), "make frame pool gate of 2 slots of 6.0 KiB: layout: plane 1: stride 65 is no multiple of 64"},
		{"short stride", with(func(o *framepool.Options) { o.Layout.Width = 65 }), "make frame pool gate of 2 slots of 6.0 KiB: plane 0: stride 64 is less than a row of 65 bytes"},
		{"plane leaves the slot", with(func(o *framepool.Options) { o.Layout.Size-- }), ""},
		{"negative offset", with(func(o *framepool.Options) { o.Layout.Offset[2] = -64 }), "make frame pool gate of 2 slots of 6.0 KiB: plane 2: bytes -64 to 1440 leave the slot of 6144"},
		{"no slots", with(func(o *framepool.Options) { o.Slots = 0 }), "make frame pool gate of 0 slots of 6.0 KiB: 0 slots, want 1 to 4096"},
		{"too many slots", with(func(o *framepool.Options) { o.Slots = 5000 }), "make frame pool gate of 5000 slots of 6.0 KiB: 5000 slots, want 1 to 4096"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := framepool.New(tt.o)
			if tt.err == "" { // the last row's padding may be cut
				if err != nil {
					t.Fatal(err)
				}
				p.Close()
				return
			}
			if err == nil || err.Error() != tt.err {
				t.Errorf("got  %v\nwant %s", err, tt.err)
			}
		})
	}
}

func TestOptionsBytesAreWhatNewReserves(t *testing.T) {
	for _, huge := range []bool{false, true} {
		for _, slots := range []int{1, 7, 80, 1000} {
			o := framepool.Options{Name: "gate", Layout: layout(t, framepool.NV12, 320, 180), Slots: slots, HugePages: huge, Budget: framepool.NewBudget(0)}
			p := newPool(t, o)
			if got := p.Stats().Bytes; got != o.Budget.Used() || got > o.Bytes() || o.Budget.HighWater() != o.Bytes() {
				t.Errorf("%d slots, huge %v: the pool has %d bytes, the budget %d, at most %d and %d", slots, huge, got, o.Budget.Used(), o.Budget.HighWater(), o.Bytes())
			}
			p.Close()
			if o.Budget.Used() != 0 {
				t.Errorf("%d slots, huge %v: %d bytes in use after the end", slots, huge, o.Budget.Used())
			}
		}
	}
	if n := (framepool.Options{Slots: 1}).Bytes(); n != 0 {
		t.Errorf("%d bytes of options that New refuses", n)
	}
}

// Lending, looking and closing from everywhere at once: the one thing that
// must not happen is a touch of memory that is gone.
func TestCloseAgainstEverything(t *testing.T) {
	for range 100 {
		budget := framepool.NewBudget(0)
		p := newPool(t, framepool.Options{Budget: budget})
		m := meta(p, 1)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				<-start
				for {
					b, ok := p.TryGet()
					if !ok && p.Stats().Closed {
						return
					}
					if ok {
						b.Seal(m).Release()
					}
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				<-start
				p.Stats()
				p.Close()
				p.Reap()
			})
		}
		close(start)
		wg.Wait()
		if !p.Reap() || budget.Used() != 0 {
			t.Fatalf("reaped %v, %d bytes in use", p.Reap(), budget.Used())
		}
	}
}

func TestNewStaysInTheBudget(t *testing.T) {
	one := newPool(t, framepool.Options{}).Stats().Bytes
	budget := framepool.NewBudget(2*one + one/2)
	a := newPool(t, framepool.Options{Budget: budget})
	newPool(t, framepool.Options{Budget: budget})
	_, err := framepool.New(framepool.Options{Name: "yard", Layout: a.Layout(), Slots: 3, Budget: budget})
	var be *framepool.BudgetError
	if !errors.As(err, &be) || *be != (framepool.BudgetError{Want: one, Used: 2 * one, Limit: 2*one + one/2}) {
		t.Fatalf("got %v", err)
	}
	if want := "make frame pool yard of 3 slots of 6.0 KiB: reserve 28.0 KiB: 56.0 KiB of 70.0 KiB are in use: give frames more memory or run fewer or smaller cameras"; one == 28<<10 && err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	a.Close()
	newPool(t, framepool.Options{Name: "yard", Budget: budget})
}

func TestBrokenOwnershipPanics(t *testing.T) {
	tests := []struct {
		name string
		do   func(p *framepool.Pool)
		want string
	}{
		{"release twice", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.Release()
		}, "framepool: frame gate/4 released twice"},
		{"retain after release", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.Retain()
		}, "framepool: retain of frame gate/4 after its release"},
		{"plane after release", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.Plane(0)
		}, "framepool: plane of frame gate/4 after its release"},
		{"meta after release", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.Meta()
		}, "framepool: meta of frame gate/4 after its release"},
		{"stride after release", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.Stride(0)
		}, "framepool: stride of frame gate/4 after its release"},
		{"memory after release", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.Memory()
		}, "framepool: memory kind of frame gate/4 after its release"},
		{"device plane after release", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 4))
			f.Release()
			f.DevicePlane(0)
		}, "framepool: device plane of frame gate/4 after its release"},
		{"heap frame released twice", func(*framepool.Pool) {
			f := framepool.NewHeapFrame(framepool.Meta{Camera: "x", Format: framepool.Gray8, Width: 1, Height: 1, Stride: [3]int{1}}, [][]byte{{0}})
			f.Release()
			f.Release()
		}, "framepool: frame x/0 released twice"},
		{"seal twice", func(p *framepool.Pool) {
			b := get(t, p)
			defer b.Seal(meta(p, 1)).Release()
			b.Seal(meta(p, 2))
		}, "framepool: seal of a buffer of pool gate after Seal or Discard"},
		{"discard after seal", func(p *framepool.Pool) {
			b := get(t, p)
			defer b.Seal(meta(p, 1)).Release()
			b.Discard()
		}, "framepool: discard of a buffer of pool gate after Seal or Discard"},
		{"write after seal", func(p *framepool.Pool) {
			b := get(t, p)
			defer b.Seal(meta(p, 1)).Release()
			b.Plane(0)
		}, "framepool: plane of a buffer of pool gate after Seal or Discard"},
		{"seal of another format", func(p *framepool.Pool) {
			b := get(t, p)
			defer b.Discard()
			m := meta(p, 3)
			m.Format = framepool.NV12
			b.Seal(m)
		}, "framepool: seal picture gate/3 in pool gate: pixel format nv12 in a pool of yuv420p"},
		{"seal beyond the slot", func(p *framepool.Pool) {
			b := get(t, p)
			defer b.Discard()
			m := meta(p, 3)
			m.Height++
			b.Seal(m)
		}, "framepool: seal picture gate/3 in pool gate: plane 2: bytes 4608 to 6176 leave the slot of 6144"},
		{"seal of an empty picture", func(p *framepool.Pool) {
			b := get(t, p)
			defer b.Discard()
			m := meta(p, 3)
			m.Width = 0
			b.Seal(m)
		}, "framepool: seal picture gate/3 in pool gate: picture of 0×48 samples"},
		{"adopt of a free slot", func(p *framepool.Pool) { p.Adopt(1, 0, meta(p, 1)) }, "framepool: adopt slot 1 of pool gate: generation 0 is stale"},
		{"adopt of an old generation", func(p *framepool.Pool) {
			d := cdecoder{p.Control()}
			i, gen, _ := d.acquire()
			d.release(i)
			i, _, _ = d.acquire()
			defer d.release(i)
			p.Adopt(i, gen, meta(p, 1))
		}, "framepool: adopt slot 0 of pool gate: generation 1 is stale"},
		{"adopt of no slot", func(p *framepool.Pool) { p.Adopt(3, 1, meta(p, 1)) }, "framepool: adopt slot 3 of pool gate: it has 3"},
		{"adopt after the end", func(p *framepool.Pool) {
			p.Close()
			p.Adopt(0, 1, meta(p, 1))
		}, "framepool: adopt slot 0 of pool gate: generation 1 is stale"},
		{"retain after a decoder dropped what it did not hold", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 5))
			d := cdecoder{p.Control()}
			d.release(0)
			defer func() { // put the count right again, to end in order
				d.word(0).Add(1)
				f.Release()
			}()
			f.Retain()
		}, "framepool: retain of frame gate/5: generation 1 is stale"},
		{"release after a decoder dropped what it did not hold", func(p *framepool.Pool) {
			f := get(t, p).Seal(meta(p, 5))
			cdecoder{p.Control()}.release(0)
			f.Release()
		}, "framepool: release slot 0 of pool gate: generation 1 is stale"},
		{"budget released beyond its use", func(*framepool.Pool) {
			framepool.NewBudget(10).Release(1)
		}, "framepool: release 1 bytes of a budget that has 0 in use"},
		{"budget reserved below zero", func(*framepool.Pool) { _ = framepool.NewBudget(10).Reserve(-1) }, "framepool: reserve -1 bytes"},
		{"heap frame without planes", func(*framepool.Pool) {
			framepool.NewHeapFrame(framepool.Meta{Format: framepool.I420}, nil)
		}, "framepool: heap frame of format yuv420p with 0 planes"},
		{"heap frame with a short plane", func(*framepool.Pool) {
			framepool.NewHeapFrame(framepool.Meta{Format: framepool.Gray8, Width: 4, Height: 2, Stride: [3]int{8}}, [][]byte{make([]byte, 11)})
		}, "framepool: heap frame: plane 0 has 11 bytes, want 12"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPool(t, framepool.Options{})
			before := framepool.Live()
			defer func() {
				if got := fmt.Sprint(recover()); got != tt.want {
					t.Errorf("panic %s\nwant  %s", got, tt.want)
				}
				if n := framepool.Live() - before; n != 0 {
					t.Errorf("%d handles left", n)
				}
			}()
			tt.do(p)
		})
	}
}

func TestHeapFrame(t *testing.T) {
	y, cb, cr := make([]byte, 4*8), make([]byte, 16), make([]byte, 16)
	y[0], cb[0], cr[0] = 1, 2, 3
	m := framepool.Meta{Camera: "x", Seq: 1, Format: framepool.I420, Width: 5, Height: 3, Offset: [3]int{9, 9, 9}, Stride: [3]int{8, 8, 8}}
	f := framepool.NewHeapFrame(m, [][]byte{y, cb, cr})
	g := f.Retain()
	f.Release()
	for i, want := range []int{2*8 + 5, 8 + 3, 8 + 3} {
		if b := g.Plane(i); len(b) != want || b[0] != byte(i+1) {
			t.Errorf("plane %d: %d bytes from %d, want %d from %d", i, len(b), b[0], want, i+1)
		}
	}
	if _, ok := g.DevicePlane(0); ok || g.Memory() != framepool.MemoryHeap || g.Meta().Offset != [3]int{} {
		t.Errorf("memory %v, offset %v", g.Memory(), g.Meta().Offset)
	}
	g.Release()
}

// device is a GPU that knows no more than addresses.
type device struct {
	mapErr, unmapErr error
	host             uintptr
	size             int
	unmapped         int
}

func (d *device) Map(host uintptr, size int) (uintptr, error) {
	d.host, d.size = host, size
	return 0x7000_0000, d.mapErr
}

func (d *device) Unmap(host uintptr) error {
	if host == d.host {
		d.unmapped++
	}
	return d.unmapErr
}

func TestMapperSeesThePixels(t *testing.T) {
	d := &device{}
	budget := framepool.NewBudget(0)
	p := newPool(t, framepool.Options{Mapper: d, Budget: budget})
	c := p.Control()
	if d.host != c.Base || d.size < c.Slots*c.SlotStride || uintptr(d.size) > c.Words-c.Base {
		t.Errorf("mapped %#x+%d, pixels %#x, words %#x", d.host, d.size, c.Base, c.Words)
	}
	first := get(t, p) // slot 0 stays out: the address must count slots
	b := get(t, p)
	m := meta(p, 1)
	f := b.Seal(m)
	at, ok := f.DevicePlane(2)
	if want := 0x7000_0000 + uintptr(c.SlotStride+m.Offset[2]); !ok || at != want {
		t.Errorf("device plane %#x %v, want %#x", at, ok, want)
	}
	if _, ok := f.DevicePlane(3); ok || f.Memory() != framepool.MemoryPinned || !p.Stats().Device {
		t.Errorf("plane 3 %v, memory %v, stats %+v", ok, f.Memory(), p.Stats())
	}
	p.Close()
	if d.unmapped != 0 {
		t.Error("unmapped from the GPU under a frame")
	}
	f.Release()
	first.Discard()
	if !p.Reap() || d.unmapped != 1 || budget.Used() != 0 {
		t.Errorf("reaped %v, unmapped %d times, %d bytes in use", p.Reap(), d.unmapped, budget.Used())
	}
}

func TestMapperFailures(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	budget := framepool.NewBudget(0)
	p := newPool(t, framepool.Options{Mapper: &device{mapErr: errors.New("operation not supported")}, Budget: budget, Logger: logger})
	if _, ok := p.Device(); ok || p.Stats().Device {
		t.Error("unmapped pool has a device address")
	}
	if want := `level=WARN msg="frame pool is not visible to the GPU: pictures will be copied" pool=gate`; !strings.Contains(log.String(), want) {
		t.Errorf("log %s, want %s", &log, want)
	}
	p.Close()
	if budget.Used() != 0 {
		t.Errorf("%d bytes in use", budget.Used())
	}

	log.Reset()
	q := newPool(t, framepool.Options{Mapper: &device{unmapErr: errors.New("device lost")}, Budget: budget, Logger: logger})
	q.Close()
	if !q.Reap() || budget.Used() == 0 {
		t.Error("memory that the device may read was given back")
	}
	if want := `level=ERROR msg="unmap frame pool from the GPU: its memory is kept" pool=gate`; !strings.Contains(log.String(), want) {
		t.Errorf("log %s, want %s", &log, want)
	}
}

// keeper is a device that is lost, and whose context goes later.
type keeper struct {
	device

	kept []func()
}

func (k *keeper) Keep(_ uintptr, free func()) { k.kept = append(k.kept, free) }

func TestMapperKeepsUntilItIsHidden(t *testing.T) {
	budget := framepool.NewBudget(0)
	k := &keeper{device: device{unmapErr: errors.New("device lost")}}
	p := newPool(t, framepool.Options{Mapper: k, Budget: budget})
	p.Close()
	if !p.Reap() || budget.Used() == 0 || len(k.kept) != 1 {
		t.Fatalf("%d bytes in use, %d kept", budget.Used(), len(k.kept))
	}
	k.kept[0]()
	if budget.Used() != 0 {
		t.Errorf("%d bytes in use afterwards", budget.Used())
	}
}

func TestControl(t *testing.T) {
	p := newPool(t, framepool.Options{Slots: 5, Layout: layout(t, framepool.I420, 100, 60)})
	c := p.Control()
	if c.Base%4096 != 0 || c.SlotStride%4096 != 0 || c.SlotStride < p.Layout().Size || c.WordStride != 64 || c.Slots != 5 || c.Words%64 != 0 {
		t.Errorf("control %+v of %+v", c, p.Layout())
	}
	if c.Words < c.Base+uintptr(c.Slots*c.SlotStride) {
		t.Errorf("words %#x lie among the pixels from %#x", c.Words, c.Base)
	}
}
