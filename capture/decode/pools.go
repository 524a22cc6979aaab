package decode

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"edgecam/capture"
	"edgecam/framepool"
	"edgecam/platform/avcodec"
)

// leanReaders is the least number of reader slots that is worth a try where the
// budget does not hold all: one frame in work and one that waits.
const leanReaders = 2

// pools are the pool of the geometry of now and those of the past whose slots
// are still held.
type pools struct {
	opts *Options
	need *need
	log  *slog.Logger

	copies atomic.Bool // the decoder has memory of its own, and fills one slot at a time

	mu      sync.Mutex
	current *framepool.Pool // nil before the first picture
	id      uint64          // of current; counts up
	readers int             // reader slots of current
	old     []oldPool
}

type oldPool struct {
	id   uint64
	pool *framepool.Pool
}

// MemoryError says that the budget does not hold a pool for the stream. It is a
// *capture.UnsupportedError too: only less or smaller video can help.
type MemoryError struct {
	*capture.UnsupportedError
	Err *framepool.BudgetError
}

// Unwrap gives both natures of the error.
func (e *MemoryError) Unwrap() []error { return []error{e.UnsupportedError, e.Err} }

// allocate is avcodec.Allocate: a pool of another geometry takes over. It is
// made outside of the lock, since to fill and lock 126 MB of a 4K camera takes
// seconds on a busy machine, and whoever asks for the camera's state would wait.
func (p *pools) allocate(q avcodec.Request) (avcodec.Ring, error) {
	p.retire()
	hold := p.need.slots()
	if p.copies.Load() {
		hold = 1
	}
	pool, readers, err := p.makePool(q, hold)
	if err != nil {
		return avcodec.Ring{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.readers = pool, readers
	p.id++
	c := pool.Control()
	p.log.Debug("frame pool is ready", "width", q.Width, "height", q.Height, "format", q.Format.String(),
		"slots", c.Slots, "reader_slots", readers, "bytes", pool.Stats().Bytes)
	return avcodec.Ring{
		ID: p.id, Words: c.Words, WordStride: c.WordStride, Base: c.Base, SlotStride: c.SlotStride, Slots: c.Slots,
	}, nil
}

// makePool makes the pool, with fewer reader slots if the budget is short.
func (p *pools) makePool(q avcodec.Request, hold int) (*framepool.Pool, int, error) {
	var be *framepool.BudgetError
	for _, readers := range slices.Compact([]int{p.opts.ReaderSlots, min(p.opts.ReaderSlots, leanReaders)}) {
		pool, err := framepool.New(framepool.Options{
			Name: p.opts.Camera, Slots: hold + readers, Budget: p.opts.Budget, Node: p.opts.Node,
			Lock: p.opts.Lock, HugePages: p.opts.HugePages, Mapper: p.opts.Mapper, Logger: p.log, Guard: p.opts.guard,
			Layout: framepool.Layout{
				Format: poolFormat(q.Format), Width: q.Width, Height: q.Height,
				Offset: q.Offset, Stride: q.Stride, Size: q.Size,
			},
		})
		if err == nil {
			return pool, readers, nil
		}
		if !errors.As(err, &be) {
			return nil, 0, err
		}
	}
	return nil, 0, memoryError(q, hold+min(p.opts.ReaderSlots, leanReaders), be)
}

func memoryError(q avcodec.Request, slots int, be *framepool.BudgetError) error {
	return &MemoryError{Err: be, UnsupportedError: &capture.UnsupportedError{
		What: fmt.Sprintf("size %dx%d %s", q.Width, q.Height, q.Format),
		Hint: fmt.Sprintf("%d pictures of %s are needed at least: %v", slots, framepool.FormatBytes(int64(q.Size)), be),
	}}
}

func (p *pools) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return
	}
	p.current.Close()
	p.old = append(p.old, oldPool{p.id, p.current})
	p.current = nil
	p.reapLocked()
}

// reap forgets the pools of the past that have been given back.
func (p *pools) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reapLocked()
}

func (p *pools) reapLocked() {
	if len(p.old) > 0 {
		p.old = slices.DeleteFunc(p.old, func(o oldPool) bool { return o.pool.Reap() })
	}
}

// find gives the pool of a picture and the slots that its readers may hold.
func (p *pools) find(id uint64) (*framepool.Pool, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == p.id && p.current != nil {
		return p.current, p.readers
	}
	for _, o := range p.old {
		if o.id == id {
			return o.pool, p.opts.ReaderSlots
		}
	}
	panic(fmt.Sprintf("decode: picture in pool %d of camera %s, which is gone", id, p.opts.Camera))
}

func (p *pools) stats() []framepool.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []framepool.Stats
	if p.current != nil {
		out = append(out, p.current.Stats())
	}
	for _, o := range p.old {
		if !o.pool.Reap() {
			out = append(out, o.pool.Stats())
		}
	}
	return out
}

func (p *pools) memory() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && p.current.Stats().Pinned {
		return "pinned"
	}
	return "heap"
}

// close comes after the decoder's own end, when only readers hold slots.
func (p *pools) close() { p.retire() }
