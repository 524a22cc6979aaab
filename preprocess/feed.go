package preprocess

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"edgecam/framepool"
	"edgecam/platform/cuda"
)

// FeedStats count pictures by their way to the kernels.
type FeedStats struct {
	InPlace     uint64 // read where they lay: across the bus, in shared DRAM, or on the device
	Copied      uint64 // copied to the device first
	CopiedBytes uint64
	ArenaBytes  int64 // of device memory for copies
}

// Feed makes the pictures of a batch readable for the kernels of one stream, each
// by its strategy, and holds them until the device has finished. It belongs to
// the goroutine of its cuda.Device; Release, Abandon and Stats may be called by
// any.
//
// A batch goes Place, the launches that read it, Done; then, outside of
// Device.Do, Release.
type Feed struct {
	stream cuda.Stream // of the kernels
	copies cuda.Stream
	copied cuda.Event // the copies of the batch at hand
	memory cuda.DevicePtr
	arena  arena
	open   int // cost of the copies of the batch at hand

	flights []flight     // that the device may still read, the oldest first
	events  []cuda.Event // to be used again

	inPlace, copiedFrames, copiedBytes atomic.Uint64
	arenaBytes                         atomic.Int64

	mu        sync.Mutex
	held      []*framepool.Frame // guarded by mu: those of the flights, then those of the batch at hand
	landed    []*framepool.Frame // guarded by mu: the device has finished with them
	abandoned bool               // guarded by mu
}

// flight is a batch between Done and the device's passing of it.
type flight struct {
	frames, cost int
	passed       cuda.Event
}

// NewFeed makes a feed for the kernels of s.
func NewFeed(c *cuda.Context, s cuda.Stream) (*Feed, error) {
	fd := &Feed{stream: s}
	var err error
	if fd.copies, err = c.NewStream(); err == nil {
		fd.copied, err = c.NewEvent(false)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new gpu feed: %w", err), fd.Close(c))
	}
	return fd, nil
}

// Place makes the pictures readable for work queued on the stream from now on,
// and gives the sources: out has room for all. how says by which strategy each
// shall come; what a picture's memory does not allow becomes a copy. It borrows
// the frames and keeps handles of its own. After an error nothing is placed.
func (fd *Feed) Place(c *cuda.Context, frames []*framepool.Frame, how func(m *framepool.Meta) Strategy, out []Source) error {
	if fd.open != 0 || fd.atHand() != 0 {
		return errors.New("place pictures: the batch before was not done")
	}
	if err := fd.Settle(c); err != nil {
		return err
	}
	if err := fd.place(c, frames, how, out); err != nil {
		return errors.Join(fmt.Errorf("place pictures: %w", err), fd.cancel(c))
	}
	return nil
}

func (fd *Feed) place(c *cuda.Context, frames []*framepool.Frame, how func(m *framepool.Meta) Strategy, out []Source) error {
	total, copies := 0, 0
	for i, f := range frames {
		fd.hold(f.Retain())
		out[i] = Source{}
		if f.Memory() == framepool.MemoryDevice || how(f.Meta()).InPlace() {
			out[i], _ = SourceOf(f)
		}
		if out[i].Meta == nil {
			total += pictureBytes(f)
			copies++
		}
	}
	fd.inPlace.Add(uint64(len(frames) - copies))
	if copies == 0 {
		return nil
	}
	if err := fd.reserve(c, total); err != nil {
		return err
	}
	for i, f := range frames {
		if out[i].Meta != nil {
			continue
		}
		var err error
		if out[i], err = fd.copyIn(c, f); err != nil {
			return err
		}
		fd.copiedFrames.Add(1)
	}
	if err := c.Record(fd.copied, fd.copies); err != nil {
		return err
	}
	return c.After(fd.stream, fd.copied)
}

// spanSlack is how much longer than its planes a picture's piece may be, as a
// divisor, for it to be copied as one: a copy begun costs the bus what 200 kB do.
const spanSlack = 4

// span gives a picture in one piece where that is hardly more than its planes.
func span(f *framepool.Frame) (all []byte, begins [3]int) {
	all, begins = f.Span()
	if n := planesBytes(f); len(all) > n+n/spanSlack {
		return nil, begins
	}
	return all, begins
}

