package ort

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"edgecam/infer"
	"edgecam/infer/builtin"
	spec "edgecam/infer/model"
	"edgecam/platform/onnxruntime"
)

// model is a loaded model whose ports fit what is known of it.
type model struct {
	name      string
	precision string
	session   *onnxruntime.Session
	meta      infer.Metadata

	// layout is nil where the outputs are boxes in input pixels and finished scores,
	// as in the built-in models: outputs are then these two.
	layout  *infer.Layout
	nms     spec.NMS
	boxes   int // rows of the outputs, of a model without layout
	input   inputPort
	sizes   *spec.SizesInput // nil = it has no such input
	outputs []outputPort     // those that are read
	places  int              // how many outputs the session has
	batch   int              // images of every run; 0 = as many as wanted
}

// loadModel loads a built-in model in a precision or a file, for the CPU.
// Errors are *infer.ModelError.
func loadModel(library *onnxruntime.Library, src source, precision string) (*model, error) {
	return loadModelFor(library, src, precision, onnxruntime.SessionOptions{})
}

// loadModelFor is loadModel with session options. Where these name providers
// boxes, scores and the input of a model without layout may be float16.
func loadModelFor(library *onnxruntime.Library, src source, precision string, opts onnxruntime.SessionOptions) (*model, error) {
	return loadModelWith(library, src, precision, opts, len(opts.Providers) > 0)
}

func loadModelWith(library *onnxruntime.Library, src source, precision string, opts onnxruntime.SessionOptions, half bool) (*model, error) {
	name := src.name
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
		return nil, &infer.ModelError{Model: name, Err: reason(err), Hint: fileHint}
	}
	m.places = len(m.session.Outputs())
	if src.spec != nil && !m.plain(src.spec, half) {
		err = m.fitSpec(src.spec)
	} else {
		err = m.fit(src.spec, half)
	}
	if err != nil {
		m.session.Close()
		return nil, &infer.ModelError{Model: name, Err: err, Hint: "run edgecam model inspect on the file, which says what it needs; " + builtin.NanoDetG + " always works"}
	}
	return m, nil
}

// checkFile finds what the library would put less clearly. It opens nothing: a pipe would wait for who writes to it.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			return p.Err
		}
		return err
	}
	switch {
	case info.IsDir():
		return errors.New("is a directory")
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case info.Size() == 0:
		return errors.New("is empty")
	}
	return nil
}

var (
	unknownOperation = regexp.MustCompile(`(\S+)\(-?\d+\) is not a registered function/op`)
	newerIR          = regexp.MustCompile(`Unsupported model IR version: (\d+), max supported IR version: (\d+)`)
	newerOpset       = regexp.MustCompile(`Opset (\d+) is under development.*Current official support for domain (\S+) is till opset (\d+)`)
	// inSource is the place in the library's own sources, which tells an operator nothing.
	inSource = regexp.MustCompile(`\s*/\S*onnxruntime\S*\.(?:cc|h|cpp):\d+ .*?\) ?(?:const )?(?:\[[A-Za-z]+\] : \d+ : [A-Z_]+ : |was false\. )?`)
)

// newer says what of a file is newer than the library.
func newer(text string) error {
	if v := newerIR.FindStringSubmatch(text); v != nil {
		return fmt.Errorf("is written in ONNX IR version %s, the newest that this ONNX Runtime reads is %s: export it with an older one, or update ONNX Runtime", v[1], v[2])
	}
	if v := newerOpset.FindStringSubmatch(text); v != nil {
		return fmt.Errorf("uses opset %s, the newest that this ONNX Runtime has (of %s) is %s: export it with an older one, or update ONNX Runtime", v[1], v[2], v[3])
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
	if op := unknownOperation.FindStringSubmatch(status.Text); op != nil {
		return fmt.Errorf("uses the operation %s, which this ONNX Runtime does not have", op[1])
	}
	if err := newer(status.Text); err != nil {
		return err
	}
	status = &onnxruntime.StatusError{Call: status.Call, Code: status.Code, Text: inSource.ReplaceAllString(status.Text, " ")}
	switch status.Code {
	case onnxruntime.CodeInvalidProtobuf, onnxruntime.CodeNoModel:
		return fmt.Errorf("is no ONNX model, or a damaged one: %w", status)
	case onnxruntime.CodeNotImplemented:
		return fmt.Errorf("uses what this ONNX Runtime does not have: %w", status)
	}
	return status
}
