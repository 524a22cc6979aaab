package preprocess

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
)

//go:embed kernels/letterbox.ptx
var letterboxPTX []byte

// mostOfLaunch is how many pictures one launch can describe (MOST in
// kernels/letterbox.cu).
const mostOfLaunch = 28

// A block's threads: a power of two that holds the description's words and does
// not exceed MOST_THREADS of kernels/letterbox.cu.
const (
	leastThreads   = 64
	mostThreads    = 512
	defaultThreads = 256

	// directThreads are those of a block that reads straight from the planes: its
	// tile of 32x16 gives a thread four values, and more blocks wait at once.
	directThreads = 128
)

// GPUOptions say how a GPU is set up.
type GPUOptions struct {
	Half     bool // write float16 instead of float32
	MaxBatch int  // most pictures of one Launch, at least 1
	Tile     Tile // zero value: the size that measured best
	Threads  int  // of a block: 64, 128, 256 or 512; 0: what measured best

	// Of pictures that are read straight:
	directTile    Tile
	directThreads int
}

// GPU fills input tensors on a graphics card, with the rules and results of
// CPU: they differ by less than one code of 255. It belongs to the goroutine of
// its cuda.Device.
type GPU struct {
	spec   infer.InputSpec
	o      GPUOptions
	module cuda.Module
	lines  cuda.Function // by way of shared memory, across the bus
	direct cuda.Function // straight from the planes, in the card's own memory
	args   *cuda.Params
	images []gpuImage // of the batch
}

// defaultTile is what measured best on an H200 over PCIe and from its own
// memory; see docs/benchmarks.md.
func defaultTile() Tile { return Tile{Width: 128, Height: 8} }

func defaultDirectTile() Tile { return Tile{Width: 32, Height: 16} }

// NewGPU loads the kernels.
func NewGPU(c *cuda.Context, spec infer.InputSpec, o GPUOptions) (*GPU, error) {
	if err := o.complete(spec); err != nil {
		return nil, fmt.Errorf("new gpu preprocessing: %w", err)
	}
	g := &GPU{spec: spec, o: o, images: make([]gpuImage, o.MaxBatch)}
	if err := g.load(c); err != nil {
		return nil, errors.Join(fmt.Errorf("new gpu preprocessing: %w", err), g.Close(c))
	}
	return g, nil
}

// complete fills in defaults and refuses what the kernels cannot do.
func (o *GPUOptions) complete(spec infer.InputSpec) error {
	o.directTile = o.Tile
	if o.Tile == (Tile{}) {
		o.Tile, o.directTile = defaultTile(), defaultDirectTile()
	}
	o.directThreads = o.Threads
	if o.Threads == 0 {
		o.Threads, o.directThreads = defaultThreads, directThreads
	}
	const mostSamples = 1 << 27 // of a plane: offsets in an image's output are 32-bit
	switch {
	case o.MaxBatch < 1 || o.MaxBatch > maxGridZ:
		return fmt.Errorf("MaxBatch %d: 1 to %d pictures can be taken", o.MaxBatch, maxGridZ)
	case o.Threads < leastThreads || o.Threads > mostThreads || o.Threads&(o.Threads-1) != 0:
		return fmt.Errorf("%d threads: must be a power of two from %d to %d", o.Threads, leastThreads, mostThreads)
	case spec.Width < 1 || spec.Height < 1 || spec.Width > mostSamples/spec.Height:
		return fmt.Errorf("input of %dx%d cannot be filled", spec.Width, spec.Height)
	}
	return o.Tile.check()
}

// maxGridZ is the most blocks of a launch in the third direction.
const maxGridZ = 65535

func (g *GPU) load(c *cuda.Context) (err error) {
	if g.module, err = c.Load(letterboxPTX); err != nil {
		return err
	}
	for name, f := range map[string]*cuda.Function{"letterbox": &g.lines, "letterbox_direct": &g.direct} {
		if *f, err = c.Function(g.module, name); err != nil {
			return err
		}
	}
	g.args = cuda.NewParams(mostOfLaunch*gpuImageBytes, gpuTensorBytes)
	return nil
}

