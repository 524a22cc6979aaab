package framepool_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"edgecam/framepool"
)

// geometries are small, so that exhaustion, reuse and change come often.
var geometries = []struct {
	f    framepool.PixelFormat
	w, h int
}{
	{framepool.I420, 64, 48},
	{framepool.I420, 33, 17},
	{framepool.NV12, 64, 48},
	{framepool.Gray8, 16, 16},
	{framepool.I444P10, 65, 3},
	{framepool.P010, 31, 31},
	{framepool.I422, 100, 2},
}

// randomPool makes a pool of one of the geometries.
func randomPool(t *testing.T, r *rand.Rand, b *framepool.Budget) *framepool.Pool {
	g := geometries[r.IntN(len(geometries))]
	p, err := framepool.New(framepool.Options{Name: "gate", Layout: layout(t, g.f, g.w, g.h), Slots: 1 + r.IntN(6), Budget: b, Node: r.IntN(2) - 1, Lock: r.IntN(8) == 0})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// model is what must be true of one pool after any sequence of calls.
type model struct {
	p      *framepool.Pool
	d      cdecoder
	refs   map[int]int // slot → references that the model handed out
	high   int
	closed bool
}

func newModel(t *testing.T, r *rand.Rand, b *framepool.Budget) *model {
	p := randomPool(t, r, b)
	return &model{p: p, d: cdecoder{p.Control()}, refs: map[int]int{}}
}

func (m *model) ref(slot int) {
	m.refs[slot]++
	m.high = max(m.high, len(m.refs))
}

func (m *model) unref(slot int) {
	if m.refs[slot]--; m.refs[slot] == 0 {
		delete(m.refs, slot)
	}
}

// lease is a reference that someone holds, by kind.
type lease struct {
	m     *model
	slot  int
	gen   uint32
	buf   *framepool.Buffer
	frame *framepool.Frame // nil with buf nil: a decoder's reference
	stamp uint64
}

// TestRandomSequences drives one, then more pools through thousands of random
// calls and compares each with a model: slots are lent once, contents stay
// while held, memory comes back exactly with the last reference.
func TestRandomSequences(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &sequence{t: t, r: rand.New(rand.NewPCG(seed, 7)), budget: framepool.NewBudget(0)}
			s.pool = newModel(t, s.r, s.budget)
			s.pools = []*model{s.pool}
			for range 2000 {
				s.step()
				s.verify()
			}
			s.end()
		})
	}
}

type sequence struct {
	t      *testing.T
	r      *rand.Rand
	budget *framepool.Budget
	pool   *model   // the open one
	pools  []*model // those whose region stands
	leases []*lease
	seq    uint64
}

func (s *sequence) step() {
	switch n := s.r.IntN(100); {
	case n < 20:
		s.get()
	case n < 35:
		s.decode()
	case n < 45:
		s.pick(func(l *lease) { s.retain(l) })
	case n < 55:
		s.pick(func(l *lease) { s.publish(l) })
	case n < 98:
		s.pick(func(l *lease) { s.drop(l) })
	default:
		s.pool.p.Close()
		s.pool.closed = true
		s.pool = newModel(s.t, s.r, s.budget)
		s.pools = append(s.pools, s.pool)
	}
}

func (s *sequence) pick(do func(*lease)) {
	if len(s.leases) > 0 {
		do(s.leases[s.r.IntN(len(s.leases))])
	}
}

func (s *sequence) get() {
	m := s.pool
	free := m.d.c.Slots - len(m.refs)
	b, ok := m.p.TryGet()
	if ok != (free > 0) {
		s.t.Fatalf("TryGet %v with %d free slots", ok, free)
	}
	if !ok {
		return
	}
	slot := -1
	for i := range m.d.c.Slots { // the one that the model does not know
		if refs := uint32(m.d.word(i).Load()); refs > 0 && m.refs[i] == 0 {
			slot = i
		}
	}
	s.take(&lease{m: m, slot: slot, gen: uint32(m.d.word(slot).Load() >> 32), buf: b})
}

func (s *sequence) decode() {
	m := s.pool
	slot, gen, ok := m.d.acquire()
	if ok {
		s.take(&lease{m: m, slot: slot, gen: gen})
	}
}

// take stamps a slot that is new and exclusive.
func (s *sequence) take(l *lease) {
	if l.m.refs[l.slot] != 0 {
		s.t.Fatalf("slot %d lent twice", l.slot)
	}
	s.seq++
	l.stamp = s.seq
	binary.LittleEndian.PutUint64(l.m.d.pixels(l.slot), l.stamp)
	l.m.ref(l.slot)
	s.leases = append(s.leases, l)
}

