package ort

import (
	"encoding/binary"
	"fmt"
	"math"

	"edgecam/platform/onnxruntime"
)

// stage brings image i into the form that the tensor takes: pictures are written
// as planes of float32, whatever the model wants.
func (s *slot) stage(i int) {
	if s.staged == nil {
		return
	}
	in := &s.model.input
	n := in.values()
	from, size := s.staged[i*n:(i+1)*n], n*in.element.Size()
	in.convert(s.input.Bytes()[i*size:(i+1)*size], from)
}

// convert writes an image into the bytes of a tensor.
func (p *inputPort) convert(to []byte, from []float32) {
	plane, step := p.width*p.height, 1
	if p.nhwc {
		step = 3
	}
	size := p.element.Size()
	for c := range 3 {
		at := c * plane
		if p.nhwc {
			at = c
		}
		put(to[at*size:], from[c*plane:(c+1)*plane], step, p.element)
	}
}

// put writes a plane, its values step apart.
func put(to []byte, plane []float32, step int, element onnxruntime.ElementType) {
	switch element {
	case onnxruntime.Uint8:
		for i, v := range plane {
			to[i*step] = toByte(v)
		}
	case onnxruntime.Float16:
		for i, v := range plane {
			binary.LittleEndian.PutUint16(to[2*i*step:], toHalf(v))
		}
	default:
		for i, v := range plane {
			binary.LittleEndian.PutUint32(to[4*i*step:], math.Float32bits(v))
		}
	}
}

// toByte rounds to 0..255.
func toByte(v float32) byte {
	if !(v > 0) {
		return 0
	}
	return byte(min(v, 255) + 0.5)
}

// appendFloats appends the numbers of a tensor.
func appendFloats(to []float32, b []byte, element onnxruntime.ElementType) []float32 {
	e := binary.LittleEndian
	switch element {
	case onnxruntime.Float32:
		for i := 0; i < len(b); i += 4 {
			to = append(to, math.Float32frombits(e.Uint32(b[i:])))
		}
	case onnxruntime.Float16:
		for i := 0; i < len(b); i += 2 {
			to = append(to, fromHalf(e.Uint16(b[i:])))
		}
	case onnxruntime.Float64:
		for i := 0; i < len(b); i += 8 {
			to = append(to, float32(math.Float64frombits(e.Uint64(b[i:]))))
		}
	case onnxruntime.Int64:
		for i := 0; i < len(b); i += 8 {
			to = append(to, float32(int64(e.Uint64(b[i:]))))
		}
	case onnxruntime.Int32:
		for i := 0; i < len(b); i += 4 {
			to = append(to, float32(int32(e.Uint32(b[i:]))))
		}
	case onnxruntime.Uint8:
		for _, v := range b {
			to = append(to, float32(v))
		}
	}
	return to
}

// newSizes makes the tensor of an input that asks for the pictures' sizes: it is
// told the input's own, so that boxes come out in input pixels. nil without one.
func (m *model) newSizes(library *onnxruntime.Library, batch int) (*onnxruntime.Tensor, error) {
	if m.sizes == nil {
		return nil, nil //nolint:nilnil // most models have none
	}
	element := map[string]onnxruntime.ElementType{
		"int64": onnxruntime.Int64, "int32": onnxruntime.Int32, "float32": onnxruntime.Float32,
	}[m.sizes.Type]
	if element == onnxruntime.Undefined {
		return nil, fmt.Errorf("input %s: sizes of %s cannot be given", m.sizes.Name, m.sizes.Type)
	}
	t, err := library.NewTensorOf(element, int64(batch), 2)
	if err != nil {
		return nil, err
	}
	size := [2]int{m.input.width, m.input.height}
	if m.sizes.HeightFirst {
		size[0], size[1] = size[1], size[0]
	}
	for i := range 2 * batch {
		b := t.Bytes()[i*element.Size():]
		switch element {
		case onnxruntime.Int64:
			binary.LittleEndian.PutUint64(b, uint64(size[i%2]))
		case onnxruntime.Int32:
			binary.LittleEndian.PutUint32(b, uint32(size[i%2]))
		default:
			binary.LittleEndian.PutUint32(b, math.Float32bits(float32(size[i%2])))
		}
	}
	return t, nil
}
