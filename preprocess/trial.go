package preprocess

import (
	"errors"
	"fmt"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
)

// TrialOptions say what is tried.
type TrialOptions struct {
	Format        framepool.PixelFormat
	Width, Height int
	GPU           GPUOptions // MaxBatch counts as 1
}

// Trial measures the strategies on one geometry: a picture of noise in each kind
// of memory, and a tensor to put it in. It belongs to the goroutine of its
// cuda.Device.
type Trial struct {
	gpu      *GPU
	meta     framepool.Meta
	layout   framepool.Layout
	locked   cuda.Host // the picture, as in a pool
	pageable []byte    // and in ordinary memory
	onDevice cuda.DevicePtr
	ring     cuda.DevicePtr // where copies go
	out      cuda.DevicePtr
	stream   cuda.Stream
	watch    *cuda.Stopwatch
	where    [1]Transform
	ran      map[Strategy]bool
}

// NewTrial takes the memory.
func NewTrial(c *cuda.Context, spec infer.InputSpec, o TrialOptions) (*Trial, error) {
	layout, err := framepool.NewLayout(o.Format, o.Width, o.Height)
	if err != nil {
		return nil, fmt.Errorf("new trial: %w", err)
	}
	o.GPU.MaxBatch = 1
	t := &Trial{
		layout: layout, pageable: noise(layout.Size), ran: map[Strategy]bool{},
		meta: framepool.Meta{Camera: "trial", Format: o.Format, Width: o.Width, Height: o.Height, Offset: layout.Offset, Stride: layout.Stride},
	}
	if err := t.open(c, spec, o); err != nil {
		return nil, errors.Join(fmt.Errorf("new trial: %w", err), t.Close(c))
	}
	return t, nil
}

// noise is bytes that no link or cache can shorten.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func (t *Trial) open(c *cuda.Context, spec infer.InputSpec, o TrialOptions) (err error) {
	if t.gpu, err = NewGPU(c, spec, o.GPU); err != nil {
		return err
	}
	if t.locked, err = c.HostAlloc(t.layout.Size); err != nil {
		return err
	}
	copy(t.locked.Bytes, t.pageable)
	for _, p := range []*cuda.DevicePtr{&t.onDevice, &t.ring} {
		if *p, err = c.Alloc(t.layout.Size); err != nil {
			return err
		}
	}
	if t.out, err = c.Alloc(t.gpu.imageBytes()); err != nil {
		return err
	}
	if err = c.CopyInNow(t.onDevice, t.pageable); err != nil {
		return err
	}
	if t.stream, err = c.NewStream(); err != nil {
		return err
	}
	t.watch, err = c.NewStopwatch()
	return err
}

// Bytes is the size of the picture.
func (t *Trial) Bytes() int { return t.layout.Size }

// Run takes the picture once through a strategy and gives the time from its first
// command to its last on the device. Both are queued before it begins, but for a
// copy of pageable memory, which the processor takes part in.
func (t *Trial) Run(c *cuda.Context, s Strategy) (time.Duration, error) {
	measure := t.watch.TimeHeld
	if s == Heap || !t.ran[s] { // the first time loads the kernel
		measure = t.watch.Time
	}
	took, err := measure(c, t.stream, func() error { return t.queue(c, s) })
	if err != nil {
		return 0, fmt.Errorf("try strategy %s: %w", s, err)
	}
	t.ran[s] = true
	return took, nil
}

func (t *Trial) queue(c *cuda.Context, s Strategy) error {
	base, err := t.bring(c, s)
	if err != nil {
		return err
	}
	src := Source{Meta: &t.meta, Local: s != Shared && s != Mapped}
	for i := range t.meta.Format.Planes() {
		src.Planes[i] = base + cuda.DevicePtr(t.layout.Offset[i])
	}
	return t.gpu.Launch(c, t.stream, []Source{src}, t.out, t.where[:])
}

// bring gives the address at which a kernel finds the picture.
func (t *Trial) bring(c *cuda.Context, s Strategy) (cuda.DevicePtr, error) {
	switch s {
	case Shared, Mapped:
		return t.locked.Device, nil
	case Device:
		return t.onDevice, nil
	case Staged:
		return t.ring, c.CopyInBytes(t.ring, t.locked.Bytes, t.stream)
	case Heap:
		return t.ring, c.CopyInBytes(t.ring, t.pageable, t.stream)
	default:
		return 0, errors.New("there is no such strategy")
	}
}

// Close gives everything back.
func (t *Trial) Close(c *cuda.Context) error {
	var errs []error
	if t.stream != 0 {
		errs = append(errs, c.Wait(t.stream), c.FreeStream(t.stream))
		t.stream = 0
	}
	if t.watch != nil {
		errs = append(errs, t.watch.Close(c))
		t.watch = nil
	}
	for _, p := range []*cuda.DevicePtr{&t.onDevice, &t.ring, &t.out} {
		if *p != 0 {
			errs = append(errs, c.Free(*p))
			*p = 0
		}
	}
	if t.locked.Bytes != nil {
		errs = append(errs, c.HostFree(t.locked))
		t.locked = cuda.Host{}
	}
	if t.gpu != nil {
		errs = append(errs, t.gpu.Close(c))
		t.gpu = nil
	}
	return errors.Join(errs...)
}

// Tune changes the tile and the threads of a block for the runs that follow.
func (t *Trial) Tune(tile Tile, threads int) error {
	o := t.gpu.o
	o.Tile, o.Threads = tile, threads
	if err := o.complete(t.gpu.spec); err != nil {
		return fmt.Errorf("tune trial: %w", err)
	}
	t.gpu.o = o
	return nil
}

// Output copies the tensor of the last run.
func (t *Trial) Output(c *cuda.Context) ([]byte, error) {
	b := make([]byte, t.gpu.imageBytes())
	return b, c.CopyOutNow(b, t.out)
}
