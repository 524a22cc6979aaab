package ort

import (
	"fmt"
	"slices"
	"strings"

	"edgecam/infer"
	"edgecam/infer/builtin"
	spec "edgecam/infer/model"
	"edgecam/platform/onnxruntime"
)

// maxFixedBatch bounds the images that a model with a fixed batch may want.
const maxFixedBatch = 64

// source is a model that is to be loaded.
type source struct {
	name string
	spec *spec.Spec // what is known of a file; nil: its metadata must tell
}

// sourceOf finds out what is known of a model. The error is an *infer.ModelError.
func sourceOf(name string, known *spec.Spec) (source, error) {
	s := source{name: name, spec: known}
	if s.spec != nil || s.builtin() {
		return s, nil
	}
	if err := checkFile(name); err != nil {
		return s, &infer.ModelError{Model: name, Err: err, Hint: fileHint}
	}
	report, err := spec.Inspect(name, spec.Overrides{})
	if err != nil {
		return s, err
	}
	s.spec = &report.Spec
	return s, nil
}

const fileHint = "name the path of an .onnx file, or " + builtin.NanoDetG

func (s source) builtin() bool { return strings.HasPrefix(s.name, builtin.Prefix) }

// fitSpec checks the ports against what is known of the file.
func (m *model) fitSpec(s *spec.Spec) error {
	m.meta = infer.Metadata{Labels: s.Labels, Input: s.Input.InputSpec}
	layout := s.Decode
	m.layout, m.nms, m.sizes = &layout, s.NMS, s.Input.Sizes
	if err := m.fitSpecInput(&s.Input); err != nil {
		return err
	}
	for m.outputs == nil {
		if err := m.fitOutputs(); err != nil {
			return err
		}
	}
	_, err := m.newReader(0)
	return err
}

// fitOutputs binds the outputs that are read. Where one of them turns out to allow
// one image at a time alone, it leaves them all to be bound anew.
func (m *model) fitOutputs() error {
	outputs, batch := m.session.Outputs(), m.batch
	var ports []outputPort
	for _, place := range places(m.layout) {
		if place >= len(outputs) {
			return fmt.Errorf("has %d outputs, the one numbered %d is to be read", len(outputs), place)
		}
		p, err := m.outputPort(outputs[place], place)
		if err != nil {
			return err
		}
		ports = append(ports, p)
	}
	if m.batch == batch {
		m.outputs = ports
	}
	return nil
}

// places lists the outputs that a layout reads, each once.
func places(l *infer.Layout) []int {
	all := []int{l.Outputs.Boxes}
	switch l.Kind {
	case infer.Split:
		all = append(all, l.Outputs.Scores)
	case infer.Listed:
		all = append(all, l.Outputs.Scores, l.Outputs.Classes, l.Outputs.Count)
	case infer.Selected:
		all = append(all, l.Outputs.Scores, l.Outputs.Selected)
	case infer.Heads:
		all = nil
		for _, g := range l.Grid {
			all = append(all, g.Boxes, g.Scores)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(p int) bool { return p < 0 })
}

func (m *model) fitSpecInput(want *spec.Input) error {
	var in *onnxruntime.Port
	for _, p := range m.session.Inputs() {
		switch {
		case p.Name == want.Name:
			in = &p
		case want.Sizes == nil || p.Name != want.Sizes.Name:
			return fmt.Errorf("input %v: edgecam has nothing to feed it", p)
		}
	}
	if in == nil {
		return fmt.Errorf("has no input %s", want.Name)
	}
	if !slices.Contains([]onnxruntime.ElementType{onnxruntime.Float32, onnxruntime.Float16, onnxruntime.Uint8}, in.Type) {
		return fmt.Errorf("input %v: wanted float32, float16 or uint8", *in)
	}
	m.input = inputPort{
		name: in.Name, element: in.Type, width: want.InputSpec.Width, height: want.InputSpec.Height,
		nhwc: strings.HasSuffix(want.Layout, "HWC"), batched: strings.HasPrefix(want.Layout, "N"),
	}
	shape := m.input.shape(1)
	if len(in.Shape) != len(shape) {
		return fmt.Errorf("input %v: wanted %d dimensions", *in, len(shape))
	}
	for i, d := range in.Shape {
		if i == 0 && m.input.batched {
			continue
		}
		if d >= 0 && d != shape[i] {
			return fmt.Errorf("input %v: cannot be fed %dx%d pictures as %s", *in, m.input.width, m.input.height, want.Layout)
		}
	}
	if m.batch = 1; m.input.batched {
		m.batch = max(int(in.Shape[0]), want.Batch)
	}
	if m.batch > maxFixedBatch {
		return fmt.Errorf("input %v: has a fixed batch of %d, edgecam runs at most %d images at once", *in, m.batch, maxFixedBatch)
	}
	return nil
}

// outputPort says how an output is bound.
func (m *model) outputPort(p onnxruntime.Port, place int) (outputPort, error) {
	if p.Type.Size() == 0 {
		return outputPort{}, fmt.Errorf("output %v: edgecam reads numbers of 8 to 64 bits", p)
	}
	o := outputPort{name: p.Name, element: p.Type, place: place}
	dims := p.Shape
	switch {
	case !m.input.batched || m.batch == 1 || m.shared(place):
		// All of it is of the one image, or its rows say which image they are of.
	case len(dims) == 0 || m.batch > 1 && dims[0] >= 0 && dims[0] != int64(m.batch):
		return o, fmt.Errorf("output %v: the input's batch is %d", p, m.batch)
	case m.batch == 0 && !m.layout.Dense() && (dims[0] >= 0 || !fixed(dims[1:])):
		// Whether the free dimension is the batch cannot be known: one image at a time.
		m.batch = 1
	default:
		o.batched, dims = true, dims[1:]
	}
	if !fixed(dims) {
		return o, nil
	}
	o.dims, o.values = append([]int64{}, dims...), 1
	for _, d := range dims {
		o.values *= int(d)
	}
	return o, nil
}

// shared says that an output has the rows of all images of a batch.
func (m *model) shared(place int) bool {
	return m.layout.Kind == infer.EndToEnd && m.layout.At.Image >= 0 || m.layout.Kind == infer.Selected && place == m.layout.Outputs.Selected
}

func fixed(dims []int64) bool {
	return !slices.ContainsFunc(dims, func(d int64) bool { return d < 1 })
}
