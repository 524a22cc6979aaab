package preprocess

import (
	_ "embed"
	"errors"
	"fmt"

	"edgecam/platform/cuda"
)

//go:embed kernels/preview.ptx
var previewPTX []byte

// previewThreads is the size of a block (launch_bounds in kernels/preview.cu).
const previewThreads = 256

// Picture is a small copy of a picture for a JPEG encoder: I420, 8 bit, full
// range, BT.601. Width and Height are even, strides are bytes, the chroma planes
// have half the size. It is what overlay.Renderer makes on the processor.
type Picture struct {
	Width, Height    int
	Y, Cb, Cr        []byte
	StrideY, StrideC int
}

// PreviewOptions say how a Preview is set up.
type PreviewOptions struct {
	MaxWidth int // pixels; wider pictures shrink to it or one less, as Width is even; 0 = as they are
}

// Preview makes small pictures on a graphics card, of frames in any memory that
// it sees: only the small picture crosses the bus. It belongs to the goroutine
// of its cuda.Device.
type Preview struct {
	o      PreviewOptions
	module cuda.Module
	kernel cuda.Function
	args   *cuda.Params
}

// PreviewBuffer is host memory that the card writes a picture to. It grows to
// the largest picture that it has held. The zero value is ready.
type PreviewBuffer struct{ memory cuda.Host }

// NewPreview loads the kernel.
func NewPreview(c *cuda.Context, o PreviewOptions) (*Preview, error) {
	if o.MaxWidth < 0 || o.MaxWidth == 1 {
		return nil, fmt.Errorf("new gpu preview: width limit %d is neither 0 nor at least 2", o.MaxWidth)
	}
	p := &Preview{o: o, args: cuda.NewParams(gpuPreviewBytes)}
	var err error
	if p.module, err = c.Load(previewPTX); err == nil {
		p.kernel, err = c.Function(p.module, "preview")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new gpu preview: %w", err), p.Close(c))
	}
	return p, nil
}

// Launch queues the making of a picture on s and returns at once. The result may
// be read once s has passed, and is valid until the next Launch with the buffer,
// before which s must have passed too. src must stay where it is until then.
func (p *Preview) Launch(c *cuda.Context, s cuda.Stream, src Source, to *PreviewBuffer) (Picture, error) {
	pic, err := p.launch(c, s, src, to)
	if err != nil {
		return Picture{}, fmt.Errorf("preview picture %d of camera %s: %w", src.Meta.Seq, src.Meta.Camera, err)
	}
	return pic, nil
}

func (p *Preview) launch(c *cuda.Context, s cuda.Stream, src Source, to *PreviewBuffer) (Picture, error) {
	if err := checkSource(src); err != nil {
		return Picture{}, err
	}
	g, err := newGPUPreview(src, p.o.MaxWidth)
	if err != nil {
		return Picture{}, err
	}
	if err := to.grow(c, g.bytesOut()); err != nil {
		return Picture{}, err
	}
	pic := g.place(to.memory.Bytes, to.memory.Device)
	cuda.Set(p.args, 0, g)
	grid := [3]uint32{blocksFor(g.cols, g.logW), blocksFor(g.rows, g.logH), 1}
	return pic, c.Launch(p.kernel, grid, [3]uint32{previewThreads, 1, 1}, g.shared(), s, p.args)
}

func blocksFor(n, log int32) uint32 { return uint32((n + 1<<log - 1) >> log) }

// grow makes room. The old memory is not in use: Launch demands it.
func (b *PreviewBuffer) grow(c *cuda.Context, size int) error {
	if len(b.memory.Bytes) >= size {
		return nil
	}
	if err := b.Close(c); err != nil {
		return err
	}
	var err error
	b.memory, err = c.HostAlloc(size)
	return err
}

// Close gives the memory back, once the streams that write to it are idle.
func (b *PreviewBuffer) Close(c *cuda.Context) error {
	if b.memory.Bytes == nil {
		return nil
	}
	err := c.HostFree(b.memory)
	b.memory = cuda.Host{}
	return err
}

// Close gives back what NewPreview took, once its streams are idle.
func (p *Preview) Close(c *cuda.Context) error {
	if p.module == 0 {
		return nil
	}
	err := c.Unload(p.module)
	p.module = 0
	return err
}
