package model

import (
	"fmt"
	"slices"
	"strings"

	"edgecam/infer"
	"edgecam/infer/model/onnx"
)

// tensor is one of the outputs.
type tensor struct {
	place int // among the session's outputs
	name  string
	typ   onnx.Type
	// dims are those of one picture: without the batch, where there is one.
	dims    []int64
	batched bool
}

func (t *tensor) String() string {
	dims := make([]string, 0, len(t.dims)+1)
	if t.batched {
		dims = append(dims, "N")
	}
	for _, d := range t.dims {
		if d < 0 {
			dims = append(dims, "?")
		} else {
			dims = append(dims, fmt.Sprint(d))
		}
	}
	return fmt.Sprintf("%s %v[%s]", t.name, t.typ, strings.Join(dims, ","))
}

// float tells whether the tensor holds numbers rather than ids.
func (t *tensor) float() bool {
	return t.typ == onnx.Float32 || t.typ == onnx.Float16
}

// called tells whether the name holds one of the words.
func (t *tensor) called(words ...string) bool {
	n := strings.ToLower(t.name)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(n, w) })
}

// outputs reads the outputs' shapes.
func (in *inspector) outputs() bool {
	batch := int64(max(in.rep.Spec.Input.Batch, 1))
	batched := strings.HasPrefix(in.rep.Spec.Input.Layout, "N")
	for i := range in.model.Graph.Outputs {
		v := &in.model.Graph.Outputs[i]
		if slices.ContainsFunc(in.outs, func(t tensor) bool { return t.name == v.Name }) {
			in.refuse("has the output %s twice", v.Name)
			return false
		}
		f := in.g.shapes.Of(v.Name)
		t := tensor{place: i, name: v.Name, typ: v.Type, dims: slices.Clone(f.Dims)}
		if batched && len(t.dims) > 0 && (t.dims[0] == batch || t.dims[0] < 0 && len(t.dims) > 1) && !loose(v) {
			t.dims, t.batched = t.dims[1:], true
		}
		in.outs = append(in.outs, t)
		in.rep.Spec.Outputs = append(in.rep.Spec.Outputs, Output{Name: v.Name, Type: v.Type.String(), Shape: ints(f.Dims), Role: "ignored"})
		if !f.Ranked {
			in.refuse("output %s: its shape is neither declared nor to be found out", v.Name)
		}
	}
	if len(in.outs) == 0 {
		in.refuse("has no outputs")
	}
	return len(in.broken) == 0
}

// loose tells of [detections,6] and the like, whose first dimension is no batch.
func loose(v *onnx.Value) bool {
	if len(v.Dims) != 2 {
		return false
	}
	return v.Dims[0] < 0 && (v.Dims[1] == 3 || v.Dims[1] == 4 || v.Dims[1] == 6 || v.Dims[1] == 7) && !strings.Contains(strings.ToLower(v.Name), "num")
}

// task refuses networks that are made for something else.
func (in *inspector) task() bool {
	s := &in.rep.Spec
	s.Task = "detect"
	task, stated := in.rep.Metadata["task"]
	switch task {
	case "", "detect":
		if stated {
			in.find("task", "detect", "metadata task", Stated)
		}
	case "segment", "pose":
		in.find("task", "detect", "metadata task is "+task+": its boxes are used", Stated)
	case "obb":
		in.refuse("finds turned boxes (metadata task obb): edgecam shows upright ones")
	case "classify":
		in.refuse("names pictures as a whole (metadata task classify) and finds no objects in them")
	default:
		in.refuse("is made for the task %q (metadata task): edgecam runs detectors", clip(task))
	}
	return len(in.broken) == 0
}

// match is one way to read the outputs.
type match struct {
	family string
	layout infer.Layout
	roles  map[int]string // by place
	inside bool           // NMS
	why    string
	c      Certainty
	notes  []string
}

