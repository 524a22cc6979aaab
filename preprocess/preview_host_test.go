package preprocess

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/framepool"
	"edgecam/overlay"
	"edgecam/platform/cuda"
)

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
	st := openStandIn(t)
	st.run(t, "preprocess/kernels/preview.cu")
	sizes := []struct{ w, h, limit int }{
		{64, 48, 0},
		{61, 37, 0},
		{61, 37, 62},
		{61, 37, 60},
		{1, 1, 0},
		{1, 40, 0},
		{3, 200, 2},
		{300, 3, 100},
		{640, 360, 320},
		{1919, 1079, 640},
		{768, 576, 500},
		{801, 451, 331},
		{1920, 1080, 64},
		{4001, 99, 2},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, format := range allFormats() {
		t.Run(format.String(), func(t *testing.T) {
			for i, s := range sizes {
				f := randomFrame(format, s.w, s.h, framepool.Range(i%2), framepool.Matrix(i%3), r)
				judgePreview(t, st, fmt.Sprintf("%dx%d to %d", s.w, s.h, s.limit), f, s.limit)
				f.Release()
			}
		})
	}
}

func judgePreview(t *testing.T, s *standIn, name string, f *framepool.Frame, limit int) {
	t.Helper()
	judgePreviewOn(t, s.dev, name, f, limit, func(_ *cuda.Context, _ *Feed, _ []*framepool.Frame, out []Source) error {
		out[0] = hostSource(f)
		return nil
	})
}

func judgePreviewOn(t *testing.T, dev *cuda.Device, name string, f *framepool.Frame, limit int, place placer) {
	t.Helper()
	o, err := overlay.NewRenderer(overlay.Options{MaxWidth: limit})
	if err != nil {
		t.Fatal(err)
	}
	want, err := o.Render(hostTwin(f), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	var feed *Feed
	err = dev.Do(t.Context(), "preview", func(c *cuda.Context) error {
		p, err := NewPreview(c, PreviewOptions{MaxWidth: limit})
		if err != nil {
			return err
		}
		stream, err := c.NewStream()
		if err != nil {
			return err
		}
		if feed, err = NewFeed(c, stream); err != nil {
			return err
		}
		var to PreviewBuffer
		src := make([]Source, 1)
		if err := place(c, feed, []*framepool.Frame{f}, src); err != nil {
			return err
		}
		got, err := p.Launch(c, stream, src[0], &to)
		if err != nil {
			return err
		}
		if err := errors.Join(feed.Done(c), c.Wait(stream)); err != nil {
			return err
		}
		if got.Width != want.Width || got.Height != want.Height || got.StrideY != want.StrideY || got.StrideC != want.StrideC {
			return fmt.Errorf("%s: picture of %dx%d, want %dx%d", name, got.Width, got.Height, want.Width, want.Height)
		}
		return errors.Join(
			comparePlanes(name+" Y", got.Y, want.Y, want.StrideY, want.Width, want.Height),
			comparePlanes(name+" Cb", got.Cb, want.Cb, want.StrideC, want.Width/2, want.Height/2),
			comparePlanes(name+" Cr", got.Cr, want.Cr, want.StrideC, want.Width/2, want.Height/2),
			to.Close(c), feed.Close(c), c.FreeStream(stream), p.Close(c),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	feed.Release()
}

func comparePlanes(name string, got, want []byte, stride, w, h int) error {
	const limit = 2 // codes
	for y := range h {
		for x := range w {
			a, b := int(got[y*stride+x]), int(want[y*stride+x])
			if a-b > limit || b-a > limit {
				return fmt.Errorf("%s: sample %d,%d is %d, want %d", name, x, y, a, b)
			}
		}
	}
	return nil
}