func planesBytes(f *framepool.Frame) (n int) {
	for i := range f.Meta().Format.Planes() {
		n += alignPiece(len(f.Plane(i)))
	}
	return n
}

// pictureBytes is what a picture takes in the arena.
func pictureBytes(f *framepool.Frame) int {
	if all, _ := span(f); all != nil {
		return alignPiece(len(all))
	}
	return planesBytes(f)
}

// copyIn queues the copy of a picture, as one piece or plane by plane, rows as far
// apart as they are: the padding between is little and one copy is faster than
// one a row.
func (fd *Feed) copyIn(c *cuda.Context, f *framepool.Frame) (Source, error) {
	src := Source{Meta: f.Meta(), Local: true}
	at, err := fd.take(c, pictureBytes(f))
	if err != nil {
		return Source{}, err
	}
	if all, begins := span(f); all != nil {
		for i := range src.Meta.Format.Planes() {
			src.Planes[i] = fd.memory + cuda.DevicePtr(at+begins[i])
		}
		return src, fd.copyPiece(c, at, all)
	}
	for i := range src.Meta.Format.Planes() {
		plane := f.Plane(i)
		src.Planes[i] = fd.memory + cuda.DevicePtr(at)
		if err := fd.copyPiece(c, at, plane); err != nil {
			return Source{}, err
		}
		at += alignPiece(len(plane))
	}
	return src, nil
}

func (fd *Feed) copyPiece(c *cuda.Context, at int, piece []byte) error {
	if err := c.CopyInBytes(fd.memory+cuda.DevicePtr(at), piece, fd.copies); err != nil {
		return err
	}
	fd.copiedBytes.Add(uint64(len(piece)))
	return nil
}

// reserve sees to it that the arena holds the batch at hand and the one before.
func (fd *Feed) reserve(c *cuda.Context, total int) error {
	if fd.arena.size >= 2*total {
		return nil
	}
	if err := fd.Drain(c); err != nil {
		return err
	}
	if err := fd.freeArena(c); err != nil {
		return err
	}
	memory, err := c.Alloc(2 * total)
	if err != nil {
		return err
	}
	fd.memory, fd.arena = memory, arena{size: 2 * total}
	fd.arenaBytes.Store(int64(2 * total))
	return nil
}

// take waits for older batches until there is room.
func (fd *Feed) take(c *cuda.Context, n int) (int, error) {
	for {
		at, cost, ok := fd.arena.take(n)
		if ok {
			fd.open += cost
			return at, nil
		}
		if len(fd.flights) == 0 {
			return 0, fmt.Errorf("no room for %d bytes in an arena of %d", n, fd.arena.size)
		}
		if err := fd.await(c); err != nil {
			return 0, err
		}
	}
}

// Done says that all work that reads the batch's sources is queued on the stream.
func (fd *Feed) Done(c *cuda.Context) error {
	e, err := fd.event(c)
	if err != nil {
		return fmt.Errorf("mark pictures as read: %w", err)
	}
	if err := c.Record(e, fd.stream); err != nil {
		fd.events = append(fd.events, e)
		return fmt.Errorf("mark pictures as read: %w", err)
	}
	fd.flights = append(fd.flights, flight{frames: fd.atHand(), cost: fd.open, passed: e})
	fd.open = 0
	return nil
}

func (fd *Feed) event(c *cuda.Context) (cuda.Event, error) {
	if n := len(fd.events); n > 0 {
		e := fd.events[n-1]
		fd.events = fd.events[:n-1]
		return e, nil
	}
	return c.NewEvent(false)
}

// Settle finds the pictures that the device has finished with, for Release. It
// does not wait.
func (fd *Feed) Settle(c *cuda.Context) error {
	for len(fd.flights) > 0 {
		reached, err := c.Reached(fd.flights[0].passed)
		if err != nil || !reached {
			return err
		}
		fd.settleOldest()
	}
	return nil
}

