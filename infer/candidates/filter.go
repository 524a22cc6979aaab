package candidates

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"edgecam/infer"
	"edgecam/platform/cuda"
)

//go:embed candidates.ptx
var candidatesPTX []byte

const (
	// DefaultCapacity is the room for candidates of one image. Real scenes have
	// tens to hundreds: about ten neighbouring cells find each object.
	DefaultCapacity = 4096

	mostImages = 128 // MOST_IMAGES of candidates.cu
	threads    = 256 // launch_bounds there
	ahead      = 4   // AHEAD there: vectors that a thread takes at a time
	mostBlocks = 256 // of an image: more only adds heads of work
)

// Options describe the outputs that are filtered.
type Options struct {
	MaxBatch int  // images of a launch, 1 to 128
	Boxes    int  // rows of both outputs
	Classes  int  // columns of scores
	Half     bool // outputs are float16, not float32
	Capacity int  // most candidates of an image. It defaults to DefaultCapacity.
	// Plan is where boxes and scores lie; Boxes and Classes are then its own. nil:
	// boxes and finished scores in tensors of their own, row by row.
	Plan *infer.FilterPlan
}

// OverflowError says that an image has more candidates than there is room for.
type OverflowError struct{ Image, Found, Capacity int }

// Error implements error.
func (e *OverflowError) Error() string {
	return fmt.Sprintf("read candidates of image %d: %d found, room for %d", e.Image, e.Found, e.Capacity)
}

// Filter finds the candidates of a batch on the device.
type Filter struct {
	o      Options
	module cuda.Module
	kernel cuda.Function
	args   *cuda.Params

	states     cuda.DevicePtr
	thresholds cuda.Host
	results    cuda.Host // heads, then entries
	filter     gpuFilter
	layout     gpuLayout // but for its F, with a plan
	launched   int       // images of the last launch
}

// New loads the kernel and takes the memory.
func New(c *cuda.Context, o Options) (*Filter, error) {
	f, err := newFilter(o)
	if err != nil {
		return nil, fmt.Errorf("new candidate filter: %w", err)
	}
	if err := f.open(c); err != nil {
		return nil, errors.Join(fmt.Errorf("new candidate filter: %w", err), f.Close(c))
	}
	return f, nil
}

func newFilter(o Options) (*Filter, error) {
	if o.Capacity == 0 {
		o.Capacity = DefaultCapacity
	}
	if o.Plan != nil {
		o.Boxes, o.Classes = o.Plan.Rows, o.Plan.Columns
		if o.Plan.BoxValues > math.MaxInt32/4 || o.Plan.ScoreValues > math.MaxInt32/4 {
			return nil, fmt.Errorf("outputs of %d and %d numbers an image cannot be filtered", o.Plan.BoxValues, o.Plan.ScoreValues)
		}
	}
	switch {
	case o.MaxBatch < 1 || o.MaxBatch > mostImages:
		return nil, fmt.Errorf("MaxBatch %d: 1 to %d images can be taken", o.MaxBatch, mostImages)
	case o.Boxes < 1 || o.Classes < 1 || o.Boxes > math.MaxInt32/4/max(o.Classes, 4):
		return nil, fmt.Errorf("outputs of %d boxes of %d classes cannot be filtered", o.Boxes, o.Classes)
	case o.Capacity < 1 || o.Capacity > 1<<20:
		return nil, fmt.Errorf("capacity %d: 1 to %d candidates an image", o.Capacity, 1<<20)
	}
	f := &Filter{o: o, args: cuda.NewParams(filterBytes)}
	if o.Plan != nil {
		f.args, f.layout = cuda.NewParams(layoutBytes), newLayout(o.Plan)
	}
	f.filter = gpuFilter{Rows: int32(o.Boxes), Classes: int32(o.Classes), Capacity: int32(o.Capacity)}
	return f, nil
}

func (f *Filter) open(c *cuda.Context) (err error) {
	if f.module, err = c.Load(candidatesPTX); err != nil {
		return err
	}
	name := "candidates"
	if f.o.Plan != nil {
		name += "_layout"
	}
	if f.o.Half {
		name += "_half"
	} else {
		name += "_float"
	}
	if f.kernel, err = c.Function(f.module, name); err != nil {
		return err
	}
	if f.states, err = c.Alloc(f.o.MaxBatch * stateBytes); err != nil {
		return err
	}
	if err = c.CopyInNow(f.states, newStates(f.o.MaxBatch)); err != nil {
		return err
	}
	if f.thresholds, err = c.HostAlloc(f.o.MaxBatch * f.o.Classes * 4); err != nil {
		return err
	}
	if f.results, err = c.HostAlloc(f.resultBytes()); err != nil {
		return err
	}
	f.filter.point(f.o.MaxBatch, f.states, f.thresholds.Device, f.results.Device)
	return nil
}

func (f *Filter) resultBytes() int { return f.o.MaxBatch * (headBytes + f.o.Capacity*entryBytes) }

