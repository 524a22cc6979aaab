package preprocess

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
)

// hostLibraries are the kernels' builds for the processor that are open.
var hostLibraries sync.Map //nolint:gochecknoglobals // building takes longer than the tests

// hostKernels opens a kernel's build for the processor.
func hostKernels(t *testing.T, source string) uintptr {
	t.Helper()
	if lib, ok := hostLibraries.Load(source); ok {
		return lib.(uintptr)
	}
	lib, err := purego.Dlopen(testkit.HostKernels(t, source), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	hostLibraries.Store(source, lib) // it stays mapped when its file goes
	return lib
}

func allFormats() []framepool.PixelFormat {
	return []framepool.PixelFormat{
		framepool.I420, framepool.I422, framepool.I444, framepool.Gray8, framepool.NV12,
		framepool.I420P10, framepool.I422P10, framepool.I444P10, framepool.Gray10, framepool.P010,
	}
}

// randomFrame is a picture of noise with a stride that has room to the right
// and rows that begin at odd addresses, as cropping leaves them.
func randomFrame(format framepool.PixelFormat, w, h int, rg framepool.Range, mx framepool.Matrix, r *rand.Rand) *framepool.Frame {
	m := framepool.Meta{Camera: "test", Seq: 1, Format: format, Width: w, Height: h, Range: rg, Matrix: mx}
	sx, sy := format.ChromaShift()
	var planes [][]byte
	for i := range format.Planes() {
		cols, rows := w, h
		if i > 0 {
			cols, rows = (w+1<<sx-1)>>sx, (h+1<<sy-1)>>sy
			if format.SemiPlanar() {
				cols *= 2
			}
		}
		stride := cols*format.SampleBytes() + 2*r.IntN(20)
		if r.IntN(3) == 0 {
			stride = (stride + 127) &^ 127 // whole lines, as pools and cards lay them out
		}
		lead := 2 * r.IntN(16)
		data := make([]byte, lead+stride*rows+64)
		for k := range data {
			data[k] = byte(r.Uint32())
		}
		if format.SampleBytes() == 2 {
			for k := 1; k < len(data); k += 2 {
				if format != framepool.P010 {
					data[k] &= 3
				}
			}
		}
		m.Stride[i] = stride
		planes = append(planes, data[lead:])
	}
	return framepool.NewHeapFrame(m, planes)
}

// hostSource gives the frame's planes as the addresses that a kernel gets.
func hostSource(f *framepool.Frame) Source {
	src := Source{Meta: f.Meta()}
	for i := range src.Meta.Format.Planes() {
		src.Planes[i] = addressOf(f.Plane(i))
	}
	return src
}

// addressOf is where a slice's bytes lie: to kernels built for the host a
// device address like any other.
func addressOf[T any](s []T) cuda.DevicePtr { return cuda.DevicePtr(reflect.ValueOf(s).Pointer()) }

func TestKernelLayouts(t *testing.T) {
	lib := hostKernels(t, "preprocess/kernels/letterbox.cu")
	var imageSize, tensorSize func() int32
	purego.RegisterLibFunc(&imageSize, lib, "image_size")
	purego.RegisterLibFunc(&tensorSize, lib, "tensor_size")
	sizes := []struct {
		name          string
		c, inGo, want int
	}{
		{"Image", int(imageSize()), int(reflect.TypeFor[gpuImage]().Size()), gpuImageBytes},
		{"Tensor", int(tensorSize()), int(reflect.TypeFor[gpuTensor]().Size()), gpuTensorBytes},
	}
	for _, s := range sizes {
		if s.c != s.want || s.inGo != s.want {
			t.Errorf("struct %s has %d bytes in C and %d in Go, want %d", s.name, s.c, s.inGo, s.want)
		}
	}
	var header func(logH int32) int32
	purego.RegisterLibFunc(&header, lib, "letterbox_header")
	for logH := range int32(8) {
		if got, want := int(header(logH)), (Tile{Width: 1, Height: 1 << logH}).header(); got != want {
			t.Errorf("tile of %d rows: pixels begin at %d in C, %d in Go", 1<<logH, got, want)
		}
	}
}

// kernelSpec is an input that no format fits: odd padding, all channels apart.
func kernelSpec() infer.InputSpec {
	return infer.InputSpec{Width: 150, Height: 96, Mean: [3]float32{100, 110, 120}, Std: [3]float32{50, 60, 70}, Pad: 114}
}

// TestKernelAgreesWithCPU takes pictures of every format, size and place in
// memory through a GPU of the stand-in driver.
func TestKernelAgreesWithCPU(t *testing.T) {
	s := openStandIn(t)
	s.run(t, "preprocess/kernels/letterbox.cu")
	sizes := [][2]int{{64, 48}, {61, 37}, {33, 90}, {640, 360}, {1919, 1079}, {1, 1}, {2, 1}, {1, 40}, {3, 200}, {300, 3}, {20, 11}}
	r := rand.New(rand.NewPCG(1, 2))
	// Small blocks take the stand-in long: they get a share of the pictures.
	for i, tile := range []Tile{{128, 8}, {32, 2}, {16, 16}, {2, 1}, {256, 4}} {
		spec := kernelSpec()
		spec.Order, spec.Align = infer.ColorOrder(i%2), infer.Align(i/2%2)
		for n, half := range []bool{false, true, false, true} {
			place := []placer{acrossTheBus, onTheCard}[n/2]
			t.Run(fmt.Sprintf("tile %dx%d half=%v local=%v", tile.Width, tile.Height, half, n/2 == 1), func(t *testing.T) {
				var frames []*framepool.Frame
				for k, format := range allFormats() {
					for n, size := range sizes {
						if i == 0 || (7*n+k+i)%(2+16/(tile.Width*tile.Height)) == 0 {
							frames = append(frames, randomFrame(format, size[0], size[1], framepool.Range(n%2), framepool.Matrix(n%3), r))
						}
					}
				}
				judgeOn(t, s.dev, frames, spec, GPUOptions{Half: half, Tile: tile, Threads: 64 << (i % 3 * min(tile.Width/16, 1)), MaxBatch: 1}, 1, place)
				for _, f := range frames {
					f.Release()
				}
			})
		}
	}
}

// A batch mixes formats and sizes; more than 28 take several launches.
func TestKernelTakesMixedBatches(t *testing.T) {
	s := openStandIn(t)
	s.run(t, "preprocess/kernels/letterbox.cu")
	r := rand.New(rand.NewPCG(7, 8))
	var frames []*framepool.Frame
	for i := range 64 {
		w, h := 1+r.IntN(400), 1+r.IntN(300)
		if i%16 == 3 {
			w, h = 3840, 2160
		}
		frames = append(frames, randomFrame(allFormats()[i%10], w, h, framepool.Range(i%2), framepool.Matrix(i%3), r))
	}
	for _, batch := range []int{7, 28, 29, 64} {
		for _, place := range []placer{acrossTheBus, onTheCard} {
			judgeOn(t, s.dev, frames[:batch], kernelSpec(), GPUOptions{MaxBatch: batch}, batch, place)
		}
	}
	for _, f := range frames {
		f.Release()
	}
}

// placer makes a batch readable for the device.
type placer func(c *cuda.Context, feed *Feed, hand []*framepool.Frame, out []Source) error

// acrossTheBus and onTheCard give frames where they lie, as the one or the other.
func acrossTheBus(_ *cuda.Context, _ *Feed, hand []*framepool.Frame, out []Source) error {
	for i, f := range hand {
		out[i] = hostSource(f)
	}
	return nil
}

func onTheCard(c *cuda.Context, feed *Feed, hand []*framepool.Frame, out []Source) error {
	err := acrossTheBus(c, feed, hand, out)
	for i := range hand {
		out[i].Local = true
	}
	return err
}

// judgeOn takes frames through a GPU, in batches, and compares with CPU. The
// frames of a batch must have host bytes, or be twins of some that have, see hostTwin.
func judgeOn(t *testing.T, dev *cuda.Device, frames []*framepool.Frame, spec infer.InputSpec, o GPUOptions, batch int, place placer) {
	t.Helper()
	cpu := NewCPU(spec)
	n := 3 * spec.Width * spec.Height
	want := make([]float32, n)
	var feed *Feed
	err := dev.Do(t.Context(), "judge", func(c *cuda.Context) error {
		g, err := NewGPU(c, spec, o)
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
		out, err := c.Alloc(batch * g.imageBytes())
		if err != nil {
			return err
		}
		got := make([]byte, batch*g.imageBytes())
		transforms, sources := make([]Transform, batch), make([]Source, batch)
		for hand := range slices.Chunk(frames, batch) {
			if err := place(c, feed, hand, sources); err != nil {
				return err
			}
			// Bytes that make no number.
			if err := c.Fill(out, 0xff, len(got), stream); err != nil {
				return err
			}
			if err := g.Launch(c, stream, sources[:len(hand)], out, transforms); err != nil {
				return err
			}
			if err := errors.Join(feed.Done(c), c.Wait(stream), c.CopyOutNow(got, out)); err != nil {
				return err
			}
			for i, f := range hand {
				tr, err := cpu.Run(hostTwin(f), want)
				if err != nil {
					return err
				}
				if tr != transforms[i] {
					t.Errorf("%s: placed at %+v, want %+v", nameOf(f), transforms[i], tr)
				}
				if err := compareTensor(spec, o.Half, got[i*g.imageBytes():], want); err != nil {
					return fmt.Errorf("%s: %w", nameOf(f), err)
				}
			}
		}
		return errors.Join(feed.Close(c), c.Free(out), c.FreeStream(stream), g.Close(c))
	})
	if err != nil {
		t.Fatal(err)
	}
	feed.Release()
}

// twins are the pictures in host memory of those on the device, by camera's name.
var twins sync.Map //nolint:gochecknoglobals // of the tests on hardware

// hostTwin gives the picture that the processor can read.
func hostTwin(f *framepool.Frame) *framepool.Frame {
	if f.Memory() != framepool.MemoryDevice {
		return f
	}
	twin, _ := twins.Load(f.Meta())
	return twin.(*framepool.Frame)
}

func nameOf(f *framepool.Frame) string {
	m := f.Meta()
	return fmt.Sprintf("%s %dx%d", m.Format, m.Width, m.Height)
}

// compareTensor judges a tensor by the twin's.
func compareTensor(spec infer.InputSpec, half bool, got []byte, want []float32) error {
	limit := 0.6 // codes of 255; 1 is what the product promises
	if half {
		limit = 1
	}
	for i := range want {
		var v float32
		if half {
			v = float16(binary.NativeEndian.Uint16(got[2*i:]))
		} else {
			v = math.Float32frombits(binary.NativeEndian.Uint32(got[4*i:]))
		}
		std := float64(spec.Std[i/(spec.Width*spec.Height)])
		if d := math.Abs(float64(v-want[i])) * std; !(d <= limit) {
			return fmt.Errorf("sample %d: got %v, want %v, %.3f codes apart", i, v, want[i], d)
		}
	}
	return nil
}

// float16 decodes an IEEE 754 binary16.
func float16(h uint16) float32 {
	sign, exp, frac := uint32(h)>>15, int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1+frac/1024, exp-15)
	switch exp {
	case 0:
		v = math.Ldexp(frac/1024, -14)
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	}
	if sign == 1 {
		v = -v
	}
	return float32(v)
}
