package ort

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"edgecam/infer"
	"edgecam/platform/onnxruntime"
)

var _ infer.Slot = (*slot)(nil)

// slot is a set of tensors for MaxBatch images with what binds them.
type slot struct {
	engine *Engine
	model  *model
	held   atomic.Bool // acquired and not released
	reader Reader

	staged  []float32 // the images as infer.InputSpec says, where the tensor takes them in another form
	input   *onnxruntime.Tensor
	sizes   *onnxruntime.Tensor   // of the input that asks for them; nil = there is none
	outputs []*onnxruntime.Tensor // nil where each run tells the size
	bound   []*bound              // by number of images − 1; made at first use
	before  []int                 // lengths of Run's out before it

	whole [][]float32 // of the last run, by output that is read
	image [][]float32 // of one image, by place among the session's outputs
}

// bound is a binding for one number of images.
type bound struct {
	binding *onnxruntime.Binding
	views   []*onnxruntime.Tensor // of the first n images; the slot's own tensors are not among them
}

// newSlot makes a slot for up to batch images.
func newSlot(library *onnxruntime.Library, m *model, batch int, iou float32) (*slot, error) {
	r, err := m.newReader(iou)
	if err != nil {
		return nil, err
	}
	s := &slot{
		model: m, reader: r, bound: make([]*bound, batch), before: make([]int, batch),
		whole: make([][]float32, len(m.outputs)), image: make([][]float32, m.places),
	}
	if err := s.open(library, batch); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *slot) open(library *onnxruntime.Library, batch int) (err error) {
	in := &s.model.input
	if s.input, err = library.NewTensorOf(in.element, in.shape(batch)...); err != nil {
		return err
	}
	if !in.direct() {
		s.staged = make([]float32, batch*in.values())
	}
	if s.sizes, err = s.model.newSizes(library, batch); err != nil {
		return err
	}
	for i := range s.model.outputs {
		p := &s.model.outputs[i]
		var t *onnxruntime.Tensor
		if p.dims != nil {
			if t, err = library.NewTensorOf(p.element, p.shape(batch)...); err != nil {
				return err
			}
		}
		s.outputs = append(s.outputs, t)
	}
	return nil
}

// Input is the memory of image i of the input.
func (s *slot) Input(i int) []float32 {
	all, n := s.staged, s.model.input.values()
	if all == nil {
		all = s.input.Data()
	}
	return all[i*n : (i+1)*n : (i+1)*n]
}

// Run infers the first n images, see infer.Slot.
func (s *slot) Run(n int, threshold func(class int) float32, out [][]infer.Detection) error {
	if n < 1 || n > len(s.bound) || n > len(out) {
		return fmt.Errorf("run %d images: wanted 1 to %d and as many results (%d given)", n, len(s.bound), len(out))
	}
	if !s.held.Load() {
		panic("ort: Run of a slot that is not acquired")
	}
	if s.engine.isClosed() {
		return infer.ErrClosed
	}
	start := time.Now()
	if err := s.infer(n); err != nil {
		s.engine.stats.failed.Add(1)
		return err
	}
	ran := time.Now()
	err := s.decode(n, threshold, out)
	s.engine.stats.count(n, ran.Sub(start), time.Since(ran), err)
	return err
}

// extent is how many images are run for n: all that the tensors hold where the
// model wants a number of its own, or outputs cannot be had in part.
func (s *slot) extent(n int) int {
	if s.model.batch > 0 || s.model.layout != nil {
		return len(s.bound)
	}
	return n
}

// infer runs the session over the first n images.
func (s *slot) infer(n int) error {
	for i := range n {
		s.stage(i)
	}
	n = s.extent(n)
	b := s.bound[n-1]
	if b == nil {
		var err error
		if b, err = s.bind(n); err != nil {
			return err
		}
		s.bound[n-1] = b
	}
	if err := b.binding.Run(); err != nil {
		return err
	}
	return s.collect(b)
}

// collect gives the outputs of a run as float32.
func (s *slot) collect(b *bound) error {
	free := false
	for i, t := range s.outputs {
		switch {
		case t == nil:
			free = true
		case t.Data() != nil:
			s.whole[i] = t.Data()
		default:
			s.whole[i] = appendFloats(s.whole[i][:0], t.Bytes(), s.model.outputs[i].element)
		}
	}
	if !free {
		return nil
	}
	return b.binding.Results(func(i int, r onnxruntime.Result) error {
		if s.outputs[i] == nil {
			s.whole[i] = appendFloats(s.whole[i][:0], r.Bytes, r.Type)
		}
		return nil
	})
}

// decode appends every image's detections, or leaves out as it was.
func (s *slot) decode(n int, threshold func(class int) float32, out [][]infer.Detection) error {
	s.reader.SetThresholds(threshold)
	for i := range n {
		s.before[i] = len(out[i])
		dets, zero, err := s.read(i, s.extent(n), out[i])
		if err != nil {
			for k := range i {
				out[k] = out[k][:s.before[k]]
			}
			var unhealthy *infer.UnhealthyError
			if errors.As(err, &unhealthy) {
				unhealthy.Image = i
			}
			return err
		}
		out[i] = dets
		s.engine.stats.zero(zero)
	}
	return nil
}

// read appends the detections of image i of a run of n.
func (s *slot) read(i, n int, dst []infer.Detection) (dets []infer.Detection, zero bool, err error) {
	for k := range s.model.outputs {
		p := &s.model.outputs[k]
		s.image[p.place] = p.part(s.whole[k], i, n)
	}
	return s.reader.Read(i, s.image, dst)
}

// bind makes the binding for n images.
func (s *slot) bind(n int) (*bound, error) {
	binding, err := s.model.session.NewBinding()
	if err != nil {
		return nil, err
	}
	b := &bound{binding: binding}
	if err := s.bindPorts(b, n); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (s *slot) bindPorts(b *bound, n int) error {
	if err := s.bindPort(b, b.binding.Input, s.model.input.name, s.input, n); err != nil {
		return err
	}
	if s.sizes != nil {
		if err := b.binding.Input(s.model.sizes.Name, s.sizes); err != nil {
			return err
		}
	}
	for i, t := range s.outputs {
		name := s.model.outputs[i].name
		if t == nil {
			if err := b.binding.OutputAnySize(name); err != nil {
				return err
			}
			continue
		}
		if err := s.bindPort(b, b.binding.Output, name, t, n); err != nil {
			return err
		}
	}
	return nil
}

// bindPort binds the first n images of a tensor.
func (s *slot) bindPort(b *bound, bind func(string, *onnxruntime.Tensor) error, name string, t *onnxruntime.Tensor, n int) error {
	if n < len(s.bound) {
		view, err := t.Prefix(n)
		if err != nil {
			return err
		}
		b.views = append(b.views, view)
		t = view
	}
	return bind(name, t)
}

func (b *bound) close() {
	b.binding.Close()
	for _, v := range b.views {
		v.Close()
	}
}

// Release gives the slot back. A second call panics.
func (s *slot) Release() {
	if !s.held.CompareAndSwap(true, false) {
		panic("ort: Release of a slot that is not acquired")
	}
	s.engine.free <- s
}

// close frees what newSlot and bind made.
func (s *slot) close() {
	for _, b := range s.bound {
		if b != nil {
			b.close()
		}
	}
	for _, t := range append(s.outputs, s.input, s.sizes) {
		if t != nil {
			t.Close()
		}
	}
}
