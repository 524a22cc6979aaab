package ort

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"edgecam/infer"
	"edgecam/infer/builtin"
	"edgecam/platform/onnxruntime"
)

// model is a loaded model whose ports fit what it says of itself.
type model struct {
	name      string
	precision string
	session   *onnxruntime.Session
	meta      infer.Metadata
	input     string // name of the input
	boxes     int    // rows of the outputs
	anyBatch  bool

	// The types of input and outputs: Float32 but on a GPU.
	inputType, boxesType, scoresType onnxruntime.ElementType
}

// loadModel loads a built-in model in a precision or a file, for the CPU.
// Errors are *infer.ModelError.
func loadModel(library *onnxruntime.Library, name, precision string) (*model, error) {
	return loadModelFor(library, name, precision, onnxruntime.SessionOptions{})
}

// loadModelFor is loadModel with session options. Where these name providers
// inputs and outputs may be float16.
func loadModelFor(library *onnxruntime.Library, name, precision string, opts onnxruntime.SessionOptions) (*model, error) {
	return loadModelWith(library, name, precision, opts, len(opts.Providers) > 0)
}

func loadModelWith(library *onnxruntime.Library, name, precision string, opts onnxruntime.SessionOptions, half bool) (*model, error) {
	m := &model{name: name, precision: precision}
	var err error
	if strings.HasPrefix(name, builtin.Prefix) {
		var content []byte
		if content, err = builtin.Model(name, precision); err != nil {
			return nil, err
		}
		m.session, err = library.NewSession(content, opts)
	} else if err = checkFile(name); err == nil {
		m.session, err = library.NewSessionFromFile(name, opts)
	}
	if err != nil {
		return nil, &infer.ModelError{Model: name, Err: reason(err), Hint: "name the path of an .onnx file, or " + builtin.NanoDetG}
	}
	if err := m.fit(half); err != nil {
		m.session.Close()
		return nil, &infer.ModelError{Model: name, Err: err, Hint: "the file must carry edgecam's metadata keys and fit them; " + builtin.NanoDetG + " always does"}
	}
	return m, nil
}

// checkFile finds what the library would put less clearly.
func checkFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			return p.Err
		}
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a directory")
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case info.Size() == 0:
		return errors.New("is empty")
	}
	return nil
}

// reason says what the library's code means, without the path that the model
// error names already.
func reason(err error) error {
	var status *onnxruntime.StatusError
	if !errors.As(err, &status) {
		return err
	}
	switch status.Code {
	case onnxruntime.CodeInvalidProtobuf, onnxruntime.CodeNoModel:
		return fmt.Errorf("is no ONNX model, or a damaged one: %w", status)
	case onnxruntime.CodeNotImplemented:
		return fmt.Errorf("uses what this ONNX Runtime does not have: %w", status)
	}
	return status
}

// fit checks the ports against the metadata. half allows float16.
func (m *model) fit(half bool) (err error) {
	if m.meta, err = infer.ParseMetadata(m.session.Metadata()); err != nil {
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
	m.boxes, m.boxesType, m.scoresType = int(boxes.Shape[1]), boxes.Type, scores.Type
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
	m.input, m.anyBatch, m.inputType = in.Name, in.Shape[0] < 0, in.Type
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
