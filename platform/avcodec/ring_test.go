//go:build cgo

package avcodec_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"edgecam/platform/avcodec"
)

// guarded is a ring whose every slot ends at a page that nobody may touch, and
// starts behind one: a decoder that writes or reads a byte too far dies.
type guarded struct {
	ring  avcodec.Ring
	words []byte
	slots []byte
	front int // bytes from the start of slots to Base
	size  int
}

// newRings gives rings of slots slots. Made before the decoder, they outlive it.
func newRings(t testing.TB, slots int) *rings {
	r := &rings{t: t, slots: slots}
	t.Cleanup(func() {
		for _, g := range r.all {
			unix.Munmap(g.words)
			unix.Munmap(g.slots)
		}
	})
	return r
}

func newGuarded(t testing.TB, id uint64, size, slots int) *guarded {
	t.Helper()
	page := os.Getpagesize()
	body := (size + page - 1) / page * page
	stride := body + page
	g := &guarded{size: size, words: mapped(t, slots*64), slots: mapped(t, page+slots*stride)}
	g.front = page + body - size
	guard(t, g.slots[:page])
	for i := range slots {
		guard(t, g.slots[page+i*stride+body:][:page])
	}
	g.ring = avcodec.Ring{
		ID: id, WordStride: 64, SlotStride: stride, Slots: slots,
		Words: uintptr(unsafe.Pointer(&g.words[0])), Base: uintptr(unsafe.Pointer(&g.slots[0])) + uintptr(g.front),
	}
	return g
}

func mapped(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func guard(t testing.TB, b []byte) {
	t.Helper()
	if err := unix.Mprotect(b, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
}

func (g *guarded) word(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&g.words[i*g.ring.WordStride]))
}

func (g *guarded) slot(i int) []byte { return g.slots[g.front+i*g.ring.SlotStride:][:g.size] }

func (g *guarded) inUse() (n int) {
	for i := range g.ring.Slots {
		if uint32(g.word(i).Load()) > 0 {
			n++
		}
	}
	return n
}

// rings hands out guarded rings and remembers them.
type rings struct {
	t        testing.TB
	slots    int
	requests []avcodec.Request
	all      []*guarded
	refuse   error
}

var errTooBig = errors.New("9 of 8 bytes")

func (r *rings) allocate(q avcodec.Request) (avcodec.Ring, error) {
	r.requests = append(r.requests, q)
	if r.refuse != nil {
		return avcodec.Ring{}, r.refuse
	}
	r.all = append(r.all, newGuarded(r.t, uint64(len(r.all)), q.Size, r.slots))
	return r.all[len(r.all)-1].ring, nil
}

func (r *rings) of(p *avcodec.Picture) *guarded { return r.all[p.Ring] }

// pixels are the visible samples of p, plane after plane without padding: what
// ffmpeg writes as rawvideo.
func (r *rings) pixels(p *avcodec.Picture) []byte {
	g := r.of(p)
	slot := g.slot(p.Slot)
	var out []byte
	for i := range 3 {
		if p.Stride[i] == 0 {
			break
		}
		cols, rows := planeSize(p, i)
		for y := range rows {
			o := p.Offset[i] + y*p.Stride[i]
			out = append(out, slot[o:o+cols]...)
		}
	}
	return out
}

// planeSize is the size of plane i in bytes and rows.
func planeSize(p *avcodec.Picture, i int) (cols, rows int) {
	cols, rows = p.Width, p.Height
	var sx, sy int
	switch p.Format {
	case avcodec.YUV420P, avcodec.YUVJ420P, avcodec.YUV420P10:
		sx, sy = 1, 1
	case avcodec.YUV422P, avcodec.YUVJ422P, avcodec.YUV422P10:
		sx = 1
	}
	if i > 0 {
		cols, rows = (cols+sx)>>sx, (rows+sy)>>sy
	}
	switch p.Format {
	case avcodec.YUV420P10, avcodec.YUV422P10, avcodec.YUV444P10, avcodec.Gray10:
		cols *= 2
	}
	return cols, rows
}

func library(t testing.TB) *avcodec.Library {
	t.Helper()
	l, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func open(t testing.TB, o avcodec.Options) *avcodec.Decoder {
	t.Helper()
	d, err := library(t).NewDecoder(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func describe(p *avcodec.Picture) string {
	return fmt.Sprintf("%v %dx%d full=%v matrix=%d", p.Format, p.Width, p.Height, p.FullRange, p.Matrix)
}