func (s *sequence) retain(l *lease) {
	n := &lease{m: l.m, slot: l.slot, gen: l.gen, stamp: l.stamp}
	switch {
	case l.buf != nil:
		return
	case l.frame != nil:
		n.frame = l.frame.Retain()
	default:
		l.m.d.retain(l.slot)
	}
	l.m.ref(l.slot)
	s.leases = append(s.leases, n)
}

// publish seals a buffer or adopts a decoder's slot.
func (s *sequence) publish(l *lease) {
	switch {
	case l.buf != nil:
		l.frame, l.buf = l.buf.Seal(meta(l.m.p, l.stamp)), nil
	case l.frame == nil:
		n := &lease{m: l.m, slot: l.slot, gen: l.gen, stamp: l.stamp, frame: l.m.p.Adopt(l.slot, l.gen, meta(l.m.p, l.stamp))}
		l.m.ref(l.slot)
		s.leases = append(s.leases, n)
	}
}

func (s *sequence) drop(l *lease) {
	if got := binary.LittleEndian.Uint64(l.m.d.pixels(l.slot)); got != l.stamp {
		s.t.Fatalf("slot %d holds picture %d under a lease of %d", l.slot, got, l.stamp)
	}
	l.m.unref(l.slot)
	switch {
	case l.buf != nil:
		l.buf.Discard()
	case l.frame != nil:
		if l.frame.Meta().Seq != l.stamp {
			s.t.Fatalf("frame %d of picture %d", l.frame.Meta().Seq, l.stamp)
		}
		l.frame.Release()
	default:
		l.m.d.release(l.slot)
	}
	for i := range s.leases {
		if s.leases[i] == l {
			s.leases = append(s.leases[:i], s.leases[i+1:]...)
			return
		}
	}
}

// verify compares the pools with the model.
func (s *sequence) verify() {
	var bytes int64
	standing := s.pools[:0]
	for _, m := range s.pools {
		done := m.p.Reap()
		if want := m.closed && len(m.refs) == 0; done != want {
			s.t.Fatalf("reaped %v with %d references, closed %v", done, len(m.refs), m.closed)
		}
		st := m.p.Stats()
		if st.InUse != len(m.refs) || st.HighWater != m.high {
			s.t.Fatalf("%d slots in use, high %d, want %d, %d", st.InUse, st.HighWater, len(m.refs), m.high)
		}
		if !done {
			standing = append(standing, m)
			bytes += st.Bytes
		}
	}
	s.pools = standing
	if s.budget.Used() != bytes {
		s.t.Fatalf("budget has %d bytes in use, the pools have %d", s.budget.Used(), bytes)
	}
}

func (s *sequence) end() {
	s.pool.p.Close()
	s.pool.closed = true
	for len(s.leases) > 0 {
		s.pick(func(l *lease) { s.drop(l) })
	}
	s.verify()
	if len(s.pools) != 0 || s.budget.Used() != 0 {
		s.t.Errorf("%d pools and %d bytes stand at the end", len(s.pools), s.budget.Used())
	}
}

// TestRandomInterleavings runs two cameras, each with a decoder in C's manner
// and a producer in Go on one pool that changes its geometry while leases
// live, against readers that retain, pass on and release at random. Every
// picture is stamped at both ends of every plane; a slot that is lent twice or
// given back too early shows as a foreign stamp, and a lost one as memory that
// does not return.
func TestRandomInterleavings(t *testing.T) {
	const pictures = 4000 // of each camera
	budget := framepool.NewBudget(0)
	hand := make(chan *framepool.Frame, 4)
	boxes := []*framepool.Mailbox{framepool.NewMailbox(), framepool.NewMailbox()}
	done := make(chan struct{})

	var cameras, readers sync.WaitGroup
	for i, box := range boxes {
		cameras.Go(func() { runCamera(t, uint64(i), pictures, budget, box) })
		readers.Go(func() { runReader(t, uint64(i), box, hand, done) })
		readers.Go(func() { runSecondReader(t, uint64(i), hand, done) })
	}
	cameras.Wait()
	close(done)
	readers.Wait()
	for _, b := range boxes {
		b.Close()
	}
	for len(hand) > 0 {
		(<-hand).Release()
	}
	if budget.Used() != 0 || framepool.Live() != 0 {
		t.Errorf("%d bytes in use, %d handles live at the end", budget.Used(), framepool.Live())
	}
	if budget.HighWater() == 0 {
		t.Error("nothing ran")
	}
}

// camera is one decoder with its pools.
type camera struct {
	t    *testing.T
	r    *rand.Rand
	name string
	pool *framepool.Pool
	dec  cdecoder
	refs []int // slots that the decoder holds as reference pictures
	old  []oldPool
	seq  uint64
}

// oldPool is a closed pool whose reference pictures the decoder has yet to drop.
type oldPool struct {
	pool *framepool.Pool
	dec  cdecoder
	refs []int
}

