package ort

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"edgecam/infer"
	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

const (
	// stepLimit bounds each step on the GPU's goroutine while the engine is
	// made: the first run of a shape lets cuDNN try its algorithms.
	stepLimit = 60 * time.Second
	// servingLimit bounds those beside serving.
	servingLimit = 10 * time.Second
)

// Sides is how many batches may be on their way through a DeviceEngine: each has
// an input and outputs of its own, so that the next one is filled while the
// engine works and while what it made is read.
const Sides = 2

// DeviceEngine runs a model on a GPU. Its inputs and outputs lie in device
// memory that stays where it is for the engine's life; Run queues on a stream
// and does not wait, but see there and Waits. Run, Waits, Input and Outputs belong to the
// device's goroutine, the other methods are safe for concurrent use.
type DeviceEngine struct {
	opts    DeviceOptions
	dev     *cuda.Device
	library *onnxruntime.Library
	model   *model    // its ports and metadata; the session belongs to a lane
	picture []float32 // the test picture
	want    answer    // the CPU's answer to it
	buckets []int
	io      [Sides]deviceIO
	own     bool // the stream is the engine's
	before  int  // notes that were there before a lane was tried
	// cudaTime is what the largest batch takes on CUDA, measured at the start.
	cudaTime time.Duration

	// Of the device's goroutine.
	active *lane
	stream cuda.Stream

	mu   sync.Mutex
	info infer.Info // guarded by mu

	ctx     context.Context //nolint:containedctx // ends the background work, in Close
	cancel  context.CancelFunc
	settled chan struct{}
	close   sync.Once
}

