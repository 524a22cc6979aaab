package model

import (
	"fmt"
	"strings"

	"edgecam/infer"
	"edgecam/infer/model/onnx"
)

// listed looks for finished detections in tensors of boxes, scores and class ids.
func listed(in *inspector) []match {
	boxes, scores, classes, count := in.parts()
	if boxes == nil || scores == nil || classes == nil {
		return nil
	}
	l := layoutOf(infer.Listed)
	l.Values, l.At.Box, l.At.Scores, l.At.Class = 4, 0, 0, 0
	l.Outputs = infer.Outputs{Boxes: boxes.place, Scores: scores.place, Classes: classes.place, Count: -1, Selected: -1}
	if n := boxes.dims[0]; n > 0 && boxes.batched {
		l.Rows = int(n)
		l.Padded = in.rep.Spec.Input.Sizes == nil // lists of queries are full
	}
	m := match{layout: l, inside: true, c: FromShape, roles: map[int]string{boxes.place: "boxes", scores.place: "scores", classes.place: "class ids"}}
	if count != nil {
		m.layout.Outputs.Count = count.place
		m.roles[count.place] = "number of detections"
	}
	m.why = fmt.Sprintf("finished detections in outputs of their own: boxes %v, scores %v, class ids %v", boxes, scores, classes)
	in.listFamily(&m, boxes, classes, count)
	return []match{m}
}

// parts finds tensors of finished detections by names and shapes. Raw ones that stand beside them are passed over.
func (in *inspector) parts() (boxes, scores, classes, count *tensor) {
	for i := range in.outs {
		t := &in.outs[i]
		d := t.dims
		switch {
		case t.called("raw_", "anchor", "multiclass"):
		case len(d) == 2 && (d[1] == 4 || d[1] < 0 && t.called("boxes")) && t.float() && boxes == nil:
			boxes = t
		case t.called("num", "count") && (len(d) == 0 || len(d) == 1 && d[0] <= 1):
			count = t
		case len(d) != 1 && !(len(d) == 2 && d[1] == 1):
		case !t.float() || t.called("class", "label") || in.ids(t):
			if classes == nil {
				classes = t
			}
		case scores == nil:
			scores = t
		}
	}
	return boxes, scores, classes, count
}

// ids tells whether the graph fills a tensor with whole numbers.
func (in *inspector) ids(t *tensor) bool {
	return !t.called("score", "conf", "prob") && in.whole(t.name)
}

// whole tells whether a value comes from integers.
func (in *inspector) whole(value string) bool {
	for range maxTrace {
		n := in.g.makers[value]
		if n == nil {
			return false
		}
		if n.Op == "Cast" && n.Int("to", 0) != int64(onnx.Float32) && n.Int("to", 0) != int64(onnx.Float16) {
			return true
		}
		if in.g.nature(value) == index {
			return true
		}
		if !moves(n.Op) && !selects(n.Op) || len(n.Inputs) == 0 {
			return false
		}
		value = n.Inputs[0]
	}
	return false
}

// listFamily tells which of the families that list detections it is.
func (in *inspector) listFamily(m *match, boxes, classes, count *tensor) {
	l := &m.layout
	tensorFlow := boxes.called("detection_boxes") || strings.Contains(strings.ToLower(in.rep.Producer), "tf2onnx")
	switch {
	case tensorFlow:
		m.family, l.Box, l.Units, l.FirstID = SSDTensorFlow, infer.YXYX, infer.Fractions, 1
		m.why += "; TensorFlow's names: corners with the top first, in fractions, classes counted from 1"
	case in.rep.Spec.Input.Sizes != nil:
		m.family = RTDETR
		m.why += "; boxes are scaled by the sizes that are fed"
		if in.mentions("integral", "lqe") {
			m.family = DFINE
			m.why += "; distributions are integrated, as D-FINE does"
		} else {
			m.notes = append(m.notes, "RT-DETR, D-FINE and DEIM are read alike")
		}
	case in.g.has("EfficientNMS_TRT", "BatchedNMSDynamic_TRT"):
		m.family = EfficientNMS
		m.why += "; the graph ends in TensorRT's plugin for NMS"
		if n := in.node("EfficientNMS_TRT"); n != nil && n.Int("box_coding", 0) == 0 && n.Int("background_class", -1) >= 0 {
			m.notes = append(m.notes, fmt.Sprintf("the plugin leaves out class %d as background", n.Int("background_class", -1)))
		}
	case !boxes.batched && count == nil:
		m.family, l.FirstID = SSDTorchvision, 1
		m.why += "; as many as there are, without a batch: torchvision's detectors, classes counted from 1"
	case count != nil:
		m.family = EfficientNMS
		m.why += "; the form that EfficientNMS gives: corners in pixels"
	default:
		m.family = RTDETR
		m.why += "; one detection a query"
		l.Units = infer.Fractions
		if before, yes := in.g.strided(boxes.name); yes || before != boxes.name {
			l.Units = infer.InputPixels
		}
	}
	l.Classes = in.classesOf(classes)
	for i := range in.outs { // of TensorFlow: the background and all classes of each detection
		if d := in.outs[i].dims; l.Classes == 0 && in.outs[i].called("multiclass_scores") && len(d) == 2 && d[1] > 1 {
			l.Classes = int(d[1]) - 1
		}
	}
}

