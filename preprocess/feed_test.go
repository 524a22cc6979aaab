package preprocess

import (
	"bytes"
	"strings"
	"testing"

	"edgecam/framepool"
	"edgecam/platform/cuda"
)

// poolFrame is a picture of a pool of its own whose bytes are all n; the pool
// is shown to the device if m is not nil.
func poolFrame(t *testing.T, m framepool.Mapper, w, h int, n byte) (*framepool.Pool, *framepool.Frame) {
	t.Helper()
	l, err := framepool.NewLayout(framepool.NV12, w, h)
	if err != nil {
		t.Fatal(err)
	}
	p, err := framepool.New(framepool.Options{Name: "feed", Layout: l, Slots: 1, Node: -1, Mapper: m})
	if err != nil {
		t.Fatal(err)
	}
	b, ok := p.TryGet()
	if !ok {
		t.Fatal("no slot")
	}
	for i := range 2 {
		for k := range b.Plane(i) {
			b.Plane(i)[k] = n
		}
	}
	return p, b.Seal(framepool.Meta{Camera: "feed", Seq: uint64(n), Format: framepool.NV12, Width: w, Height: h, Offset: l.Offset, Stride: l.Stride})
}

func always(s Strategy) func(*framepool.Meta) Strategy {
	return func(*framepool.Meta) Strategy { return s }
}

// feedRig is a feed on the stand-in driver.
type feedRig struct {
	*standIn
	feed   *Feed
	stream cuda.Stream
}

func newFeedRig(t *testing.T) *feedRig {
	t.Helper()
	r := &feedRig{standIn: openStandIn(t)}
	r.do(t, func(c *cuda.Context) (err error) {
		if r.stream, err = c.NewStream(); err != nil {
			return err
		}
		r.feed, err = NewFeed(c, r.stream)
		return err
	})
	return r
}

func (r *feedRig) place(t *testing.T, s Strategy, frames ...*framepool.Frame) []Source {
	t.Helper()
	out := make([]Source, len(frames))
	r.do(t, func(c *cuda.Context) error { return r.feed.Place(c, frames, always(s), out) })
	return out
}

func TestFeedPlaces(t *testing.T) {
	r := newFeedRig(t)
	mapper := cuda.NewMapper(r.dev)
	pool, mapped := poolFrame(t, mapper, 64, 48, 1)
	plainPool, plain := poolFrame(t, nil, 66, 40, 2)
	var freed int
	device := framepool.NewDeviceFrame(
		framepool.Meta{Format: framepool.NV12, Width: 4, Height: 4, Stride: [3]int{256, 256}}, [3]uintptr{0x100, 0x200}, func() { freed++ })
	frames := []*framepool.Frame{mapped, plain, device}
	tests := []struct {
		strategy Strategy
		copied   []bool
	}{
		{Mapped, []bool{false, true, false}},
		{Shared, []bool{false, true, false}},
		{Staged, []bool{true, true, false}},
		{Heap, []bool{true, true, false}},
	}
	for _, tt := range tests {
		t.Run(string(tt.strategy), func(t *testing.T) {
			before := r.feed.Stats()
			out := r.place(t, tt.strategy, frames...)
			copies := uint64(0)
			for i, src := range out {
				in, isMapped := SourceOf(frames[i])
				if src.Meta != frames[i].Meta() {
					t.Errorf("picture %d: description of another", i)
				}
				if inPlace := isMapped && in.Planes == src.Planes; inPlace == tt.copied[i] {
					t.Errorf("picture %d: read in place: %v", i, inPlace)
				}
				if !tt.copied[i] {
					continue
				}
				copies++
				for p := range 2 {
					got := make([]byte, len(frames[i].Plane(p)))
					r.do(t, func(c *cuda.Context) error { return c.CopyOutNow(got, src.Planes[p]) })
					if !bytes.Equal(got, frames[i].Plane(p)) {
						t.Errorf("picture %d: plane %d on the device is not the picture's", i, p)
					}
				}
			}
			r.do(t, r.feed.Done)
			r.do(t, r.feed.Drain)
			after := r.feed.Stats()
			if after.Copied-before.Copied != copies || after.InPlace-before.InPlace != 3-copies {
				t.Errorf("counted %d copied and %d in place", after.Copied-before.Copied, after.InPlace-before.InPlace)
			}
		})
	}
	for _, f := range frames {
		f.Release()
	}
	r.do(t, r.feed.Close)
	if freed != 0 {
		t.Error("device picture given back on the device's goroutine")
	}
	r.feed.Release()
	if freed != 1 {
		t.Errorf("device picture given back %d times", freed)
	}
	pool.Close()
	plainPool.Close()
	if !pool.Reap() || !plainPool.Reap() {
		t.Error("a pool is still in use")
	}
	r.do(t, func(c *cuda.Context) error { return c.FreeStream(r.stream) })
	if n := r.live(); n != 0 {
		t.Errorf("%d objects of the driver are left", n)
	}
}

// A picture is held until the device has passed the batch, whatever the caller
// does with its own handle.
func TestFeedHoldsPictures(t *testing.T) {
	r := newFeedRig(t)
	held := framepool.Live()
	pool, f := poolFrame(t, cuda.NewMapper(r.dev), 64, 48, 1)
	r.place(t, Mapped, f)
	r.do(t, r.feed.Done)
	f.Release()
	r.pending(2)
	for want := range 3 {
		if _, ok := pool.TryGet(); ok {
			t.Fatalf("query %d: the slot is free while the device reads it", want)
		}
		r.do(t, r.feed.Settle)
		r.feed.Release()
	}
	b, ok := pool.TryGet()
	if !ok {
		t.Fatal("the slot did not come back")
	}
	b.Discard()
	r.do(t, r.feed.Close)
	r.feed.Release()
	pool.Close()
	if got := framepool.Live() - held; got != 0 {
		t.Errorf("%d handles are left", got)
	}
}