func runCamera(t *testing.T, id uint64, pictures int, budget *framepool.Budget, box *framepool.Mailbox) {
	c := &camera{t: t, r: rand.New(rand.NewPCG(id, 99)), name: fmt.Sprint("cam", id)}
	c.open(budget)
	for range pictures {
		c.decode(box)
		c.dropOld()
		if c.r.IntN(100) == 0 { // the picture's size changes
			c.close()
			c.open(budget)
		}
	}
	box.Close() // what readers hold goes on living
	c.close()
	for len(c.old) > 0 {
		c.dropOld()
	}
}

func (c *camera) open(b *framepool.Budget) {
	c.pool = randomPool(c.t, c.r, b)
	c.dec = cdecoder{c.pool.Control()}
	c.refs = nil
}

func (c *camera) close() {
	c.pool.Close()
	c.old = append(c.old, oldPool{c.pool, c.dec, c.refs})
}

// decode makes a picture, by the words or by the methods, and publishes it.
func (c *camera) decode(box *framepool.Mailbox) {
	c.seq++
	m := meta(c.pool, c.seq)
	m.Camera = c.name
	if c.r.IntN(3) == 0 {
		if b, ok := c.pool.TryGet(); ok {
			stamp(m, b.Plane)
			if c.r.IntN(10) == 0 {
				b.Discard()
				return
			}
			box.Put(b.Seal(m))
		}
		return
	}
	slot, gen, ok := c.dec.acquire()
	if ok {
		px := c.dec.pixels(slot)
		stamp(m, func(i int) []byte { return px[m.Offset[i]:][:planeLen(m, i)] })
		c.refs = append(c.refs, slot)
		box.Put(c.pool.Adopt(slot, gen, m))
	}
	for len(c.refs) > 0 && (!ok || len(c.refs) > 2 || c.r.IntN(2) == 0) {
		c.dec.release(c.refs[0])
		c.refs = c.refs[1:]
		ok = true
	}
}

// dropOld ends one reference of a closed pool, or polls for its end.
func (c *camera) dropOld() {
	if len(c.old) == 0 {
		return
	}
	o := &c.old[0]
	if len(o.refs) > 0 {
		o.dec.release(o.refs[0])
		o.refs = o.refs[1:]
		return
	}
	// Readers may still hold frames; the pool is then theirs to end.
	if o.pool.Reap() || c.r.IntN(4) == 0 {
		c.old = c.old[1:]
	}
}

func planeLen(m framepool.Meta, i int) int {
	cols, rows := m.Format.PlaneSize(i, m.Width, m.Height)
	return (rows-1)*m.Stride[i] + cols*m.Format.SampleBytes()
}

// mark is a byte that tells pictures apart.
func mark(m framepool.Meta, plane int) byte {
	return byte(m.Seq*7) ^ m.Camera[len(m.Camera)-1] ^ byte(plane<<6)
}

func stamp(m framepool.Meta, plane func(int) []byte) {
	for i := range m.Format.Planes() {
		b := plane(i)
		b[0], b[len(b)-1] = mark(m, i), mark(m, i)
	}
}

func checkStamp(t *testing.T, f *framepool.Frame) {
	m := *f.Meta()
	for i := range m.Format.Planes() {
		b := f.Plane(i)
		if want := mark(m, i); b[0] != want || b[len(b)-1] != want {
			t.Errorf("%s/%d plane %d holds %#x, %#x, want %#x", m.Camera, m.Seq, i, b[0], b[len(b)-1], want)
		}
	}
}

// runReader takes frames, keeps some for a while, and hands others on.
func runReader(t *testing.T, id uint64, box *framepool.Mailbox, hand chan<- *framepool.Frame, done <-chan struct{}) {
	r := rand.New(rand.NewPCG(id, 5))
	var kept []*framepool.Frame
	defer func() {
		for _, f := range kept {
			f.Release()
		}
	}()
	for {
		select {
		case <-done:
			return
		case <-box.Ready():
		}
		f, ok := box.TryTake()
		if !ok {
			continue
		}
		checkStamp(t, f)
		if r.IntN(2) == 0 {
			g := f.Retain()
			select {
			case hand <- g:
			case <-done:
				g.Release()
			}
		}
		kept = append(kept, f)
		for len(kept) > r.IntN(3) {
			checkStamp(t, kept[0])
			kept[0].Release()
			kept = kept[1:]
		}
	}
}

// runSecondReader ends what the first one passes on.
func runSecondReader(t *testing.T, id uint64, hand <-chan *framepool.Frame, done <-chan struct{}) {
	r := rand.New(rand.NewPCG(id, 6))
	for {
		select {
		case <-done:
			return
		case f := <-hand:
			g := f.Retain()
			checkStamp(t, f)
			f.Release()
			if r.IntN(2) == 0 {
				h := g.Retain()
				g.Release()
				g = h
			}
			checkStamp(t, g)
			g.Release()
		}
	}
}
