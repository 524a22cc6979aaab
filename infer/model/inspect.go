package model

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"edgecam/infer"
	"edgecam/infer/model/onnx"
	"edgecam/infer/model/shape"
)

// inspector builds a report.
type inspector struct {
	rep    *Report
	o      Overrides
	model  *onnx.Model
	g      *graph
	outs   []tensor
	broken []string // why the file cannot be used
}

func (in *inspector) find(about, value, evidence string, c Certainty) {
	in.rep.Findings = append(in.rep.Findings, Finding{About: about, Value: Printable(value), Evidence: Printable(evidence), Certainty: c})
}

func (in *inspector) note(format string, args ...any) {
	in.rep.Notes = append(in.rep.Notes, Printable(fmt.Sprintf(format, args...)))
}

func (in *inspector) ask(key, why string, alternatives ...string) {
	in.rep.Ask = append(in.rep.Ask, Question{Key: key, Why: Printable(why), Alternatives: alternatives})
}

func (in *inspector) refuse(format string, args ...any) {
	in.broken = append(in.broken, Printable(fmt.Sprintf(format, args...)))
}

// Printable puts a mark in the place of characters that command a terminal, begin a line or turn the direction of
// writing: names in a file are anybody's.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return '\ufffd'
		}
		return r
	}, text)
}

// Inspect reads a model file and says what it is. The report is there as soon as the file can be read, also when
// it cannot be used. Errors are *infer.ModelError: of what is wrong with the file, or of what it does not tell, with the
// keys of the configuration that would.
func Inspect(path string, o Overrides) (*Report, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, &infer.ModelError{Model: path, Err: err, Hint: "name the path of an .onnx file"}
	}
	defer f.Close()
	rep := &Report{File: path, Bytes: size}
	if err := rep.load(f, size, o, filepath.Dir(path)); err != nil {
		return nil, &infer.ModelError{Model: path, Err: err, Hint: "export it again, or copy it again and compare sizes"}
	}
	return rep, rep.Err()
}

// InspectBytes is Inspect of a model in memory, which has no files beside it.
func InspectBytes(name string, content []byte, o Overrides) (*Report, error) {
	rep := &Report{File: name, Bytes: int64(len(content))}
	r := strings.NewReader(string(content))
	if err := rep.load(r, r.Size(), o, ""); err != nil {
		return nil, &infer.ModelError{Model: name, Err: err}
	}
	return rep, rep.Err()
}

// Err says why the model cannot be used, or nil.
func (r *Report) Err() error {
	if r.Refusal != "" {
		return &infer.ModelError{Model: r.File, Err: errors.New(r.Refusal), Hint: "`edgecam model inspect` shows what was found in it"}
	}
	if len(r.Ask) == 0 {
		return nil
	}
	var why, keys []string
	for _, q := range r.Ask {
		text := q.Why
		if len(q.Alternatives) > 0 {
			text += " (" + strings.Join(q.Alternatives, ", ") + ")"
		}
		why, keys = append(why, text), append(keys, q.Key)
	}
	return &infer.ModelError{Model: r.File, Err: errors.New(strings.Join(why, "; ")), Hint: "set " + strings.Join(keys, " and ")}
}

// load fills the report. An error means that there is nothing to report of.
func (r *Report) load(f io.ReaderAt, size int64, o Overrides, dir string) error {
	m, err := onnx.Read(f, size)
	if err != nil {
		return err
	}
	if r.SHA256, err = digest(f, size); err != nil {
		return err
	}
	r.IR, r.Opset, r.Producer, r.Metadata = int(m.IR), int(m.Opsets[""]), producer(m), m.Metadata
	in := &inspector{rep: r, o: o, model: m, g: newGraph(m.Graph)}
	files, more, stamp, err := external(m.Graph, dir)
	r.Weights = stamp
	if r.External, r.Bytes = files, size+more; err != nil {
		in.refuse("%v", err)
	}
	in.inspect()
	r.Refusal = strings.Join(in.broken, "; ")
	return nil
}

// inspect draws the conclusions, each from those before it.
func (in *inspector) inspect() {
	in.rep.Params = params(in.model.Graph)
	in.rep.plugins = in.g.has("EfficientNMS_TRT", "BatchedNMSDynamic_TRT", "BatchedNMS_TRT")
	if in.rep.plugins {
		in.note("it ends in TensorRT's plugin for NMS: only the provider tensorrt runs it")
	}
	if err := in.model.Check(); err != nil {
		in.note("%s: whether it runs depends on the ONNX Runtime on this machine", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	in.checkOverrides()
	if !in.input() {
		return
	}
	in.follow()
	if i := &in.rep.Spec.Input; i.DynamicSize && in.g.shapes.Misfit != "" {
		in.ask("inference.model.input.size", fmt.Sprintf("the input leaves the size open, but what is in the graph is made for another one than %d×%d: %s do not fit together", i.Width, i.Height, in.g.shapes.Misfit), "[width, height] of the export")
		return
	}
	if !in.outputs() || !in.task() {
		return
	}
	if !in.recognise() {
		return
	}
	in.labels()
	in.pixels()
	in.suppression()
}

// follow finds the shapes, with one picture or the batch that the file fixes.
func (in *inspector) follow() {
	i := &in.rep.Spec.Input
	batch := max(i.Batch, 1)
	in.g.shapes = shape.Follow(in.model.Graph, in.feed(batch))
	in.rep.GFLOPs = in.g.shapes.FLOPs / 1e9 / float64(batch)
	if lost := in.g.shapes.Unknown; len(lost) > 0 {
		in.note("the cost leaves out operations that edgecam does not know: %s", strings.Join(lost, ", "))
	}
	if i.Batch != 0 || !strings.HasPrefix(i.Layout, "N") {
		return
	}
	// Some files declare a free batch and hold the one picture of their export all the same.
	const several = 3
	two := shape.Follow(in.model.Graph, in.feed(several))
	for _, o := range in.model.Graph.Outputs {
		one, more := in.g.shapes.Of(o.Name).Dims, two.Of(o.Name).Dims
		if len(one) > 1 && len(more) > 0 && one[0] == 1 && more[0] == 1 {
			i.Batch = 1
			in.find("batch", "1", fmt.Sprintf("the input leaves it free, but %s stays at one picture", o.Name), FromShape)
			return
		}
	}
}

// feed is the inputs' shapes for a batch.
func (in *inspector) feed(batch int) map[string][]int64 {
	i := &in.rep.Spec.Input
	b, w, h := int64(batch), int64(i.Width), int64(i.Height)
	shapes := map[string][]int64{}
	switch i.Layout {
	case "NCHW":
		shapes[i.Name] = []int64{b, 3, h, w}
	case "NHWC":
		shapes[i.Name] = []int64{b, h, w, 3}
	case "CHW":
		shapes[i.Name] = []int64{3, h, w}
	case "HWC":
		shapes[i.Name] = []int64{h, w, 3}
	}
	if i.Sizes != nil {
		shapes[i.Sizes.Name] = []int64{b, 2}
	}
	return shapes
}