// Batches come and go while the device is behind: the arena is used round and
// round, and nothing of a batch is overwritten before it has passed.
func TestFeedArenaGoesRound(t *testing.T) {
	r := newFeedRig(t)
	var frames []*framepool.Frame
	for i := range 6 {
		f := framepool.NewHeapFrame(framepool.Meta{Format: framepool.Gray8, Width: 100, Height: 10 * (i + 1), Stride: [3]int{100}},
			[][]byte{bytes.Repeat([]byte{byte(i + 1)}, 1000*(i+1))})
		frames = append(frames, f)
	}
	type batch struct {
		frames []*framepool.Frame
		out    []Source
	}
	intact := func(lap int, what string, b *batch) {
		for i, src := range b.out {
			got := make([]byte, len(b.frames[i].Plane(0)))
			r.do(t, func(c *cuda.Context) error { return c.CopyOutNow(got, src.Planes[0]) })
			if !bytes.Equal(got, b.frames[i].Plane(0)) {
				t.Fatalf("lap %d: picture %d of the batch %s is not what was placed", lap, i, what)
			}
		}
	}
	var last *batch
	both := 0
	for lap := range 60 {
		b := &batch{frames: []*framepool.Frame{frames[5], frames[4]}} // the largest first
		if lap > 0 {
			b.frames = []*framepool.Frame{frames[lap%6], frames[(lap*5+1)%6]}
		}
		r.pending(int32(lap % 3))
		b.out = r.place(t, Heap, b.frames...)
		intact(lap, "at hand", b)
		if len(r.feed.flights) > 0 { // the one before has not passed
			both++
			intact(lap, "before", last)
		}
		r.do(t, r.feed.Done)
		last = b
	}
	if both < 20 {
		t.Errorf("the device was behind %d times: the test tests nothing", both)
	}
	if n := r.calls("cuMemAlloc_v2"); n > 2 {
		t.Errorf("the arena was made %d times", n)
	}
	r.do(t, r.feed.Close)
	r.feed.Release()
	for _, f := range frames {
		f.Release()
	}
}

func TestFeedFailures(t *testing.T) {
	r := newFeedRig(t)
	held := framepool.Live()
	pool, f := poolFrame(t, nil, 64, 48, 1)
	frames, out := []*framepool.Frame{f}, make([]Source, 1)
	place := func() error {
		return r.dev.Do(t.Context(), "place", func(c *cuda.Context) error { return r.feed.Place(c, frames, always(Staged), out) })
	}
	r.fail("cuMemAlloc_v2", 2, 0)
	if err := place(); err == nil || !strings.Contains(err.Error(), "(2)") {
		t.Errorf("no memory: %v", err)
	}
	r.fail("", 0, 0)
	if err := place(); err != nil {
		t.Fatal(err)
	}
	if err := place(); err == nil || err.Error() != "place pictures: the batch before was not done" {
		t.Errorf("placed twice: %v", err)
	}
	r.do(t, r.feed.Cancel)
	r.fail("cuMemcpyHtoDAsync_v2", 1, 0)
	if err := place(); err == nil {
		t.Error("copy refused: no error")
	}
	r.fail("", 0, 0)
	if err := place(); err != nil {
		t.Errorf("after a failed batch: %v", err)
	}
	r.do(t, r.feed.Done)
	f.Release()
	r.do(t, r.feed.Close)
	r.feed.Release()
	pool.Close()
	if got := framepool.Live() - held; got != 0 {
		t.Errorf("%d handles are left", got)
	}
}

func TestFeedAbandon(t *testing.T) {
	r := newFeedRig(t)
	held := framepool.Live()
	pool, f := poolFrame(t, nil, 64, 48, 1)
	r.place(t, Staged, f)
	r.do(t, r.feed.Done)
	r.place(t, Staged, f)
	f.Release()
	r.feed.Abandon()
	r.feed.Abandon()
	if got := framepool.Live() - held; got != 0 {
		t.Errorf("%d handles are left", got)
	}
	pool.Close()
	if !pool.Reap() {
		t.Error("the pool is still in use")
	}
}

func TestArena(t *testing.T) {
	a := arena{size: 4096}
	type piece struct{ at, cost, n int }
	var taken []piece
	want := 0
	for lap := range 500 {
		n := 1 + (lap*97)%1200
		at, cost, ok := a.take(n)
		if !ok {
			if len(taken) == 0 {
				t.Fatalf("lap %d: no room for %d bytes in an empty ring", lap, n)
			}
			a.give(taken[0].cost)
			want -= taken[0].cost
			taken = taken[1:]
			continue
		}
		want += cost
		if at%arenaAlign != 0 || at+n > a.size || a.used != want || a.used > a.size {
			t.Fatalf("lap %d: piece of %d at %d, used %d of %d", lap, n, at, a.used, want)
		}
		for _, p := range taken {
			if at < p.at+p.n && p.at < at+n {
				t.Fatalf("lap %d: piece at %d overlaps that at %d", lap, at, p.at)
			}
		}
		taken = append(taken, piece{at, cost, n})
	}
	if _, _, ok := a.take(4097); ok {
		t.Error("a piece larger than the ring")
	}
}
