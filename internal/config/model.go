package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// DefaultModel is the name of the model of inference.model, beside those of
// inference.models.
const DefaultModel = "default"

// Model is a model file, with what is to be taken for granted of it. Zero
// values leave it to the file.
type Model struct {
	File           string     `yaml:"file"`   // builtin:nanodet-g or a path to an .onnx file
	Family         string     `yaml:"family"` // how outputs are read
	Input          ModelInput `yaml:"input"`
	Labels         Labels     `yaml:"labels"`
	ScoreThreshold float64    `yaml:"score_threshold"` // 0 = inference.score_threshold
	NMS            NMS        `yaml:"nms"`
}

// ModelInput says how pictures go into a model.
type ModelInput struct {
	Size      []int     `yaml:"size"`      // width and height
	Layout    string    `yaml:"layout"`    // NCHW|NHWC
	Color     string    `yaml:"color"`     // RGB|BGR
	Mean      []float64 `yaml:"mean"`      // of three channels
	Std       []float64 `yaml:"std"`       // of three channels
	Scale     float64   `yaml:"scale"`     // factor on samples of 0..255, before mean and std
	Letterbox string    `yaml:"letterbox"` // center|top_left
}

// NMS says which overlapping boxes are dropped.
type NMS struct {
	IoU           float64 `yaml:"iou"` // 0 = inference.nms_iou
	ClassAgnostic bool    `yaml:"class_agnostic"`
}

// Labels are the names of a model's classes: a file of them, or themselves.
type Labels struct {
	File  string
	Names []string
}

// ModelProblem is something wrong with a model: Key is the key of its mapping
// that would mend it, "" where none would. File says that the file itself is what is
// wrong, so that its name is told.
type ModelProblem struct {
	Key  string
	Err  error
	File bool
}

// Named gives every model by its name, inference.model as DefaultModel, with its
// threshold filled in.
func (i *Inference) Named() map[string]Model {
	out := maps.Clone(i.Models)
	if out == nil {
		out = map[string]Model{}
	}
	out[DefaultModel] = i.Model
	for name, m := range out {
		if m.ScoreThreshold == 0 {
			m.ScoreThreshold = i.ScoreThreshold
		}
		out[name] = m
	}
	return out
}

// ModelName is the name of the camera's model.
func (c *Camera) ModelName() string {
	if c.Model == "" {
		return DefaultModel
	}
	return c.Model
}

// modelPath is where a model of a name stands in the file.
func modelPath(name string) string {
	if name == DefaultModel {
		return "inference.model"
	}
	return "inference.models." + name
}

// sequence decodes a list of single values.
func (d *decoder) sequence(path string, n ast.Node, at place, v reflect.Value) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(at, path, "", fmt.Errorf("want a list, not %s", kindOf(n)))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(list.Values))
	for _, item := range list.Values {
		elem := reflect.New(v.Type().Elem()).Elem()
		at := placeOf(item)
		item = d.plainNode(item)
		if item == nil {
			d.fail(at, path, "", errNowhere)
			return
		}
		text, ok := d.scalar(path, item, at)
		if !ok {
			return
		}
		if err := setText(text, elem); err != nil {
			d.fail(at, path, text, err)
			return
		}
		out = reflect.Append(out, elem)
	}
	if v.SetZero(); out.Len() > 0 {
		v.Set(out)
	}
}

// labels decodes a list of labels, or the name of a file of them.
func (d *decoder) labels(path string, n ast.Node, at place, v reflect.Value) {
	var l Labels
	switch n.(type) {
	case *ast.SequenceNode:
		d.sequence(path, n, at, reflect.ValueOf(&l.Names).Elem())
	case *ast.MappingNode:
		d.fail(at, path, "", errors.New("want the path of a file, or a list of labels"))
		return
	default:
		l.File, _ = d.scalar(path, n, at)
	}
	v.Set(reflect.ValueOf(l))
}

// checkModels checks every model and gives their labels by name, as far as
// o.CheckModel tells.
func (d *decoder) checkModels(i *Inference, o Options) map[string][]string {
	labels := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(i.Named())) {
		m, path := i.Models[name], modelPath(name)
		if name == DefaultModel {
			m = i.Model
		}
		before := len(d.errs)
		d.checkModel(path, &m, i.Precision, o)
		if len(d.errs) > before || d.failed[path] || o.CheckModel == nil {
			continue
		}
		of, problems := o.CheckModel(d.resolved(m), i.Precision)
		for _, p := range problems {
			at, value := path, ""
			if p.Key != "" {
				at = join(path, p.Key)
			} else if p.File {
				value = m.File
			}
			d.failAt(at, value, p.Err)
		}
		if len(problems) == 0 && of != nil {
			labels[name] = of
		}
	}
	return labels
}

