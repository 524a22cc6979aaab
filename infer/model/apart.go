package model

import (
	"fmt"
	"strings"

	"edgecam/infer"
)

// boxTensor gives a tensor's rows where it is one of boxes: [rows,4], [4,rows] or [rows,1,4].
func boxTensor(t *tensor) (rows int64, byValue, yes bool) {
	d := t.dims
	switch {
	case len(d) == 3 && d[1] == 1 && d[2] == 4:
		return d[0], false, true
	case len(d) == 2 && d[1] == 4 && d[0] != 4:
		return d[0], false, true
	case len(d) == 2 && d[0] == 4 && d[1] != 4:
		return d[1], true, true
	}
	return 0, false, false
}

// apart looks for a tensor of boxes and one of all classes' scores.
func apart(in *inspector) []match {
	var found []match
	for i := range in.outs {
		rows, byValue, yes := boxTensor(&in.outs[i])
		if !yes || !in.outs[i].float() || rows < 2 {
			continue
		}
		for k := range in.outs {
			s := &in.outs[k]
			if k == i || !s.float() || len(s.dims) != 2 || s.dims[0] != rows && s.dims[1] != rows {
				continue
			}
			l := layoutOf(infer.Split)
			l.Rows, l.Values, l.ByValue = int(rows), 4, byValue
			l.At.Box, l.At.Scores = 0, 0
			l.Outputs.Boxes, l.Outputs.Scores = i, k
			l.ScoresByValue = s.dims[0] != rows
			l.Classes = int(s.dims[1])
			if l.ScoresByValue {
				l.Classes = int(s.dims[0])
			}
			found = append(found, in.pair(&in.outs[i], s, l)...)
		}
	}
	if len(found) > 1 && found[0].layout.Outputs != found[len(found)-1].layout.Outputs {
		in.refuse("several outputs could be boxes and scores: %s", in.outputNames())
		return nil
	}
	return found
}

// pair finds how boxes and scores that stand apart are meant.
func (in *inspector) pair(boxes, scores *tensor, l infer.Layout) []match {
	m := match{layout: l, c: FromShape, roles: map[int]string{boxes.place: "boxes", scores.place: "scores"}}
	m.why = fmt.Sprintf("boxes %v and scores %v", boxes, scores)
	nature := in.g.nature(scores.name)
	_, pixels := in.g.strided(boxes.name)
	_, each := in.rowsOf(int64(l.Rows))
	switch {
	case nature == softmax:
		return in.priors(&m)
	case boxes.called("pred_boxes", "dets") || each == 0 && in.g.nature(boxes.name) == sigmoid:
		return in.queries(&m, boxes, nature)
	case each == 1:
		return in.decoded(&m, boxes, nature, pixels)
	}
	return nil
}

// priors: SSD whose boxes are decoded to fractions, the background first among the softmax scores.
func (in *inspector) priors(m *match) []match {
	if m.layout.Classes < 2 {
		return nil
	}
	m.family, m.layout.Units, m.layout.Background, m.layout.Box = SSDPriors, infer.Fractions, 0, infer.XYXY
	m.layout.Classes--
	m.why += "; scores go through a Softmax: SSD, with the background first"
	return []match{*m}
}

// queries: DETR and its kin, one box a query as centre and size in fractions.
func (in *inspector) queries(m *match, boxes *tensor, scores nature) []match {
	l := &m.layout
	l.Box, l.Units, m.inside = infer.CXCYWH, infer.Fractions, true
	m.why += "; a box a query, in fractions"
	m.family = RTDETR
	if boxes.called("dets") {
		m.family = RFDETR
		m.why += "; RF-DETR's names"
	} else if in.mentions("integral", "lqe") {
		m.family = DFINE
	}
	if scores.activated() {
		m.why += "; scores go through " + scores.String()
		return []match{*m}
	}
	l.Activation = infer.Sigmoid
	if in.g.has("TopK", "GridSample") || in.o.Family == m.family || m.family == RFDETR {
		m.why += "; scores are raw, and queries are chosen by the encoder's best scores: a sigmoid each"
		return []match{*m}
	}
	if labels, _, _, ok := in.namedLabels(); ok && len(labels) == l.Classes {
		m.why += "; scores are raw and as many as labels: a sigmoid each"
		return []match{*m}
	}
	in.refuse("the scores of its queries (%s) are raw, and nothing tells whether they want a sigmoid (RT-DETR: set inference.model.family to %s) or a softmax with the background last (DETR, which edgecam does not read)", in.outputNames(), RTDETR)
	return nil
}

