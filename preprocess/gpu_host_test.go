package preprocess

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
)

// hostKernels opens a kernel's build for the processor.
func hostKernels(t *testing.T, source string) uintptr {
	t.Helper()
	lib, err := purego.Dlopen(testkit.HostKernels(t, source), purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
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

// hostLetterbox is the entry of the host build.
type hostLetterbox func(images *gpuImage, tensor *gpuTensor, n, threads int32, shared *byte)

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

func TestKernelAgreesWithCPU(t *testing.T) {
	lib := hostKernels(t, "preprocess/kernels/letterbox.cu")
	var letterbox hostLetterbox
	purego.RegisterLibFunc(&letterbox, lib, "letterbox_host")
	sizes := [][2]int{{64, 48}, {61, 37}, {33, 90}, {640, 360}, {1919, 1079}, {1, 1}, {2, 1}, {1, 40}, {3, 200}, {300, 3}, {20, 11}}
	spec := infer.InputSpec{Width: 150, Height: 96, Mean: [3]float32{100, 110, 120}, Std: [3]float32{50, 60, 70}, Pad: 114}
	r := rand.New(rand.NewPCG(1, 2))
	for _, format := range allFormats() {
		t.Run(format.String(), func(t *testing.T) {
			for i, size := range sizes {
				spec := spec
				spec.Order = infer.ColorOrder(i % 2)
				spec.Align = infer.Align(i / 2 % 2)
				f := randomFrame(format, size[0], size[1], framepool.Range(i%2), framepool.Matrix(i%3), r)
				for k, tile := range []Tile{{128, 8}, {32, 1}, {16, 16}, {1, 1}, {256, 4}} {
					name := fmt.Sprintf("%dx%d tile %dx%d", size[0], size[1], tile.Width, tile.Height)
					judge(t, name, f, spec, tile, k%2 == i%2, letterbox)
				}
				f.Release()
			}
		})
	}
}

func judge(t *testing.T, name string, f *framepool.Frame, spec infer.InputSpec, tile Tile, half bool, letterbox hostLetterbox) {
	t.Helper()
	n := 3 * spec.Width * spec.Height
	want := make([]float32, n)
	tr, err := NewCPU(spec).Run(f, want)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]uint32, n) // room for float32; float16 uses half of it
	for i := range out {
		out[i] = 0x7fc0_7fc0
	}
	img := newGPUImage(hostSource(f), tr, addressOf(out))
	tile = tile.fit(&img)
	size := tile.shared(&img)
	shared := make([]byte, size+64)
	at := int(-addressOf(shared) & 15)
	guard := shared[at+size:]
	for i := range guard {
		guard[i] = 0xa5
	}
	tensor := newGPUTensor(spec, half, tile)
	letterbox(&img, &tensor, 1, 64, &shared[at])
	runtime.KeepAlive(f)
	for i, b := range guard {
		if b != 0xa5 {
			t.Fatalf("%s: the windows ran %d bytes over the %d of shared memory", name, i+1, size)
		}
	}
	for i := range want {
		got := math.Float32frombits(out[i])
		if half {
			got = float16(uint16(out[i/2] >> (16 * (i & 1))))
		}
		std := float64(spec.Std[i/(spec.Width*spec.Height)])
		limit := 1.0 // of 255: the agreed tolerance
		if !half {
			limit = 0.6
		}
		if d := math.Abs(float64(got-want[i])) * std; !(d <= limit) {
			t.Fatalf("%s half %v: sample %d: got %v, want %v, %.3f codes apart", name, half, i, got, want[i], d)
		}
	}
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
