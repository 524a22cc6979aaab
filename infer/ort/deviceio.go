package ort

import (
	"errors"

	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// span is device memory.
type span struct {
	at   cuda.DevicePtr
	size int
}

// deviceIO is the memory of the input and output tensors of a batch. It has
// room for float32, so that either type of a model fits.
type deviceIO struct {
	batch                int
	input, boxes, scores span
}

// alloc takes the memory for batch images of m.
func (d *deviceIO) alloc(c *cuda.Context, m *model, batch int) error {
	spec := m.meta.Input
	d.batch = batch
	for _, s := range []struct {
		span   *span
		values int // an image
	}{{&d.input, 3 * spec.Width * spec.Height}, {&d.boxes, 4 * m.boxes}, {&d.scores, len(m.meta.Labels) * m.boxes}} {
		size := 4 * s.values * batch
		at, err := c.Alloc(size)
		if err != nil {
			return errors.Join(err, d.free(c))
		}
		*s.span = span{at, size}
	}
	return nil
}

// free gives the memory back. It may be called twice.
func (d *deviceIO) free(c *cuda.Context) error {
	var errs []error
	for _, s := range []*span{&d.input, &d.boxes, &d.scores} {
		if s.at != 0 {
			errs = append(errs, c.Free(s.at))
			*s = span{}
		}
	}
	return errors.Join(errs...)
}

// memory describes a span to ONNX Runtime.
func (s span) memory(device int) onnxruntime.DeviceMemory {
	return onnxruntime.DeviceMemory{Device: device, Address: uintptr(s.at), Bytes: s.size}
}