// decoded: a decoded box for every cell.
func (in *inspector) decoded(m *match, boxes *tensor, scores nature, pixels bool) []match {
	l := &m.layout
	m.family = YOLONAS
	m.why += "; one row for each cell"
	if scores == raw {
		l.Activation = infer.Sigmoid
		m.why += "; no activation follows the last layer of the scores"
	} else if scores.activated() {
		m.why += "; scores go through " + scores.String()
	}
	if pixels {
		m.why += "; boxes are multiplied by strides: pixels"
	}
	if bare, known := in.g.bare(boxes.name); known && bare {
		in.refuse("its boxes (%v) come straight from the last layer, and nothing tells how they are meant: export it with the decoding inside", boxes)
		return nil
	}
	switch centre, known := in.g.format(boxes.name); {
	case known && centre:
		l.Box, l.OneClass, m.family = infer.CXCYWH, true, YOLOv8
		m.why += "; the graph makes centres and sizes"
	case known:
		m.why += "; the graph makes corners"
	case l.ByValue || l.ScoresByValue:
		other := *m
		other.family, other.layout.Box, other.layout.OneClass = YOLOv8, infer.CXCYWH, true
		return []match{*m, other}
	}
	if m.family == YOLONAS && in.o.Family == "" && !in.nas(m, boxes) {
		in.ask("inference.model.family", fmt.Sprintf("a decoded box and scores for every cell (%s) may be YOLO-NAS's, or those of a network that is fed otherwise (DAMO-YOLO, PP-YOLOE), which takes inference.model.input besides", in.outputNames()), YOLONAS)
		return nil
	}
	return []match{*m}
}

// nas tells whether boxes and scores of cells stand as YOLO-NAS gives them: boxes first, both row by row, or by its names.
// DAMO-YOLO gives scores first, PP-YOLOE scores class by class.
func (in *inspector) nas(m *match, boxes *tensor) bool {
	l := &m.layout
	return boxes.called("pred_b") || boxes.place < l.Outputs.Scores && !l.ByValue && !l.ScoresByValue && !in.paddle()
}

// heads looks for tensors of every level: scores and boxes apart, or both in one.
func heads(in *inspector) []match {
	for _, strides := range [][]int{{8, 16, 32}, {8, 16, 32, 64}, {16, 32}} {
		levels := in.grid(strides...)
		if m := in.pairsOf(levels); m != nil {
			return []match{*m}
		}
		if m := in.singlesOf(levels); m != nil {
			return []match{*m}
		}
	}
	return nil
}

// ofLevel gives a tensor's values a cell, where it is one of a level: [cells,values], or [values,height,width]. like
// is how the levels before it stand, for one with as many values as cells.
func ofLevel(t *tensor, l infer.Level, like bool) (values int64, byValue, yes bool) {
	d, n := t.dims, int64(l.Width)*int64(l.Height)
	switch {
	case !t.float():
	case len(d) == 2 && d[0] == n && d[1] == n:
		return n, like, true
	case len(d) == 2 && d[0] == n && d[1] != n:
		return d[1], false, true
	case len(d) == 2 && d[1] == n && d[0] != n:
		return d[0], true, true
	case len(d) == 3 && d[1] == int64(l.Height) && d[2] == int64(l.Width):
		return d[0], true, true
	case len(d) == 3 && d[0] == int64(l.Height) && d[1] == int64(l.Width):
		return d[2], false, true
	}
	return 0, false, false
}

// pairsOf: NanoDet's scores and distributions of every level.
func (in *inspector) pairsOf(levels []infer.Level) *match {
	if len(in.outs) != 2*len(levels) {
		return nil
	}
	l := layoutOf(infer.Heads)
	roles := map[int]string{}
	var scoresName string
	for k := range levels {
		var at []int
		var widths []int64
		var turned []bool
		for i := range in.outs {
			if _, taken := roles[i]; taken {
				continue
			}
			if v, byValue, yes := ofLevel(&in.outs[i], levels[k], l.ByValue); yes {
				at, widths, turned = append(at, i), append(widths, v), append(turned, byValue)
			}
		}
		if len(at) != 2 {
			return nil
		}
		s, b, ok := in.scoresAndBoxes(at, widths)
		if !ok || k > 0 && (l.Classes != int(widths[s]) || l.Values != int(widths[b]) || l.ByValue != turned[b] || l.ScoresByValue != turned[s]) {
			return nil
		}
		l.Classes, l.Values, l.ByValue, l.ScoresByValue = int(widths[s]), int(widths[b]), turned[b], turned[s]
		levels[k].Scores, levels[k].Boxes = at[s], at[b]
		roles[at[s]], roles[at[b]] = fmt.Sprintf("scores of stride %d", levels[k].Stride), fmt.Sprintf("boxes of stride %d", levels[k].Stride)
		scoresName = in.outs[at[s]].name
	}
	if in.paddle() {
		in.refuse("its outputs (%s) are PicoDet's, which look like NanoDet's and are fed otherwise: %s", in.outputNames(), in.paddleText())
		return nil
	}
	l.Grid, l.Rows, l.At.Box, l.At.Scores = levels, int(cellsOf(levels)), 0, 0
	l.Box, l.Coding, l.Bins, l.CellPoint = infer.LTRB, infer.CellBins, l.Values/4, 0.5
	note := "cells are taken at their centre, as NanoDet does with three levels"
	if len(levels) == 4 {
		l.CellPoint, note = 0, "cells are taken at their corner, as NanoDet-Plus does with four levels"
	}
	m := &match{family: NanoDet, roles: roles, c: FromShape, notes: []string{note}}
	m.why = fmt.Sprintf("scores and four distributions of %d for every cell of strides %s", l.Bins, strides(levels))
	if in.g.nature(scoresName) == raw {
		l.Activation = infer.Sigmoid
		m.why += "; no activation follows the last layer of the scores"
	}
	m.layout = l
	return m
}

