//go:build hw

package preprocess

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
)

// hardware opens the first GPU.
func hardware(t *testing.T) *cuda.Device {
	t.Helper()
	dev, err := cuda.New(cuda.Options{}).NewDevice(t.Context(), cuda.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// inPool copies a picture into a pool of its own that the device sees, cropped
// out of a larger one at a place that no alignment fits.
func inPool(t *testing.T, m framepool.Mapper, from *framepool.Frame, r *rand.Rand) *framepool.Frame {
	t.Helper()
	meta := *from.Meta()
	f := meta.Format
	l, err := framepool.NewLayout(f, meta.Width+36, meta.Height+20)
	if err != nil {
		t.Fatal(err)
	}
	p, err := framepool.New(framepool.Options{Name: "hw", Layout: l, Slots: 1, Node: -1, Lock: true, HugePages: true, Mapper: m})
	if err != nil {
		t.Fatal(err)
	}
	b, ok := p.TryGet()
	if !ok {
		t.Fatal("no slot")
	}
	left, top := 2*r.IntN(16), 2*r.IntN(10)
	sx, sy := f.ChromaShift()
	for i := range f.Planes() {
		x, y := left, top
		if i > 0 {
			x, y = left>>sx, top>>sy
			if f.SemiPlanar() {
				x *= 2
			}
		}
		meta.Offset[i] = l.Offset[i] + y*l.Stride[i] + x*f.SampleBytes()
		meta.Stride[i] = l.Stride[i]
		cols, rows := f.PlaneSize(i, meta.Width, meta.Height)
		n := cols * f.SampleBytes()
		for row := range rows {
			copy(b.Plane(i)[(y+row)*l.Stride[i]+x*f.SampleBytes():][:n], from.Plane(i)[row*from.Stride(i):])
		}
	}
	out := b.Seal(meta)
	if _, ok := out.DevicePlane(0); !ok {
		t.Fatal("the device does not see the pool")
	}
	p.Close() // its memory goes with the frame
	return out
}

// onDevice copies a picture to device memory, as a decoder leaves it: rows a
// pitch apart.
func onDevice(t *testing.T, dev *cuda.Device, from *framepool.Frame) *framepool.Frame {
	t.Helper()
	meta := *from.Meta()
	var planes [3]uintptr
	var memory cuda.DevicePtr
	err := dev.Do(t.Context(), "upload", func(c *cuda.Context) (err error) {
		total := 0
		var at [3]int
		for i := range meta.Format.Planes() {
			cols, rows := meta.Format.PlaneSize(i, meta.Width, meta.Height)
			meta.Stride[i] = (cols*meta.Format.SampleBytes() + 511) &^ 511
			at[i] = total
			total += meta.Stride[i] * rows
		}
		if memory, err = c.Alloc(total); err != nil {
			return err
		}
		b := make([]byte, total)
		for i := range meta.Format.Planes() {
			cols, rows := meta.Format.PlaneSize(i, meta.Width, meta.Height)
			for row := range rows {
				copy(b[at[i]+row*meta.Stride[i]:][:cols*meta.Format.SampleBytes()], from.Plane(i)[row*from.Stride(i):])
			}
			planes[i] = uintptr(memory) + uintptr(at[i])
		}
		return c.CopyInNow(memory, b)
	})
	if err != nil {
		t.Fatal(err)
	}
	f := framepool.NewDeviceFrame(meta, planes, func() {
		// The last handle goes on a test's goroutine, never on the device's.
		if err := dev.Do(context.Background(), "free", func(c *cuda.Context) error { return c.Free(memory) }); err != nil {
			t.Error(err)
		}
	})
	twins.Store(f.Meta(), from)
	return f
}

func byFeed(s Strategy) placer {
	return func(c *cuda.Context, feed *Feed, hand []*framepool.Frame, out []Source) error {
		return feed.Place(c, hand, always(s), out)
	}
}

// gallery is pictures of all formats and of sizes from 1 to 4K, in each memory.
type gallery struct {
	heap, pool, device []*framepool.Frame
}

func newGallery(t *testing.T, dev *cuda.Device, sizes [][2]int) *gallery {
	t.Helper()
	g := &gallery{}
	r := rand.New(rand.NewPCG(11, 12))
	mapper := cuda.NewMapper(dev)
	for i, format := range allFormats() {
		for n, size := range sizes {
			f := randomFrame(format, size[0], size[1], framepool.Range((i+n)%2), framepool.Matrix((i+n)%3), r)
			g.heap = append(g.heap, f)
			g.pool = append(g.pool, inPool(t, mapper, f, r))
			g.device = append(g.device, onDevice(t, dev, f))
		}
	}
	r.Shuffle(len(g.heap), func(i, k int) {
		g.heap[i], g.heap[k] = g.heap[k], g.heap[i]
		g.pool[i], g.pool[k] = g.pool[k], g.pool[i]
		g.device[i], g.device[k] = g.device[k], g.device[i]
	})
	t.Cleanup(func() {
		for _, frames := range [][]*framepool.Frame{g.device, g.pool, g.heap} {
			for _, f := range frames {
				f.Release()
			}
		}
	})
	return g
}

// ways are the strategies with pictures that take them.
func (g *gallery) ways() map[Strategy][]*framepool.Frame {
	return map[Strategy][]*framepool.Frame{Mapped: g.pool, Staged: g.pool, Heap: g.heap, Device: g.device}
}

func TestHardwareLetterboxAgreesWithCPU(t *testing.T) {
	dev := hardware(t)
	g := newGallery(t, dev, [][2]int{{64, 48}, {61, 37}, {1, 1}, {3, 200}, {300, 3}, {768, 576}, {1919, 1079}, {3840, 2160}})
	spec := infer.InputSpec{Width: 416, Height: 416, Order: infer.BGR, Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395}, Pad: 114}
	for strategy, frames := range g.ways() {
		for i, batch := range []int{1, 2, 7, 16, 17, 64} {
			half := i%2 == 1
			t.Run(fmt.Sprintf("%s batch=%d half=%v", strategy, batch, half), func(t *testing.T) {
				judgeOn(t, dev, frames, spec, GPUOptions{MaxBatch: batch, Half: half}, batch, byFeed(strategy))
			})
		}
	}
	t.Run("tiles", func(t *testing.T) {
		for i, tile := range []Tile{{32, 2}, {256, 4}, {64, 32}, {1, 1}} {
			o := GPUOptions{MaxBatch: 8, Tile: tile, Threads: 64 << i}
			judgeOn(t, dev, g.pool, kernelSpec(), o, 8, byFeed(Mapped))
		}
	})
	t.Run("mixed memory", func(t *testing.T) {
		var frames []*framepool.Frame
		for i := range g.heap {
			frames = append(frames, [][]*framepool.Frame{g.heap, g.pool, g.device}[i%3][i])
		}
		judgeOn(t, dev, frames, spec, GPUOptions{MaxBatch: 64}, 64, byFeed(Mapped))
	})
}

func TestHardwarePreviewAgreesWithOverlay(t *testing.T) {
	dev := hardware(t)
	g := newGallery(t, dev, [][2]int{{61, 37}, {1, 1}, {3, 200}, {640, 360}, {1919, 1079}})
	for strategy, frames := range g.ways() {
		t.Run(string(strategy), func(t *testing.T) {
			for i, f := range frames {
				limit := []int{0, 320, 62, 640}[i%4]
				judgePreviewOn(t, dev, fmt.Sprintf("%s to %d", nameOf(f), limit), f, limit, byFeed(strategy))
			}
		})
	}
}

func TestHardwareChooser(t *testing.T) {
	dev := hardware(t)
	rules := RulesFor(dev.GPU())
	path := filepath.Join(t.TempDir(), "strategies.json")
	for _, remembered := range []bool{false, true} {
		ch, err := NewChooser(dev, ChooserOptions{Rules: rules, Spec: infer.InputSpec{Width: 640, Height: 640}, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range [][2]int{{768, 576}, {1920, 1080}, {3840, 2160}} {
			c, err := ch.Choose(t.Context(), framepool.NV12, size[0], size[1])
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%dx%d: %s %v, remembered %v", size[0], size[1], c.Strategy, c.Measured, c.Remembered)
			if c.Remembered != (remembered && len(rules.Candidates) > 1) {
				t.Errorf("remembered: %v", c.Remembered)
			}
		}
	}
}

// soak is what a run over many batches uses.
type soak struct {
	stream     cuda.Stream
	feed       *Feed
	gpu        *GPU
	out        cuda.DevicePtr
	sources    []Source
	transforms []Transform
}

func (s *soak) open(c *cuda.Context, spec infer.InputSpec) (err error) {
	s.sources, s.transforms = make([]Source, 64), make([]Transform, 64)
	if s.stream, err = c.NewStream(); err != nil {
		return err
	}
	if s.feed, err = NewFeed(c, s.stream); err != nil {
		return err
	}
	if s.gpu, err = NewGPU(c, spec, GPUOptions{MaxBatch: 64}); err != nil {
		return err
	}
	s.out, err = c.Alloc(64 * s.gpu.imageBytes())
	return err
}

func (s *soak) batch(c *cuda.Context, hand []*framepool.Frame, how Strategy) error {
	if err := s.feed.Place(c, hand, always(how), s.sources); err != nil {
		return err
	}
	return errors.Join(s.gpu.Launch(c, s.stream, s.sources[:len(hand)], s.out, s.transforms), s.feed.Done(c))
}

// Device memory stays what it is while sizes and batches change.
func TestHardwareMemoryIsFlat(t *testing.T) {
	dev := hardware(t)
	g := newGallery(t, dev, [][2]int{{61, 37}, {768, 576}, {1919, 1079}})
	r := rand.New(rand.NewPCG(13, 14))
	do := func(f func(c *cuda.Context) error) {
		t.Helper()
		if err := dev.Do(t.Context(), "soak", f); err != nil {
			t.Fatal(err)
		}
	}
	s := &soak{}
	do(func(c *cuda.Context) error { return s.open(c, infer.InputSpec{Width: 416, Height: 416}) })
	var before uint64
	for lap := range 300 {
		hand := make([]*framepool.Frame, 1+r.IntN(64))
		for i := range hand {
			hand[i] = [][]*framepool.Frame{g.heap, g.pool, g.device}[r.IntN(3)][r.IntN(len(g.heap))]
		}
		if lap == 0 { // the most that is ever copied
			hand = slices.Repeat([]*framepool.Frame{largest(g.pool)}, 64)
		}
		do(func(c *cuda.Context) error {
			err := s.batch(c, hand, []Strategy{Staged, Mapped, Heap}[lap%3])
			if lap%3 == 2 { // up to three batches under way
				err = errors.Join(err, c.Wait(s.stream))
			}
			if err == nil && lap == 20 {
				before, _, err = c.MemInfo()
			}
			return err
		})
		s.feed.Release()
	}
	do(func(c *cuda.Context) error {
		if err := s.feed.Drain(c); err != nil {
			return err
		}
		after, _, err := c.MemInfo()
		if after != before {
			t.Errorf("free memory was %d bytes and is %d", before, after)
		}
		t.Logf("%+v", s.feed.Stats())
		return errors.Join(err, s.feed.Close(c), s.gpu.Close(c), c.Free(s.out), c.FreeStream(s.stream))
	})
	s.feed.Release()
}

func largest(frames []*framepool.Frame) *framepool.Frame {
	best := frames[0]
	for _, f := range frames {
		if pictureBytes(f) > pictureBytes(best) {
			best = f
		}
	}
	return best
}
