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
	batch   int
	input   span
	outputs []span // in the order of the model's
}

// alloc takes the memory for batch images of m.
func (d *deviceIO) alloc(c *cuda.Context, m *model, batch int) error {
	d.batch = batch
	d.outputs = make([]span, len(m.outputs))
	if err := d.input.alloc(c, 4*m.input.values()*batch); err != nil {
		return err
	}
	for i := range m.outputs {
		p := &m.outputs[i]
		if err := d.outputs[i].alloc(c, max(p.element.Size(), 4)*p.values*batch); err != nil {
			return errors.Join(err, d.free(c))
		}
	}
	return nil
}

func (s *span) alloc(c *cuda.Context, size int) error {
	at, err := c.Alloc(size)
	if err == nil {
		*s = span{at, size}
	}
	return err
}

// free gives the memory back. It may be called twice.
func (d *deviceIO) free(c *cuda.Context) error {
	var errs []error
	for _, s := range append(d.outputs, d.input) {
		if s.at != 0 {
			errs = append(errs, c.Free(s.at))
		}
	}
	d.input, d.outputs = span{}, nil
	return errors.Join(errs...)
}

// memory describes a span to ONNX Runtime.
func (s span) memory(device int) onnxruntime.DeviceMemory {
	return onnxruntime.DeviceMemory{Device: device, Address: uintptr(s.at), Bytes: s.size}
}