func (in *inspector) node(op string) *onnx.Node {
	for i := range in.model.Graph.Nodes {
		if n := &in.model.Graph.Nodes[i]; n.Op == op {
			return n
		}
	}
	return nil
}

// classesOf asks the graph how many classes there are: what NMS is fed with, or what ids are the rest of a division by.
func (in *inspector) classesOf(classes *tensor) int {
	for _, op := range []string{"EfficientNMS_TRT", "BatchedNMSDynamic_TRT"} {
		if n := in.node(op); n != nil {
			if d := in.g.shapes.Of(n.Input(1)).Dims; len(d) == 3 && d[2] > 0 && d[2] <= maxLabels {
				return int(d[2])
			}
		}
	}
	if classes == nil {
		return 0
	}
	return in.modulus(classes.name)
}

// modulus looks for id = place mod classes, or place − place/classes·classes.
func (in *inspector) modulus(value string) int {
	for range 8 {
		n, _ := in.g.origin(value)
		if n == nil {
			return 0
		}
		switch n.Op {
		case "Mod", "Div":
			if v := in.g.numbers(n.Input(1), 1); len(v) == 1 && v[0] >= 1 && v[0] <= maxLabels {
				return int(v[0])
			}
			return 0
		case "Mul":
			for _, operand := range n.Inputs {
				if v := in.g.numbers(operand, 1); len(v) == 1 && v[0] >= 1 && v[0] <= maxLabels {
					return int(v[0])
				}
			}
			return 0
		case "Sub":
			value = n.Input(1)
		case "GatherElements", "Gather", "Slice", "Floor":
			value = n.Input(0)
		default:
			return 0
		}
	}
	return 0
}

// chosen looks for ONNX's own NMS at the end of the graph: all boxes and scores, and which of them are left.
func chosen(in *inspector) []match {
	var list *tensor
	for i := range in.outs {
		t := &in.outs[i]
		n, _ := in.g.origin(t.name)
		if n != nil && n.Op == "NonMaxSuppression" && len(t.dims) == 2 && t.dims[1] == 3 {
			list = t
		}
	}
	if list == nil {
		return nil
	}
	n, _ := in.g.origin(list.name)
	var boxes, scores *tensor
	for i := range in.outs {
		t := &in.outs[i]
		switch {
		case t == list || len(t.dims) != 2 || !t.float():
		case t.dims[1] == 4 && boxes == nil:
			boxes = t
		case scores == nil:
			scores = t
		}
	}
	if boxes == nil || scores == nil || boxes.dims[0] != scores.dims[1] && boxes.dims[0] != scores.dims[0] {
		return nil
	}
	l := layoutOf(infer.Selected)
	l.Rows, l.Values, l.At.Box, l.At.Scores = int(boxes.dims[0]), 4, 0, 0
	l.Outputs.Boxes, l.Outputs.Scores, l.Outputs.Selected = boxes.place, scores.place, list.place
	l.ScoresByValue = scores.dims[1] == boxes.dims[0]
	if l.Classes = int(scores.dims[1]); l.ScoresByValue {
		l.Classes = int(scores.dims[0])
	}
	why := fmt.Sprintf("boxes %v, scores %v, and what NonMaxSuppression chooses of them, %v", boxes, scores, list)
	switch {
	case n.Int("center_point_box", 0) != 0:
		l.Box = infer.CXCYWH
		why += "; it reads centres and sizes"
	case in.o.Family == SSDTensorFlow || strings.Contains(strings.ToLower(in.rep.Producer), "tf2onnx"):
		l.Box, l.Units = infer.YXYX, infer.Fractions
		why += "; TensorFlow's corners: the top first, in fractions"
	default:
		why += "; it reads corners"
	}
	return []match{{
		family: ONNXNMS, layout: l, inside: true, why: why, c: FromShape,
		roles: map[int]string{boxes.place: "boxes", scores.place: "scores", list.place: "which rows are left"},
	}}
}