// Launch queues the filtering of the first n images on s and returns at once.
// boxes and scores are the outputs in device memory, aligned to 16 bytes, which
// must stay until s has passed. threshold gives the least score that counts, as in
// infer.Slot.Run, for each image. s must have passed the launch before, and Read
// must have been called for what is wanted of it.
func (f *Filter) Launch(c *cuda.Context, s cuda.Stream, n int, boxes, scores cuda.DevicePtr, threshold func(image, class int) float32) error {
	if err := f.prepare(n, boxes, scores, threshold); err != nil {
		return err
	}
	if f.o.Plan != nil {
		f.layout.F = f.filter
		cuda.Set(f.args, 0, f.layout)
	} else {
		cuda.Set(f.args, 0, f.filter)
	}
	return c.Launch(f.kernel, [3]uint32{uint32(f.blocks()), uint32(n), 1}, [3]uint32{threads, 1, 1}, 0, s, f.args)
}

// prepare fills in what changes from launch to launch.
func (f *Filter) prepare(n int, boxes, scores cuda.DevicePtr, threshold func(image, class int) float32) error {
	switch {
	case n < 1 || n > f.o.MaxBatch:
		return fmt.Errorf("filter %d images: 1 to %d can be taken", n, f.o.MaxBatch)
	case boxes == 0 || scores == 0 || (boxes|scores)&15 != 0:
		return fmt.Errorf("filter outputs at %#x and %#x: they must be aligned to 16 bytes", uint64(boxes), uint64(scores))
	}
	f.filter.Boxes, f.filter.Scores = uint64(boxes), uint64(scores)
	f.filter.Stamp++
	f.launched = n
	if f.o.Plan != nil {
		f.rawThresholds(n, threshold)
		return nil
	}
	for image := range n {
		lowest := infer.ClampThreshold(2)
		for class := range f.o.Classes {
			t := infer.ClampThreshold(threshold(image, class))
			binary.NativeEndian.PutUint32(f.thresholds.Bytes[(image*f.o.Classes+class)*4:], math.Float32bits(t))
			lowest = min(lowest, t)
		}
		f.filter.Lowest[image] = math.Float32bits(lowest)
		if f.o.Half {
			f.filter.Lowest[image] = halfFrom(lowest)
		}
	}
	return nil
}

// rawThresholds fills in what the outputs' own numbers must reach.
func (f *Filter) rawThresholds(n int, threshold func(image, class int) float32) {
	for image := range n {
		of := func(class int) float32 { return threshold(image, class) }
		for column := range f.o.Classes {
			t := f.o.Plan.Threshold(column, of)
			binary.NativeEndian.PutUint32(f.thresholds.Bytes[(image*f.o.Classes+column)*4:], math.Float32bits(t))
		}
		f.filter.Lowest[image] = math.Float32bits(f.o.Plan.ObjectThreshold(of))
	}
}

// blocks is how many share an image: as many as it has work for.
func (f *Filter) blocks() int {
	if f.o.Plan != nil {
		return min((f.o.Boxes+threads-1)/threads, mostBlocks)
	}
	each := 4
	if f.o.Half {
		each = 8
	}
	vectors := (f.o.Boxes*f.o.Classes + each - 1) / each
	return min((vectors+threads*ahead-1)/(threads*ahead), mostBlocks)
}

// Read gives what the last launch found in an image, once its stream has passed.
// to is written over, its list reused. The error is an *OverflowError where the
// outputs must be decoded whole.
func (f *Filter) Read(image int, to *infer.Candidates) error {
	if image < 0 || image >= f.launched {
		return fmt.Errorf("read candidates of image %d: %d were launched", image, f.launched)
	}
	results := f.results.Bytes
	h := readHead(results[image*headBytes:])
	if h.stamp != f.filter.Stamp {
		return fmt.Errorf("read candidates of image %d: the gpu wrote none (launch %d, found that of %d)", image, f.filter.Stamp, h.stamp)
	}
	to.Zero, to.BadBox, to.BadScore = h.seen == 0, h.badBox, h.badScore
	if f.o.Plan != nil {
		const scores, objects = 1, 2
		to.Zero = h.seen != scores|objects
	}
	to.List = to.List[:0]
	if h.count > f.o.Capacity {
		return &OverflowError{Image: image, Found: h.count, Capacity: f.o.Capacity}
	}
	entries := results[f.o.MaxBatch*headBytes+image*f.o.Capacity*entryBytes:]
	for i := range h.count {
		e := readEntry(entries[i*entryBytes:])
		if f.o.Plan != nil {
			e.Class = f.o.Plan.Class(e.Class)
		}
		to.List = append(to.List, e)
	}
	return nil
}

// Close gives everything back, once the streams that it was launched on are idle.
func (f *Filter) Close(c *cuda.Context) error {
	var errs []error
	for _, h := range []*cuda.Host{&f.thresholds, &f.results} {
		if h.Bytes != nil {
			errs = append(errs, c.HostFree(*h))
			*h = cuda.Host{}
		}
	}
	if f.states != 0 {
		errs = append(errs, c.Free(f.states))
		f.states = 0
	}
	if f.module != 0 {
		errs = append(errs, c.Unload(f.module))
		f.module = 0
	}
	return errors.Join(errs...)
}
