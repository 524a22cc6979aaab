//go:build linux && (amd64 || arm64)

package sysav

import (
	"sync/atomic"
	"unsafe"

	"edgecam/platform/avcodec"
)

// rowAlign is a cache line, the pool's promise to its readers; planeSlack is for
// readers that load past a row's end, as behind the planes of libavcodec.
const (
	rowAlign   = 64
	planeSlack = 128
)

// ring is the caller's memory for the pictures of one geometry. Slots are taken and
// given back by the rules of package framepool.
type ring struct {
	avcodec.Ring

	request avcodec.Request
	cursor  int
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// requestFor lays a picture out in a slot.
func requestFor(p *picture) avcodec.Request {
	q := avcodec.Request{Format: p.format, Width: roundUp(p.width, 2), Height: roundUp(p.height, 2)}
	shape := planesOf(p.format)
	for i := range shape.count {
		width, rows := shape.size(i, q.Width, q.Height)
		q.Offset[i], q.Stride[i] = q.Size, roundUp(width, rowAlign)
		q.Size += roundUp(q.Stride[i]*rows+planeSlack, rowAlign)
	}
	return q
}

// fits says whether pictures like q go into the ring. The J formats differ from
// the others in range only.
func (r *ring) fits(q avcodec.Request) bool {
	a, b := r.request, q
	a.Format, b.Format = plain(a.Format), plain(b.Format)
	return a == b
}

func plain(f avcodec.Format) avcodec.Format {
	switch f {
	case avcodec.YUVJ420P, avcodec.YUVJ422P, avcodec.YUVJ444P:
		return f - 1
	}
	return f
}

func (r *ring) word(slot int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(pointer(r.Words), slot*r.WordStride))
}

// take takes a free slot, in turn: (generation, 0) becomes (generation + 1, 1).
func (r *ring) take() (slot int, generation uint32, ok bool) {
	for k := range r.Slots {
		slot = (r.cursor + k) % r.Slots
		w := r.word(slot)
		for old := w.Load(); uint32(old) == 0; old = w.Load() {
			generation = uint32(old>>32) + 1
			if w.CompareAndSwap(old, uint64(generation)<<32|1) {
				r.cursor = (slot + 1) % r.Slots
				return slot, generation, true
			}
		}
	}
	return 0, 0, false
}

// give ends our reference. After it the memory may be gone.
func (r *ring) give(slot int) { r.word(slot).Add(^uint64(0)) }

// readers counts the slots that others refer to; we hold one at most, mine. A
// closed pool marks free slots with 2³¹ references.
func (r *ring) readers(mine int) (n int) {
	for i := range r.Slots {
		refs := uint32(r.word(i).Load())
		if i == mine {
			refs--
		}
		if refs > 0 && refs < 1<<31 {
			n++
		}
	}
	return n
}

// write copies the picture into a slot, row by row, and gives the bytes.
func (r *ring) write(slot int, p *picture) (copied int64) {
	base := r.Base + uintptr(slot*r.SlotStride)
	for i := range p.planes {
		a := &p.planes[i]
		offset, stride := r.request.Offset[i], r.request.Stride[i]
		to := view(base+uintptr(offset), stride*a.rows)
		for y := range a.rows {
			copied += int64(copy(to[y*stride:], a.row(y)))
		}
	}
	return copied
}