// NewDevice loads the model on dev's GPU, proves that it runs there and gives
// the CPU's answer, and warms the smallest and the largest batch size. The sizes
// between and, with provider auto or tensorrt, TensorRT are prepared in the
// background. It calls dev.DoWithin, so it must
// not be called inside of one. Errors: *onnxruntime.UnavailableError,
// *infer.ModelError, *ProviderError (the GPU cannot serve this model), or
// dev's.
func NewDevice(ctx context.Context, dev *cuda.Device, o DeviceOptions) (*DeviceEngine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	library, skipped, err := onnxruntime.FindGPU(o.Library)
	if err != nil {
		return nil, err
	}
	e := &DeviceEngine{opts: o, dev: dev, library: library, stream: o.Stream, settled: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.info = infer.Info{
		Model: o.Model, Provider: providerCUDA, Library: library.Path(), Version: library.Version(), Threads: 1,
	}
	for _, s := range skipped {
		e.info.ProbeNotes = append(e.info.ProbeNotes, "library passed over: "+s)
	}
	if err := e.open(ctx); err != nil {
		close(e.settled)
		e.Close() //nolint:errcheck,contextcheck // the first error says more; what is open is closed whatever ctx says
		return nil, err
	}
	go func() { //nolint:contextcheck // it lives until Close, not as long as ctx
		defer close(e.settled)
		if o.Provider != providerCUDA {
			e.prepareTensorRT()
		}
		e.grow()
	}()
	return e, nil
}

// open makes the engine serve on CUDA.
func (e *DeviceEngine) open(ctx context.Context) error {
	e.library.Preload(onnxruntime.CUDAProvider)
	precisions, err := e.opts.precisions()
	if err != nil {
		return err
	}
	if err := e.consult(precisions[0]); err != nil {
		return err
	}
	if err := e.allocate(ctx); err != nil {
		return err
	}
	e.before = len(e.info.ProbeNotes)
	best, err := e.openLane(ctx, precisions)
	if err != nil {
		return err
	}
	e.model = best.model
	e.cudaTime = best.times[len(e.buckets)-1]
	e.mu.Lock()
	e.info.Precision, e.info.Labels, e.info.Input = best.model.precision, best.model.meta.Labels, best.model.meta.Input
	e.info.MaxBatch = e.largest()
	e.info.ProbeMS = ms(best.times[0])
	e.mu.Unlock()
	err = e.dev.DoWithin(ctx, "start engine", servingLimit, func(*cuda.Context) error {
		e.active = best
		return nil
	})
	if err != nil {
		best.leave(ctx, e.dev)
	}
	return err
}

// consult runs the test picture on the CPU, for the answer to compare with.
func (e *DeviceEngine) consult(precision string) error {
	if precision == precisionFP16 {
		precision = precisionFP32 // of a built-in model: the exact one
	}
	m, err := loadModelAny(e.library, e.opts.source, precision)
	if err != nil {
		return err
	}
	defer m.session.Close()
	if err := m.fitsGPU(); err != nil {
		return &ProviderError{Provider: "CUDA", Err: err, Hint: "it runs on the processor: set inference.provider to cpu"}
	}
	e.model, e.buckets = m, bucketsUpTo(e.opts.MaxBatch)
	if m.batch > 0 {
		e.buckets = []int{m.batch}
	}
	if e.picture, err = picture(m.meta.Input); err != nil {
		return err
	}
	if e.want, err = runOnCPU(e.library, m, m.encode(e.picture)); err == nil {
		err = e.want.healthy()
	}
	if err != nil {
		return &infer.ModelError{Model: e.opts.Model, Err: fmt.Errorf("run the test picture on the CPU: %w", err)}
	}
	return nil
}

// allocate makes the stream and the tensors' memory.
func (e *DeviceEngine) allocate(ctx context.Context) error {
	return e.dev.DoWithin(ctx, "allocate tensors", stepLimit, func(c *cuda.Context) (err error) {
		if e.stream == 0 {
			if e.stream, err = c.NewUrgentStream(); err != nil {
				return err
			}
			e.own = true
		}
		for side := range e.io {
			if err := e.io[side].alloc(c, e.model, e.largest()); err != nil {
				return err
			}
		}
		return nil
	})
}

// largest is the largest batch.
func (e *DeviceEngine) largest() int { return e.buckets[len(e.buckets)-1] }

// Info is what is known of the engine; Provider is the one that serves now.
func (e *DeviceEngine) Info() infer.Info {
	e.mu.Lock()
	defer e.mu.Unlock()
	info := e.info
	info.Labels, info.ProbeNotes, info.Graphs = slices.Clone(info.Labels), slices.Clone(info.ProbeNotes), slices.Clone(info.Graphs)
	return info
}

// Settled is closed once nothing is prepared any more: TensorRT has taken over or
// was given up, with the reason in Info's notes, and every batch size is open.
func (e *DeviceEngine) Settled() <-chan struct{} { return e.settled }

// Stream is what Run queues on.
func (e *DeviceEngine) Stream() cuda.Stream { return e.stream }

// Boxes is the number of boxes of each image, as the outputs of the built-in models
// and their like count them; a filter's plan counts others.
func (e *DeviceEngine) Boxes() int { return e.model.boxes }

// NewReader makes what reads the outputs. iou is the overlap above which NMS drops a
// box, where nothing is known better; 0: 0.6.
func (e *DeviceEngine) NewReader(iou float32) (Reader, error) { return e.model.newReader(iou) }

// Filter says how a filter on the device finds what counts in Outputs, where in the
// outputs plan does, nil for boxes in input pixels and finished scores. Where why is
// not empty none can: outputs are fetched whole, for that reason.
func (e *DeviceEngine) Filter() (plan *infer.FilterPlan, half bool, why string) {
	m := e.model
	b, s := m.outputs[m.boxesPort()].element, m.outputs[m.scoresPort()].element
	half = s == onnxruntime.Float16
	if m.layout == nil {
		if b != s {
			return nil, half, "one of boxes and scores is float16, the other float32"
		}
		return nil, half, ""
	}
	plan, err := m.layout.FilterPlan()
	switch {
	case err != nil:
		return nil, half, err.Error()
	case b != s || b != onnxruntime.Float32 && b != onnxruntime.Float16:
		return nil, half, fmt.Sprintf("its outputs are %v and %v", b, s)
	}
	return plan, half, ""
}

// Input is a side's tensor [MaxBatch,3,Height,Width], to be written before Run, in
// float16 if half, else float32.
func (e *DeviceEngine) Input(side int) (p cuda.DevicePtr, half bool) {
	return e.io[side].input.at, e.model.input.element == onnxruntime.Float16
}

// Outputs are the tensors of boxes and scores of a side's last Run, valid once the
// stream has passed it: without a Layout boxes [n,Boxes,4] in input pixels and scores
// [n,Boxes,classes]. They are one and the same where the layout joins them.
func (e *DeviceEngine) Outputs(side int) (boxes, scores cuda.DevicePtr, boxesHalf, scoresHalf bool) {
	b, s := e.model.boxesPort(), e.model.scoresPort()
	outputs := e.io[side].outputs
	return outputs[b].at, outputs[s].at, e.model.outputs[b].element == onnxruntime.Float16, e.model.outputs[s].element == onnxruntime.Float16
}

// Fetch gives the outputs of an image of a side's last Run, once the stream has
// passed it, at their places among the session's: where a filter on the device
// cannot hold what counts, or does not know the layout.
func (e *DeviceEngine) Fetch(c *cuda.Context, side, image int) ([][]float32, error) {
	outputs := make([][]float32, e.model.places)
	for i := range e.model.outputs {
		p := &e.model.outputs[i]
		raw := make([]byte, p.values*p.element.Size())
		if err := c.CopyOutNow(raw, e.io[side].outputs[i].at+cuda.DevicePtr(image*len(raw))); err != nil {
			return nil, err
		}
		outputs[p.place] = appendFloats(make([]float32, 0, p.values), raw, p.element)
	}
	return outputs, nil
}

// Run queues the inference of the first n images of a side's input and returns
// without waiting, but for one run in settleEvery: record an event on the stream behind it. Images between n
// and the next batch size that is open are computed too; what they hold does not
// matter. The error is infer.ErrClosed, the library's, or says what is wrong
// with n.
func (e *DeviceEngine) Run(_ *cuda.Context, side, n int) error {
	if e.active == nil {
		return infer.ErrClosed
	}
	k := e.active.bucketFor(e.buckets, n)
	if n < 1 || k < 0 {
		return fmt.Errorf("run %d images: wanted 1 to %d", n, e.largest())
	}
	return e.active.run(k, side)
}

// Close ends the background work and frees what the engine holds, once the
// stream has passed it. A TensorRT build that is under way cannot be stopped:
// Close does not wait for it, it ends by itself and is thrown away. On a lost
// device nothing is freed, as no call would return. Close may be called twice;
// it calls dev.DoWithin.
func (e *DeviceEngine) Close() error {
	var err error
	e.close.Do(func() {
		e.cancel()
		<-e.settled
		err = e.dev.DoWithin(context.Background(), "close engine", stepLimit, func(c *cuda.Context) error {
			var errs []error
			if e.stream != 0 {
				errs = append(errs, c.Wait(e.stream))
			}
			if e.active != nil {
				errs = append(errs, e.active.settleAll())
				e.active.free()
				e.active = nil
			}
			for side := range e.io {
				errs = append(errs, e.io[side].free(c))
			}
			if e.own {
				errs = append(errs, c.FreeStream(e.stream))
			}
			return errors.Join(errs...)
		})
		e.library.Close()
	})
	return err
}

// note adds to Info's notes and tells of it.
func (e *DeviceEngine) note(change func(*infer.Info), format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	e.mu.Lock()
	if change != nil {
		change(&e.info)
	}
	e.info.ProbeNotes = append(e.info.ProbeNotes, text)
	e.mu.Unlock()
	if e.opts.Changed != nil {
		e.opts.Changed(e.Info())
	}
}
