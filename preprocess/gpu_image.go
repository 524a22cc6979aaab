package preprocess

import (
	"math"
	"math/bits"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
)

// Source is a picture that a kernel reads where it lies. Planes are device
// addresses of the first visible samples: of a mapped pool slot, of a staged
// copy, or of a decoder's surface.
type Source struct {
	Meta   *framepool.Meta
	Planes [3]cuda.DevicePtr
	// Local says that the samples lie in the card's own memory, across no bus.
	Local bool
}

// gpuImage is struct Image of kernels/image.h, byte for byte.
type gpuImage struct {
	plane           [3]uint64
	out             uint64
	stride          [3]int32
	width, height   int32
	cwidth, cheight int32
	planes          int32
	bytes           int32
	shift           int32
	x, y, w, h      int32
	rx, ry          float32
	crx, cry        float32
	yk, y0          float32
	rv, gu, gv, bu  float32
	mid             float32
	_               [4]byte
}

// newGPUImage describes a picture to the kernels; t is its place in the output.
func newGPUImage(src Source, t Transform, out cuda.DevicePtr) gpuImage {
	m := src.Meta
	sx, sy := m.Format.ChromaShift()
	g := gpuImage{
		out: uint64(out), width: int32(m.Width), height: int32(m.Height), bytes: int32(m.Format.SampleBytes()),
		x: int32(t.PadX), y: int32(t.PadY), w: int32(t.Width), h: int32(t.Height),
		rx: float32(float64(m.Width) / float64(t.Width)), ry: float32(float64(m.Height) / float64(t.Height)),
		planes: int32(m.Format.Planes()),
	}
	for i := range g.planes {
		g.plane[i], g.stride[i] = uint64(src.Planes[i]), int32(m.Stride[i])
	}
	if m.Format == framepool.P010 {
		g.shift = 6
	}
	if g.planes > 1 {
		g.cwidth = int32((m.Width + 1<<sx - 1) >> sx)
		g.cheight = int32((m.Height + 1<<sy - 1) >> sy)
		g.crx = float32(float64(m.Width) / float64(int(1)<<sx) / float64(t.Width))
		g.cry = float32(float64(m.Height) / float64(int(1)<<sy) / float64(t.Height))
	}
	k := colorCoefficients(m.Format.BitDepth(), m.Range, m.Matrix)
	// The kernel interpolates codes times weightOne.
	g.yk, g.y0 = float32(k.y/weightOne), float32(-k.y*k.black)
	g.rv, g.gu, g.gv, g.bu = float32(k.rv/weightOne), float32(k.gu/weightOne), float32(k.gv/weightOne), float32(k.bu/weightOne)
	g.mid = float32(k.mid * weightOne)
	return g
}

// gpuTensor is struct Tensor of kernels/letterbox.cu, byte for byte.
type gpuTensor struct {
	width, height int32
	logW, logH    int32
	half          int32
	channel       [3]int32
	mul, add      [3]float32
	pad           [3]float32
}

func newGPUTensor(spec infer.InputSpec, half bool, tile Tile) gpuTensor {
	t := gpuTensor{
		width: int32(spec.Width), height: int32(spec.Height), channel: [3]int32{0, 1, 2},
		logW: int32(bits.Len(uint(tile.Width)) - 1), logH: int32(bits.Len(uint(tile.Height)) - 1),
	}
	if spec.Order == infer.BGR {
		t.channel = [3]int32{2, 1, 0}
	}
	if half {
		t.half = 1
	}
	norms, pad := newNorms(spec)
	for i, ch := range t.channel {
		// The kernel works in 0..255, the Go twin in that times 1<<sumBits.
		t.mul[i] = norms[ch].mul * float32(math.Ldexp(1, sumBits))
		t.add[i] = norms[ch].add
	}
	t.pad = pad
	return t
}

// The sizes of the structs that kernels read.
const (
	gpuImageBytes  = 4*8 + 14*4 + 11*4 + 4
	gpuTensorBytes = 8*4 + 9*4
)
