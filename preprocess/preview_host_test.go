package preprocess

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/framepool"
	"edgecam/overlay"
)

type hostPreview func(p *gpuPreview, threads int32, shared *byte)

func TestPreviewLayout(t *testing.T) {
	lib := hostKernels(t, "preprocess/kernels/preview.cu")
	var size, header func() int32
	purego.RegisterLibFunc(&size, lib, "preview_size")
	purego.RegisterLibFunc(&header, lib, "preview_header")
	if c, inGo := int(size()), int(reflect.TypeFor[gpuPreview]().Size()); c != gpuPreviewBytes || inGo != gpuPreviewBytes {
		t.Errorf("struct Preview has %d bytes in C and %d in Go, want %d", c, inGo, gpuPreviewBytes)
	}
	if got := int(header()); got != previewHeader {
		t.Errorf("averages begin at %d, want %d", got, previewHeader)
	}
}

// TestPreviewAgreesWithOverlay compares the kernel with the processor's way to
// the same picture: every format, range and matrix, sizes odd and even, as they
// are, shrunk by odd factors and by more than a tile takes.
func TestPreviewAgreesWithOverlay(t *testing.T) {
	lib := hostKernels(t, "preprocess/kernels/preview.cu")
	var preview hostPreview
	purego.RegisterLibFunc(&preview, lib, "preview_host")
	sizes := []struct{ w, h, limit int }{
		{64, 48, 0}, {61, 37, 0}, {61, 37, 62}, {61, 37, 60}, {1, 1, 0}, {1, 40, 0}, {3, 200, 2}, {300, 3, 100}, {640, 360, 320},
		{1919, 1079, 640}, {768, 576, 500}, {801, 451, 331}, {1920, 1080, 64}, {4001, 99, 2},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, format := range allFormats() {
		t.Run(format.String(), func(t *testing.T) {
			for i, s := range sizes {
				f := randomFrame(format, s.w, s.h, framepool.Range(i%2), framepool.Matrix(i%3), r)
				judgePreview(t, fmt.Sprintf("%dx%d to %d", s.w, s.h, s.limit), f, s.limit, preview)
				f.Release()
			}
		})
	}
}

func judgePreview(t *testing.T, name string, f *framepool.Frame, limit int, preview hostPreview) {
	t.Helper()
	o, err := overlay.NewRenderer(overlay.Options{MaxWidth: limit})
	if err != nil {
		t.Fatal(err)
	}
	want, err := o.Render(f, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGPUPreview(hostSource(f), limit)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	const guard = 64
	memory, shared := guarded(g.bytesOut(), guard), guarded(g.shared()+16, guard)
	at := int(-addressOf(shared) & 15)
	got := g.place(memory, addressOf(memory))
	preview(&g, previewThreads, &shared[at])
	runtime.KeepAlive(f)
	if !intact(memory[g.bytesOut():]) || !intact(shared[at+g.shared():]) {
		t.Fatalf("%s: the kernel wrote behind its memory", name)
	}
	if got.Width != want.Width || got.Height != want.Height || got.StrideY != want.StrideY || got.StrideC != want.StrideC {
		t.Fatalf("%s: picture of %dx%d, want %dx%d", name, got.Width, got.Height, want.Width, want.Height)
	}
	comparePlanes(t, name+" Y", got.Y, want.Y, want.StrideY, want.Width, want.Height)
	comparePlanes(t, name+" Cb", got.Cb, want.Cb, want.StrideC, want.Width/2, want.Height/2)
	comparePlanes(t, name+" Cr", got.Cr, want.Cr, want.StrideC, want.Width/2, want.Height/2)
}

func comparePlanes(t *testing.T, name string, got, want []byte, stride, w, h int) {
	t.Helper()
	const limit = 2 // codes
	for y := range h {
		for x := range w {
			a, b := int(got[y*stride+x]), int(want[y*stride+x])
			if a-b > limit || b-a > limit {
				t.Fatalf("%s: sample %d,%d is %d, want %d", name, x, y, a, b)
			}
		}
	}
}

// guarded makes memory with a pattern behind it that must stay.
func guarded(n, guard int) []byte {
	b := make([]byte, n+guard)
	for i := range b {
		b[i] = guardByte
	}
	return b
}

const guardByte = 0xa5

func intact(b []byte) bool {
	for _, v := range b {
		if v != guardByte {
			return false
		}
	}
	return true
}