func (d *decoder) checkModel(path string, m *Model, precision string, o Options) {
	switch {
	case strings.TrimPrefix(m.File, builtin) == "":
		at := path
		if _, ok := d.at[path+".file"]; ok {
			at = path + ".file"
		}
		d.failAt(at, "", errors.New("want builtin:nanodet-g or the path of an .onnx file"))
	case strings.HasPrefix(m.File, builtin) && o.CheckBuiltin != nil:
		if err := o.CheckBuiltin(m.File, precision); err != nil {
			d.failAt(path, m.File, err)
		}
	}
	if m.Family != "" && len(o.Families) > 0 {
		d.known(path+".family", m.Family, o.Families)
	}
	d.fraction(path+".score_threshold", m.ScoreThreshold)
	d.fraction(path+".nms.iou", m.NMS.IoU)
	d.checkModelInput(path+".input", &m.Input)
	for _, l := range m.Labels.Names {
		if strings.TrimSpace(l) == "" || hasControl(l) {
			d.failAt(path+".labels", "", errors.New("one of the labels is empty or holds a control character"))
			break
		}
	}
}

func (d *decoder) checkModelInput(path string, in *ModelInput) {
	const maxSide = 8192
	size := in.Size
	if size != nil && (len(size) != 2 || min(size[0], size[1]) < 1 || max(size[0], size[1]) > maxSide) {
		d.failAt(path+".size", "", fmt.Errorf("want width and height in pixels, 1 to %d, such as [640, 640]", maxSide))
	}
	for _, list := range []struct {
		key    string
		values []float64
		least  float64
		text   string
	}{{"mean", in.Mean, -1e6, "-1e6"}, {"std", in.Std, 1e-6, "1e-6"}} {
		wrong := slices.ContainsFunc(list.values, func(n float64) bool { return !(n >= list.least && n <= 1e6) })
		if list.values != nil && (len(list.values) != 3 || wrong) {
			d.failAt(path+"."+list.key, "", fmt.Errorf("want three numbers of %s to 1e6, one a channel in the order of color", list.text))
		}
	}
	if in.Scale != 0 && !(in.Scale >= 1e-6 && in.Scale <= 1e6) {
		d.failAt(path+".scale", number(in.Scale), errors.New("want 1e-6 to 1e6, or 0 for what the file says"))
	}
	for _, word := range []struct {
		key, value string
		want       []string
	}{
		{"layout", in.Layout, []string{"NCHW", "NHWC"}},
		{"color", in.Color, []string{"RGB", "BGR"}},
		{"letterbox", in.Letterbox, []string{"center", "top_left"}},
	} {
		if word.value != "" {
			d.oneOf(path+"."+word.key, word.value, word.want...)
		}
	}
}

// known reports a word that is none of those wanted, with what it may have meant.
func (d *decoder) known(path, value string, want []string) {
	if slices.Contains(want, value) {
		return
	}
	if near := Closest(value, want); near != "" {
		d.failAt(path, value, fmt.Errorf("did you mean %s?", near))
		return
	}
	d.failAt(path, value, fmt.Errorf("want one of %s", strings.Join(want, ", ")))
}

// checkCameraModel finds cameras that name a model that is not there, or labels that
// their model does not have.
func (d *decoder) checkCameraModel(path string, c *Camera, i *Inference, labels map[string][]string) {
	name := c.ModelName()
	if _, ok := i.Models[name]; !ok && name != DefaultModel {
		names := append(slices.Sorted(maps.Keys(i.Models)), DefaultModel)
		if near := Closest(name, names); near != "" {
			d.failAt(path+".model", name, fmt.Errorf("there is no such model under inference.models: did you mean %s?", near))
		} else {
			d.failAt(path+".model", name, fmt.Errorf("there is no such model under inference.models: want %s", strings.Join(names, " or ")))
		}
		return
	}
	of, ok := labels[name]
	if !ok {
		return
	}
	for _, label := range slices.Sorted(maps.Keys(c.Detect.Objects)) {
		if !slices.Contains(of, label) {
			d.failAt(path+".detect.objects."+label, "", UnknownLabel(label, of))
		}
	}
}

// mostLabels is how many labels an error lists.
const mostLabels = 100

// UnknownLabel says that a model has no such label, and which one may be meant.
func UnknownLabel(label string, labels []string) error {
	if near := Closest(label, labels); near != "" {
		return fmt.Errorf("the model has no label %q: did you mean %q?", label, near)
	}
	for _, l := range labels {
		if strings.EqualFold(l, label) {
			return fmt.Errorf("the model has no label %q: did you mean %q?", label, l)
		}
	}
	if n := len(labels); n > mostLabels {
		return fmt.Errorf("the model has no label %q; it has %s and %d more", label, strings.Join(labels[:mostLabels], ", "), n-mostLabels)
	}
	return fmt.Errorf("the model has no label %q; it has %s", label, strings.Join(labels, ", "))
}

// resolved is the model with its paths from the file's directory on.
func (d *decoder) resolved(m Model) Model {
	for _, p := range []*string{&m.File, &m.Labels.File} {
		if *p != "" && !strings.HasPrefix(*p, builtin) {
			*p = d.resolvePath(*p)
		}
	}
	return m
}
