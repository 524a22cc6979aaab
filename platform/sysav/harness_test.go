//go:build linux

package sysav_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
)

func TestMain(m *testing.M) { testkit.CheckFrames(m, goleak.IgnoreCurrent()) }

// envMore names more libraries, separated by colons, that the tests of every
// version go through: those that a distribution does not have side by side.
const envMore = "EDGECAM_TEST_LIBAVCODEC"

// installed is a libavcodec of this machine.
func installed(t testing.TB) string {
	t.Helper()
	dir := map[string]string{"amd64": "/usr/lib/x86_64-linux-gnu", "arm64": "/usr/lib/aarch64-linux-gnu"}[runtime.GOARCH]
	for _, major := range []int{59, 58, 60, 61, 62} {
		if path := filepath.Join(dir, fmt.Sprintf("libavcodec.so.%d", major)); exists(path) {
			return path
		}
	}
	t.Fatal("no libavcodec here: install libavcodec59")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func everyVersion(t *testing.T) []string {
	t.Helper()
	return append([]string{installed(t)}, filepath.SplitList(os.Getenv(envMore))...)
}

func open(t testing.TB, path string) *sysav.Library {
	t.Helper()
	l, err := sysav.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rings gives a decoder memory for its pictures.
type rings struct {
	t        testing.TB
	slots    int
	refuse   error
	requests []avcodec.Request
	all      []avcodec.Ring
}

func newRings(t testing.TB, slots int) *rings { return &rings{t: t, slots: slots} }

func (r *rings) allocate(q avcodec.Request) (avcodec.Ring, error) {
	r.requests = append(r.requests, q)
	if r.refuse != nil {
		return avcodec.Ring{}, r.refuse
	}
	stride := (q.Size + 63) &^ 63
	words, pixels := mapped(r.t, r.slots*64), mapped(r.t, r.slots*stride)
	ring := avcodec.Ring{
		ID: uint64(len(r.all) + 1), WordStride: 64, SlotStride: stride, Slots: r.slots,
		Words: uintptr(unsafe.Pointer(&words[0])), Base: uintptr(unsafe.Pointer(&pixels[0])),
	}
	r.all = append(r.all, ring)
	return ring, nil
}

func mapped(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

func memory(address uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), n)
}

func word(r avcodec.Ring, slot int) *atomic.Uint64 {
	b := memory(r.Words+uintptr(slot*r.WordStride), 8)
	return (*atomic.Uint64)(unsafe.Pointer(&b[0]))
}

// wantFree fails the test where a slot is held.
func (r *rings) wantFree() {
	r.t.Helper()
	for _, ring := range r.all {
		for i := range ring.Slots {
			if refs := uint32(word(ring, i).Load()); refs != 0 {
				r.t.Errorf("ring %d: slot %d has %d references", ring.ID, i, refs)
			}
		}
	}
}

// pixels are the visible samples as ffmpeg writes rawvideo.
func (r *rings) pixels(p *avcodec.Picture) (out []byte) {
	ring := r.all[p.Ring-1]
	slot := memory(ring.Base+uintptr(p.Slot*ring.SlotStride), ring.SlotStride)
	for i, s := range p.Stride {
		if s == 0 {
			continue
		}
		width, rows := p.Width, p.Height
		if i > 0 {
			width, rows = chroma(p)
		}
		for y := range rows {
			o := p.Offset[i] + y*s
			out = append(out, slot[o:o+width*bytesOf(p.Format)]...)
		}
	}
	return out
}

func chroma(p *avcodec.Picture) (width, rows int) {
	width, rows = p.Width, p.Height
	switch p.Format {
	case avcodec.YUV420P, avcodec.YUVJ420P, avcodec.YUV420P10, avcodec.NV12, avcodec.P010:
		rows = (rows + 1) / 2
		width = (width + 1) / 2
	case avcodec.YUV422P, avcodec.YUVJ422P, avcodec.YUV422P10:
		width = (width + 1) / 2
	}
	if p.Format == avcodec.NV12 || p.Format == avcodec.P010 {
		width *= 2
	}
	return width, rows
}

func bytesOf(f avcodec.Format) int {
	switch f {
	case avcodec.YUV420P10, avcodec.YUV422P10, avcodec.YUV444P10, avcodec.Gray10, avcodec.P010:
		return 2
	}
	return 1
}

func unit(c testkit.Clip, i int) avcodec.Unit {
	return avcodec.Unit{Parts: c.Units[i], StartCodes: c.Codec != "mjpeg", PTS: int64(1000 + i)}
}

func decoder(t testing.TB, l *sysav.Library, o sysav.Options) *sysav.Decoder {
	t.Helper()
	d, err := l.NewDecoder(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

var errTooBig = errors.New("9 of 8 bytes")