// finishedRows looks for one tensor whose rows are detections: box, score, class.
func finishedRows(in *inspector) []match {
	if in.paddle() {
		return nil // whose rows begin with the class
	}
	var found []match
	for i := range in.outs {
		t := &in.outs[i]
		if !t.float() || len(t.dims) != 2 {
			continue
		}
		var m *match
		switch {
		case !t.batched && t.dims[1] == 7:
			m = in.sevenRows(t)
		case t.dims[1] >= 6 && t.dims[0] <= 2000:
			m = in.sixRows(t)
		}
		if m != nil {
			m.roles = map[int]string{t.place: "detections"}
			m.layout.Outputs.Boxes = t.place
			m.layout.Classes = in.suppressed()
			found = append(found, *m)
		}
	}
	if len(found) > 1 {
		return nil
	}
	return found
}

// suppressed is how many classes the graph's NMS is fed with, where it is more than one.
func (in *inspector) suppressed() int {
	if n := in.node("NonMaxSuppression"); n != nil {
		if d := in.g.shapes.Of(n.Input(1)).Dims; len(d) == 3 && d[1] > 1 && d[1] <= maxLabels {
			return int(d[1])
		}
	}
	return 0
}

// sevenRows: the picture's place, a box, and score and class in either order.
func (in *inspector) sevenRows(t *tensor) *match {
	l := layoutOf(infer.EndToEnd)
	l.Values = 7
	l.At.Image, l.At.Box = 0, 1
	parts := in.g.pieces(t.name, 7)
	why := fmt.Sprintf("%v: rows of a picture's place, a box, a score and a class, out of the graph's NMS", t)
	order := map[int64]string{}
	at := int64(0)
	for _, p := range parts {
		if at >= 5 && p.width == 1 {
			order[at] = p.value
		}
		at += p.width
	}
	five, six := in.whole(order[5]), in.whole(order[6])
	switch {
	case five && !six:
		l.At.Class, l.At.Scores = 5, 6
		why += "; column 5 comes from integers: the class stands before the score"
	case six && !five:
		l.At.Scores, l.At.Class = 5, 6
		why += "; column 6 comes from integers: the score stands before the class"
	case in.o.Family == YOLOv7:
		l.At.Class, l.At.Scores = 5, 6
	case in.o.Family == YOLONAS:
		l.At.Scores, l.At.Class = 5, 6
	default:
		in.ask("inference.model.family", fmt.Sprintf("%v does not tell whether score or class comes first", t), YOLOv7, YOLONAS)
		return nil
	}
	return &match{family: ONNXNMS, layout: l, inside: true, why: why, c: FromShape}
}

// finished tells whether nothing speaks against rows of a box, one score and a class: that the graph puts a row together
// of a box and as many scores as are left, as RT-DETR does.
func (in *inspector) finished(t *tensor, values int64) bool {
	p := in.g.pieces(t.name, values)
	return len(p) < 2 || p[0].width != 4 || p[1].width == 1
}

// boxesOfQueries finds rows whose boxes are a DETR's: a Sigmoid gives centre and size in fractions, and nothing makes
// corners or pixels of them.
func (in *inspector) boxesOfQueries(t *tensor, m *match) {
	p := in.g.pieces(t.name, t.dims[1])
	if len(p) < 2 || p[0].width != 4 || in.g.nature(p[0].value) != sigmoid {
		return
	}
	m.family, m.layout.Box, m.layout.Units = RTDETR, infer.CXCYWH, infer.Fractions
	m.why += "; boxes come out of a Sigmoid as they are: centre and size in fractions, as RT-DETR's"
}

// sixRows: a box in pixels, a score and a class, perhaps followed by more.
func (in *inspector) sixRows(t *tensor) *match {
	rows, values := t.dims[0], t.dims[1]
	meta := in.rep.Metadata
	args := strings.ReplaceAll(meta["args"], " ", "")
	_, each := in.rowsOf(rows)
	stated := meta["end2end"] == "True" || strings.Contains(args, "'nms':True")
	inside := stated || in.g.has("NonMaxSuppression", "TopK")
	if values > 6 && !(in.ultralytics() && stated && rows <= 1000 && values < 200) || each > 0 && !inside || !in.finished(t, values) {
		return nil
	}
	if _, turned := in.rowsOf(values); turned > 0 && values > 6 {
		return nil
	}
	l := layoutOf(infer.EndToEnd)
	l.Values, l.At.Box, l.At.Scores, l.At.Class = int(values), 0, 4, 5
	if t.batched {
		l.Rows = int(max(rows, 0))
	}
	m := &match{family: YOLOv10, layout: l, inside: true, c: FromShape, why: fmt.Sprintf("%v: rows of a box, a score and a class", t)}
	if stated {
		m.c, m.why = Stated, m.why+"; metadata say that NMS is inside"
		m.layout.Padded = meta["end2end"] != "True"
	}
	in.boxesOfQueries(t, m)
	if values > 6 {
		m.notes = append(m.notes, fmt.Sprintf("the last %d values of a row are not used", values-6))
	}
	return m
}
