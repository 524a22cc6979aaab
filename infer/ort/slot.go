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
	engine  *Engine
	model   *model
	held    atomic.Bool // acquired and not released
	image   int         // values of one input image
	decoder *infer.Decoder

	input, boxes, scores *onnxruntime.Tensor
	bound                []*bound // by number of images − 1; made at first use
	before               []int    // lengths of Run's out before it
}

// bound is a binding for one number of images.
type bound struct {
	binding *onnxruntime.Binding
	views   []*onnxruntime.Tensor // of the first n images; the slot's own tensors are not among them
}

// newSlot makes a slot for up to batch images.
func newSlot(library *onnxruntime.Library, m *model, batch int, iou float32) (*slot, error) {
	spec, classes := m.meta.Input, len(m.meta.Labels)
	decoder, err := infer.NewDecoder(infer.DecoderOptions{Width: spec.Width, Height: spec.Height, Boxes: m.boxes, Classes: classes, IoU: iou})
	if err != nil {
		return nil, err
	}
	s := &slot{model: m, decoder: decoder, image: 3 * spec.Width * spec.Height, bound: make([]*bound, batch), before: make([]int, batch)}
	shapes := []struct {
		tensor **onnxruntime.Tensor
		shape  []int64
	}{
		{&s.input, []int64{int64(batch), 3, int64(spec.Height), int64(spec.Width)}},
		{&s.boxes, []int64{int64(batch), int64(m.boxes), 4}},
		{&s.scores, []int64{int64(batch), int64(m.boxes), int64(classes)}},
	}
	for _, t := range shapes {
		if *t.tensor, err = library.NewTensor(t.shape...); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// Input is the memory of image i of the input tensor.
func (s *slot) Input(i int) []float32 {
	return s.input.Data()[i*s.image : (i+1)*s.image : (i+1)*s.image]
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

// infer runs the session over the first n images.
func (s *slot) infer(n int) error {
	b := s.bound[n-1]
	if b == nil {
		var err error
		if b, err = s.bind(n); err != nil {
			return err
		}
		s.bound[n-1] = b
	}
	return b.binding.Run()
}

// decode appends every image's detections, or leaves out as it was.
func (s *slot) decode(n int, threshold func(class int) float32, out [][]infer.Detection) error {
	s.decoder.SetThresholds(threshold)
	boxes, scores := s.boxes.Data(), s.scores.Data()
	perBoxes, perScores := s.model.boxes*4, s.model.boxes*len(s.model.meta.Labels)
	for i := range n {
		s.before[i] = len(out[i])
		dets, zero, err := s.decoder.Decode(boxes[i*perBoxes:(i+1)*perBoxes], scores[i*perScores:(i+1)*perScores], out[i])
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

// bind makes the binding for n images.
func (s *slot) bind(n int) (*bound, error) {
	binding, err := s.model.session.NewBinding()
	if err != nil {
		return nil, err
	}
	b := &bound{binding: binding}
	ports := []struct {
		whole *onnxruntime.Tensor
		bind  func(string, *onnxruntime.Tensor) error
		name  string
	}{
		{s.input, binding.Input, s.model.input},
		{s.boxes, binding.Output, "boxes"},
		{s.scores, binding.Output, "scores"},
	}
	for _, p := range ports {
		view := p.whole
		if n < len(s.bound) {
			if view, err = p.whole.Prefix(n); err != nil {
				b.close()
				return nil, err
			}
			b.views = append(b.views, view)
		}
		if err := p.bind(p.name, view); err != nil {
			b.close()
			return nil, err
		}
	}
	return b, nil
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
	for _, t := range []*onnxruntime.Tensor{s.input, s.boxes, s.scores} {
		if t != nil {
			t.Close()
		}
	}
}
