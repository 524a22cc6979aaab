package ort

import (
	"fmt"
	"strings"

	"edgecam/infer"
	spec "edgecam/infer/model"
	"edgecam/platform/onnxruntime"
)

// plain says whether the outputs are ours as they are: boxes in input pixels and
// finished scores, under those names, of types that need no conversion.
func (m *model) plain(s *spec.Spec, half bool) bool {
	if s.Family != spec.BoxesScores || s.Input.Layout != "NCHW" || s.Input.Batch > 1 || s.Input.Sizes != nil || s.NMS.ClassAgnostic {
		return false
	}
	for _, p := range append(m.session.Inputs(), m.session.Outputs()...) {
		if !fitType(p.Type, half) {
			return false
		}
	}
	return true
}

// fit checks the ports against the metadata, or what is known better. half allows
// float16.
func (m *model) fit(known *spec.Spec, half bool) (err error) {
	if known != nil {
		m.meta, m.nms = infer.Metadata{Labels: known.Labels, Input: known.Input.InputSpec}, known.NMS
	} else if m.meta, err = infer.ParseMetadata(m.session.Metadata()); err != nil {
		return err
	}
	if err := m.fitInput(half); err != nil {
		return err
	}
	boxes, err := m.output("boxes", half)
	if err != nil {
		return err
	}
	scores, err := m.output("scores", half)
	if err != nil {
		return err
	}
	if boxes.Shape[2] != 4 {
		return fmt.Errorf("output %v: wanted 4 values a box", boxes)
	}
	if boxes.Shape[1] < 1 || boxes.Shape[1] != scores.Shape[1] {
		return fmt.Errorf("outputs %v and %v: wanted the same fixed number of boxes", boxes, scores)
	}
	if classes := scores.Shape[2]; classes != int64(len(m.meta.Labels)) {
		return fmt.Errorf("output %v gives %d classes, metadata names lists %d labels", scores, classes, len(m.meta.Labels))
	}
	m.boxes = int(boxes.Shape[1])
	m.outputs = []outputPort{
		{name: boxes.Name, element: boxes.Type, dims: boxes.Shape[1:], values: 4 * m.boxes, batched: true},
		{name: scores.Name, element: scores.Type, dims: scores.Shape[1:], values: m.boxes * len(m.meta.Labels), place: 1, batched: true},
	}
	m.places = len(m.outputs)
	return nil
}

func (m *model) fitInput(half bool) error {
	inputs := m.session.Inputs()
	if len(inputs) != 1 {
		return fmt.Errorf("has %d inputs, wanted one", len(inputs))
	}
	in, spec := inputs[0], m.meta.Input
	if !fitType(in.Type, half) {
		return fmt.Errorf("input %v: wanted %s", in, wantedType(half))
	}
	want := []int64{-1, 3, int64(spec.Height), int64(spec.Width)}
	if len(in.Shape) != len(want) {
		return fmt.Errorf("input %v: wanted four dimensions [N,3,height,width]", in)
	}
	if in.Shape[0] != 1 && in.Shape[0] >= 0 {
		return fmt.Errorf("input %v: has a fixed batch of %d, wanted 1 or a free one", in, in.Shape[0])
	}
	for i := 1; i < 4; i++ {
		if in.Shape[i] >= 0 && in.Shape[i] != want[i] {
			return fmt.Errorf("input %v: metadata input_size asks for [N,3,%d,%d]", in, spec.Height, spec.Width)
		}
	}
	m.input = inputPort{name: in.Name, element: in.Type, width: spec.Width, height: spec.Height, batched: true}
	if in.Shape[0] > 0 {
		m.batch = 1
	}
	return nil
}

func fitType(t onnxruntime.ElementType, half bool) bool {
	return t == onnxruntime.Float32 || half && t == onnxruntime.Float16
}

func wantedType(half bool) string {
	if half {
		return "float32 or float16"
	}
	return "float32"
}

func (m *model) output(name string, half bool) (onnxruntime.Port, error) {
	for _, p := range m.session.Outputs() {
		if p.Name != name {
			continue
		}
		if !fitType(p.Type, half) || len(p.Shape) != 3 {
			return p, fmt.Errorf("output %v: wanted %s with three dimensions", p, wantedType(half))
		}
		return p, nil
	}
	var have []string
	for _, p := range m.session.Outputs() {
		have = append(have, p.String())
	}
	return onnxruntime.Port{}, fmt.Errorf("has no output %s, only %s", name, strings.Join(have, ", "))
}