// layout gives a Layout of which nothing is there yet.
func layoutOf(kind infer.Kind) infer.Layout {
	return infer.Layout{
		Kind: kind, Background: -1,
		At:      infer.Columns{Box: -1, Object: -1, Scores: -1, Class: -1, Image: -1},
		Outputs: infer.Outputs{Boxes: -1, Scores: -1, Classes: -1, Count: -1, Selected: -1},
	}
}

// recognise finds the one way in which the outputs can be read, or asks.
func (in *inspector) recognise() bool {
	var found []match
	for _, look := range []func(*inspector) []match{stated, chosen, listed, finishedRows, joined, apart, heads, cellsAlone} {
		if found = look(in); len(found) > 0 {
			break
		}
	}
	if len(in.broken) > 0 || len(in.rep.Ask) > 0 {
		return false
	}
	all := families(found)
	if want := in.o.Family; want != "" {
		found = slices.DeleteFunc(found, func(m match) bool { return !sameFamily(m.family, want) })
		if len(found) == 0 {
			in.misfit(want, all)
			return false
		}
	}
	switch {
	case len(found) == 0:
		in.refuse("its outputs (%s) are of no form that edgecam knows%s", in.outputNames(), in.hint())
		return false
	case len(families(found)) > 1:
		in.ask("inference.model.family", fmt.Sprintf("the outputs (%s) can be read in several ways", in.outputNames()), families(found)...)
		return false
	}
	in.take(&found[0])
	return true
}

// sameFamily tells whether a configured family stands for one that was found: families whose outputs are
// read alike have one name for all.
func sameFamily(found, want string) bool {
	if found == want {
		return true
	}
	for _, alike := range [][]string{
		{YOLOv5, YOLOv7},
		{RTDETR, DFINE},
		{RFDETR, RTDETR, DFINE},
		{ONNXNMS, YOLOv7, YOLONAS},
		{EfficientNMS, YOLONAS, YOLOv7},
		{YOLOv10, ONNXNMS, YOLOv8},
	} {
		if slices.Contains(alike, found) && slices.Contains(alike, want) {
			return true
		}
	}
	return false
}

func families(found []match) []string {
	var all []string
	for _, m := range found {
		if !slices.Contains(all, m.family) {
			all = append(all, m.family)
		}
	}
	return all
}

func (in *inspector) misfit(want string, all []string) {
	as := ""
	if len(all) > 0 {
		as = "; they are those of " + strings.Join(all, " or ")
	}
	in.refuse("inference.model.family is %s, but the outputs (%s) are not of its form%s", want, in.outputNames(), as)
}

func (in *inspector) outputNames() string {
	var all []string
	for i := range in.outs {
		all = append(all, in.outs[i].String())
	}
	return strings.Join(all, ", ")
}

// take makes a match the model's.
func (in *inspector) take(m *match) {
	s := &in.rep.Spec
	s.Family, s.Decode, s.NMS.Inside = m.family, m.layout, m.inside
	if in.o.Family != "" {
		s.Family = in.o.Family
		in.find("family", s.Family, "inference.model.family; the outputs fit: "+m.why, FromConfig)
	} else {
		in.find("family", s.Family, m.why, m.c)
	}
	in.rep.Notes = append(in.rep.Notes, m.notes...)
	var unused []string
	for i := range in.outs {
		if role, ok := m.roles[i]; ok {
			s.Outputs[i].Role = role
		} else {
			unused = append(unused, in.outs[i].String())
		}
	}
	if len(unused) > 0 {
		in.note("outputs that are not used: %s", strings.Join(unused, ", "))
	}
	in.find("outputs", describe(&s.Decode), in.outputNames(), m.c)
}

// scoresName is the output that has the scores, as the file declares it.
func (in *inspector) scoresName() string {
	at := in.rep.Spec.Decode.Outputs
	for _, place := range []int{at.Scores, at.Boxes} {
		if place >= 0 && place < len(in.outs) {
			return "output " + in.outs[place].String()
		}
	}
	return "the file"
}
