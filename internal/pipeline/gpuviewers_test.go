package pipeline

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/overlay"
	"edgecam/platform/cuda"
)

// onCard copies a picture to the card's memory, as its decoder would leave it.
func onCard(t *testing.T, g *GPU, f *framepool.Frame) *framepool.Frame {
	t.Helper()
	m, n := *f.Meta(), f.Meta().Format.Planes()
	var at [3]cuda.DevicePtr
	err := g.dev.Do(t.Context(), "test", func(c *cuda.Context) (err error) {
		for i := range n {
			if at[i], err = c.Alloc(len(f.Plane(i))); err != nil {
				return err
			}
			if err = c.CopyInNow(at[i], f.Plane(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.dev.Do(context.Background(), "test", func(c *cuda.Context) error { // a lost one keeps it
			return errors.Join(c.Free(at[0]), c.Free(at[1]), c.Free(at[2]))
		})
	})
	var planes [3]uintptr
	for i := range n {
		planes[i] = uintptr(at[i])
	}
	return framepool.NewDeviceFrame(m, planes, func() {})
}

// Viewers see a picture in the card's memory as they see it in the processor's,
// and the model finds the same in it.
func TestGPUViewersSeeTheSamePicture(t *testing.T) {
	b := newBuiltinStand(t, 1)
	g := b.open(t)
	start := framepool.Live()
	f := clip(t, g, 1, 1)[0]
	defer f.Release()
	onDevice := onCard(t, g, f)
	defer onDevice.Release()
	r, err := overlay.NewRenderer(overlay.Options{MaxWidth: viewerWidth})
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.Render(f, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	want.Y, want.Cb, want.Cr = slices.Clone(want.Y), slices.Clone(want.Cb), slices.Clone(want.Cr)
	d := drawer{ctx: t.Context()}
	for range 2 { // into memory that is there
		got, err := d.render(picture{frame: onDevice, gpu: g}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got.Width != want.Width || got.Height != want.Height {
			t.Fatalf("%dx%d, want %dx%d", got.Width, got.Height, want.Width, want.Height)
		}
		alike(t, "Y", got.Y, want.Y, got.StrideY, want.StrideY, want.Width, want.Height)
		alike(t, "Cb", got.Cb, want.Cb, got.StrideC, want.StrideC, want.Width/2, want.Height/2)
		alike(t, "Cr", got.Cr, want.Cr, got.StrideC, want.StrideC, want.Width/2, want.Height/2)
	}
	allBack(t, start+2, "after drawing")

	expected := onCPU(t, 1, 1, gpuThreshold)
	a, err := runBatch(newGPURunner(t.Context(), g), []*framepool.Frame{onDevice}, gpuThreshold)
	if err != nil {
		t.Fatal(err)
	}
	if match(t, "found by the processor", expected.found[0], a.found[0]) == 0 {
		t.Error("nothing was compared")
	}
	allBack(t, start+2, "after inference")
}

func alike(t *testing.T, plane string, got, want []byte, gotStride, wantStride, w, h int) {
	t.Helper()
	const most = 2 // codes
	for y := range h {
		for x := range w {
			if d := int(got[y*gotStride+x]) - int(want[y*wantStride+x]); d > most || d < -most {
				t.Fatalf("%s: sample %d,%d is %d, want %d", plane, x, y, got[y*gotStride+x], want[y*wantStride+x])
			}
		}
	}
}

// A drawing that hangs loses the card in time and gives the picture back.
func TestGPUViewersHang(t *testing.T) {
	b := newStand(t, 1)
	b.options.CallTimeout = hurried
	g := b.open(t)
	f := clip(t, g, 1, 1)[0]
	onDevice := onCard(t, g, f)
	f.Release()
	d := drawer{ctx: t.Context()}
	b.Block("cuLaunchKernel")
	began := time.Now()
	_, err := d.render(picture{frame: onDevice, gpu: g}, false)
	var late *cuda.TimeoutError
	if !errors.As(err, &late) || late.Name != "draw for viewers" || time.Since(began) > hurried+2*time.Second {
		t.Errorf("error %v", err)
	}
	onDevice.Release()
	if _, err := runBatch(newGPURunner(t.Context(), g), nil, gpuThreshold); !errors.As(err, &late) {
		t.Errorf("inference: %v", err)
	}
	b.Unblock()
	g.Close()
}