// scoresAndBoxes tells the two outputs of a level apart. What it gives are places in at.
func (in *inspector) scoresAndBoxes(at []int, widths []int64) (scores, boxes int, ok bool) {
	natures := [2]nature{in.g.nature(in.outs[at[0]].name), in.g.nature(in.outs[at[1]].name)}
	bins := func(w int64) bool { return w%4 == 0 && w/4 >= 5 && w/4 <= 33 }
	named := func(i int) bool { return in.outs[at[i]].called("cls", "class", "score") }
	switch {
	case natures[0].activated() != natures[1].activated():
		if natures[1].activated() {
			scores, boxes = 1, 0
		} else {
			scores, boxes = 0, 1
		}
	case named(0) != named(1):
		if named(1) {
			scores, boxes = 1, 0
		} else {
			scores, boxes = 0, 1
		}
	case bins(widths[0]) != bins(widths[1]):
		if bins(widths[0]) {
			scores, boxes = 1, 0
		} else {
			scores, boxes = 0, 1
		}
	default:
		return 0, 0, false
	}
	return scores, boxes, bins(widths[boxes])
}

// singlesOf: YOLOv8's heads, four distributions and the classes in one tensor of every level.
func (in *inspector) singlesOf(levels []infer.Level) *match {
	const bins = 16
	if len(in.outs) != len(levels) {
		return nil
	}
	l := layoutOf(infer.Heads)
	roles := map[int]string{}
	for k := range levels {
		at := -1
		for i := range in.outs {
			v, byValue, yes := ofLevel(&in.outs[i], levels[k], l.ByValue)
			if !yes || v <= 4*bins || at >= 0 || k > 0 && (l.Values != int(v) || l.ByValue != byValue) {
				continue
			}
			at, l.Values, l.ByValue, l.ScoresByValue = i, int(v), byValue, byValue
		}
		if at < 0 {
			return nil
		}
		levels[k].Boxes, levels[k].Scores = at, at
		roles[at] = fmt.Sprintf("boxes and scores of stride %d", levels[k].Stride)
	}
	name := in.outs[levels[0].Boxes].name
	if bare, known := in.g.bare(name); !known || !bare || strings.Contains(name, "anchor") || (l.Values%3 == 0 && !in.binned(name, 4*bins)) {
		return nil
	}
	l.Grid, l.Rows, l.Classes = levels, int(cellsOf(levels)), l.Values-4*bins
	l.At.Box, l.At.Scores = 0, 4*bins
	l.Box, l.Coding, l.Bins, l.CellPoint, l.Activation = infer.LTRB, infer.CellBins, bins, 0.5, infer.Sigmoid
	l.OneClass = true
	return &match{
		family: YOLOv8, layout: l, roles: roles, c: FromShape,
		why: fmt.Sprintf("four distributions of %d and the classes for every cell of strides %s, straight from the last layers", bins, strides(levels)),
	}
}

// binned tells whether the graph puts a row together after its distributions.
func (in *inspector) binned(name string, width int64) bool {
	for _, t := range in.outs {
		if t.name != name {
			continue
		}
		for _, d := range t.dims {
			if p := in.g.pieces(name, d); len(p) == 2 && p[0].width == width {
				return true
			}
		}
	}
	return false
}

// cellsAlone looks for FastestDet: one level, each cell an objectness, a box and the classes.
func cellsAlone(in *inspector) []match {
	if len(in.outs) != 1 {
		return nil
	}
	t := &in.outs[0]
	levels := in.grid(16)
	values, byValue, yes := ofLevel(t, levels[0], false)
	if !yes || values < 6 {
		return nil
	}
	p := in.g.pieces(t.name, values)
	if len(p) != 3 || p[0].width != 1 || p[1].width != 4 || in.g.nature(p[2].value) != softmax || in.g.nature(p[0].value) != sigmoid {
		return nil
	}
	l := layoutOf(infer.Joined)
	l.Rows, l.Values, l.ByValue = int(cellsOf(levels)), int(values), byValue
	l.Classes, l.Grid, l.Outputs.Boxes = int(values)-5, levels, t.place
	l.At.Object, l.At.Box, l.At.Scores = 0, 1, 5
	l.Box, l.Coding, l.OneClass, l.ObjectPower, l.ClassPower = infer.CXCYWH, infer.CellTanh, true, 0.6, 0.4
	return []match{{
		family: FastestDet, layout: l, c: FromShape, roles: map[int]string{t.place: "boxes and scores"},
		why: fmt.Sprintf("%v: an objectness through a Sigmoid, a box and classes through a Softmax for every cell of stride 16", t),
	}}
}