// Launch queues the conversion of a batch on s and returns at once. Image i is
// written at out + i·3·Height·Width values, wholly; transforms[i] receives its
// place there. The pictures must stay where they are until s has passed.
func (g *GPU) Launch(c *cuda.Context, s cuda.Stream, batch []Source, out cuda.DevicePtr, transforms []Transform) error {
	if len(batch) < 1 || len(batch) > g.o.MaxBatch {
		return fmt.Errorf("preprocess %d pictures: 1 to %d can be taken", len(batch), g.o.MaxBatch)
	}
	local := true
	for i, src := range batch {
		if err := checkSource(src); err != nil {
			return fmt.Errorf("preprocess picture %d of camera %s: %w", src.Meta.Seq, src.Meta.Camera, err)
		}
		transforms[i] = NewTransform(src.Meta.Width, src.Meta.Height, g.spec)
		g.images[i] = newGPUImage(src, transforms[i], out+cuda.DevicePtr(i*g.imageBytes()))
		local = local && src.Local
	}
	launches := (len(batch) + mostOfLaunch - 1) / mostOfLaunch
	for part := range slices.Chunk(g.images[:len(batch)], (len(batch)+launches-1)/launches) {
		if err := g.launch(c, s, part, local); err != nil {
			return err
		}
	}
	return nil
}

// launch queues one launch. local says that all of the batch lie in the card's own
// memory.
func (g *GPU) launch(c *cuda.Context, s cuda.Stream, images []gpuImage, local bool) error {
	tile, threads, shared, kernel := g.o.directTile, g.o.directThreads, 0, g.direct
	if !local {
		kernel, threads = g.lines, g.o.Threads
		tile, shared = g.o.Tile.fitAll(images)
	}
	block := [3]uint32{uint32(threads), 1, 1}
	grid := [3]uint32{
		uint32((g.spec.Width + tile.Width - 1) / tile.Width), uint32((g.spec.Height + tile.Height - 1) / tile.Height), uint32(len(images)),
	}
	copy(cuda.At[[mostOfLaunch]gpuImage](g.args, 0)[:], images)
	cuda.Set(g.args, 1, newGPUTensor(g.spec, g.o.Half, tile))
	return c.Launch(kernel, grid, block, shared, s, g.args)
}

// imageBytes is the size of one image's part of the tensor.
func (g *GPU) imageBytes() int {
	n := 3 * g.spec.Width * g.spec.Height
	if g.o.Half {
		return 2 * n
	}
	return 4 * n
}

// Close gives back what NewGPU took, once the stream is idle.
func (g *GPU) Close(c *cuda.Context) error {
	var errs []error
	if g.module != 0 {
		errs = append(errs, c.Unload(g.module))
		g.module = 0
	}
	return errors.Join(errs...)
}

func checkSource(src Source) error {
	m := src.Meta
	switch {
	case m.Format.Planes() == 0:
		return fmt.Errorf("pixel format %s is not supported", m.Format)
	case m.Width < 1 || m.Height < 1:
		return fmt.Errorf("picture of %dx%d is empty", m.Width, m.Height)
	}
	for i := range m.Format.Planes() {
		switch {
		case src.Planes[i] == 0:
			return fmt.Errorf("plane %d has no device address", i)
		case m.Format.SampleBytes() == 2 && (uint64(src.Planes[i])|uint64(m.Stride[i]))&1 != 0:
			return fmt.Errorf("plane %d of 2-byte samples begins at an odd address or has odd rows", i)
		}
	}
	return nil
}

// SourceOf gives a frame that the device can read in place.
func SourceOf(f *framepool.Frame) (Source, bool) {
	src := Source{Meta: f.Meta(), Local: f.Memory() == framepool.MemoryDevice}
	for i := range src.Meta.Format.Planes() {
		p, ok := f.DevicePlane(i)
		if !ok {
			return Source{}, false
		}
		src.Planes[i] = cuda.DevicePtr(p)
	}
	return src, true
}