// Drain waits until the device has finished with all batches that are done.
func (fd *Feed) Drain(c *cuda.Context) error {
	for len(fd.flights) > 0 {
		if err := fd.await(c); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the oldest batch.
func (fd *Feed) await(c *cuda.Context) error {
	if err := c.WaitEvent(fd.flights[0].passed); err != nil {
		return err
	}
	fd.settleOldest()
	return nil
}

func (fd *Feed) settleOldest() {
	oldest := fd.flights[0]
	fd.flights = append(fd.flights[:0], fd.flights[1:]...)
	fd.events = append(fd.events, oldest.passed)
	fd.arena.give(oldest.cost)
	fd.land(0, oldest.frames)
}

// Cancel ends a batch that is placed and will not be done: what was queued for
// it is waited for.
func (fd *Feed) Cancel(c *cuda.Context) error { return fd.cancel(c) }

func (fd *Feed) cancel(c *cuda.Context) error {
	if err := errors.Join(c.Wait(fd.copies), c.Wait(fd.stream)); err != nil {
		return err // the device may still read the pictures: Abandon releases them
	}
	if fd.open > 0 {
		// Older batches are over too, since the stream is empty.
		if err := fd.Drain(c); err != nil {
			return err
		}
		fd.arena.give(fd.open)
		fd.open = 0
	}
	landed := 0
	for _, fl := range fd.flights {
		landed += fl.frames
	}
	fd.land(landed, fd.atHand())
	return nil
}

// hold keeps a handle for the batch at hand.
func (fd *Feed) hold(f *framepool.Frame) {
	fd.mu.Lock()
	abandoned := fd.abandoned
	if !abandoned {
		fd.held = append(fd.held, f)
	}
	fd.mu.Unlock()
	if abandoned {
		f.Release() // the caller's own handle lives on
	}
}

// atHand is the number of pictures that are placed and not done.
func (fd *Feed) atHand() int {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	n := len(fd.held)
	for _, fl := range fd.flights {
		n -= fl.frames
	}
	return max(n, 0)
}

// land notes that the device has finished with n handles from place i on.
func (fd *Feed) land(i, n int) {
	fd.mu.Lock()
	defer fd.mu.Unlock()
	if fd.abandoned {
		return
	}
	fd.landed = append(fd.landed, fd.held[i:i+n]...)
	fd.held = slices.Delete(fd.held, i, i+n)
}

// Release releases the pictures that Place, Settle, Drain, Cancel and Close found
// the device to have finished with. It must be called outside of Device.Do: the
// last picture of a closed pool takes the pool along, which the device must
// forget first.
func (fd *Feed) Release() {
	fd.mu.Lock()
	landed := fd.landed
	fd.landed = nil
	fd.mu.Unlock()
	for _, f := range landed {
		f.Release()
	}
}

// Abandon releases all pictures of a device that is lost: no event will tell
// whether it has finished with them. The feed is of no more use. It may be
// called while a method hangs in the driver, and like Release not from Device.Do.
func (fd *Feed) Abandon() {
	fd.mu.Lock()
	held := append(fd.held, fd.landed...)
	fd.held, fd.landed, fd.abandoned = nil, nil, true
	fd.mu.Unlock()
	for _, f := range held {
		f.Release()
	}
}

// Stats may be called by any goroutine.
func (fd *Feed) Stats() FeedStats {
	return FeedStats{InPlace: fd.inPlace.Load(), Copied: fd.copiedFrames.Load(), CopiedBytes: fd.copiedBytes.Load(), ArenaBytes: fd.arenaBytes.Load()}
}

func (fd *Feed) freeArena(c *cuda.Context) error {
	if fd.memory == 0 {
		return nil
	}
	err := c.Free(fd.memory)
	fd.memory, fd.arena = 0, arena{}
	fd.arenaBytes.Store(0)
	return err
}

// Close waits for what is under way and gives the memory back. Release follows.
func (fd *Feed) Close(c *cuda.Context) error {
	var errs []error
	if fd.copies != 0 {
		errs = append(errs, fd.Drain(c), fd.cancel(c), fd.freeArena(c), c.FreeStream(fd.copies))
		fd.copies = 0
	}
	for _, e := range append(fd.events, fd.copied) {
		if e != 0 {
			errs = append(errs, c.FreeEvent(e))
		}
	}
	fd.events, fd.copied = nil, 0
	return errors.Join(errs...)
}
