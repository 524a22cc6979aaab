package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"edgecam/infer"
)

// grid gives levels of these strides over the input.
func (in *inspector) grid(strides ...int) []infer.Level {
	i := &in.rep.Spec.Input
	var all []infer.Level
	for _, s := range strides {
		all = append(all, infer.Level{Stride: s, Width: (i.Width + s - 1) / s, Height: (i.Height + s - 1) / s, Boxes: -1, Scores: -1})
	}
	return all
}

func cellsOf(levels []infer.Level) (n int64) {
	for _, l := range levels {
		n += int64(l.Width) * int64(l.Height)
	}
	return n
}

// rowsOf finds the grid whose cells are so many rows, and how many rows each cell has.
func (in *inspector) rowsOf(rows int64) (levels []infer.Level, each int64) {
	for _, strides := range [][]int{{8, 16, 32}, {8, 16, 32, 64}, {16, 32}, {4, 8, 16, 32}} {
		levels := in.grid(strides...)
		switch n := cellsOf(levels); rows {
		case n:
			return levels, 1
		case 3 * n:
			return levels, 3
		}
	}
	return nil, 0
}

// table is a joined output: rows of values, and what the graph tells of them.
type table struct {
	in           *inspector
	t            *tensor
	rows, values int64
	byValue      bool
	levels       []infer.Level
	each         int64 // rows of a cell; 0: rows are no cells
	pieces       []piece
}

// joined looks for one tensor of boxes and scores.
func joined(in *inspector) []match {
	var best *table
	for i := range in.outs {
		t := &in.outs[i]
		if len(t.dims) != 2 || !t.float() || t.dims[0] < 1 || t.dims[1] < 1 || min(t.dims[0], t.dims[1]) < 5 {
			continue
		}
		if best == nil || t.dims[0]*t.dims[1] > best.rows*best.values {
			best = in.table(t)
		}
	}
	if best == nil || len(in.broken) > 0 || len(in.rep.Ask) > 0 || in.manyTables() || in.boxesBeside(best.t) {
		return nil
	}
	return best.matches()
}

// manyTables tells of several tables of other sizes: the heads of levels.
func (in *inspector) manyTables() bool {
	n := 0
	for i := range in.outs {
		if d := in.outs[i].dims; len(d) == 2 && in.outs[i].float() {
			n++
		}
	}
	return n > 1
}

// boxesBeside tells of boxes in an output of their own: then a table of as many rows holds scores alone.
func (in *inspector) boxesBeside(t *tensor) bool {
	return slices.ContainsFunc(in.outs, func(o tensor) bool {
		rows, _, yes := boxTensor(&o)
		return yes && o.float() && o.place != t.place && slices.Contains(t.dims, rows)
	})
}

func (in *inspector) table(t *tensor) *table {
	x := &table{in: in, t: t, rows: t.dims[0], values: t.dims[1]}
	levels, each := in.rowsOf(t.dims[0])
	turned, eachTurned := in.rowsOf(t.dims[1])
	switch {
	case each > 0 && eachTurned == 0:
	case eachTurned > 0 && each == 0:
		x.byValue = true
	case t.dims[1] >= 2*t.dims[0]:
		x.byValue = true
	}
	if x.levels, x.each = levels, each; x.byValue {
		x.rows, x.values, x.levels, x.each = t.dims[1], t.dims[0], turned, eachTurned
	}
	x.pieces = in.g.pieces(t.name, x.values)
	return x
}

// cut tells whether the graph puts the row together at that column.
func (x *table) cut(column int64) bool {
	at := int64(0)
	for _, p := range x.pieces {
		if at == column {
			return true
		}
		at += p.width
	}
	return false
}

// at gives the piece that begins at a column.
func (x *table) at(column int64) *piece {
	at := int64(0)
	for i := range x.pieces {
		if at == column {
			return &x.pieces[i]
		}
		at += x.pieces[i].width
	}
	return nil
}

// known tells whether the graph shows how rows are put together.
func (x *table) known() bool { return len(x.pieces) > 1 }

// layout begins the Layout of the table.
func (x *table) layout() infer.Layout {
	l := layoutOf(infer.Joined)
	l.Rows, l.Values, l.ByValue = int(x.rows), int(x.values), x.byValue
	l.Box, l.Outputs.Boxes = infer.CXCYWH, x.t.place
	l.At.Box = 0
	return l
}

// matches are all ways to read the table that nothing speaks against.
func (x *table) matches() []match {
	var found []match
	for _, m := range []*match{x.nanodet(), x.anchored(), x.yolox(), x.yolov6(), x.yolov8(), x.detr()} {
		if m != nil {
			m.roles = map[int]string{x.t.place: "boxes and scores"}
			found = append(found, *m)
		}
	}
	return x.byLabels(found)
}

// byLabels leaves those whose number of classes is that of the labels, where that decides.
func (x *table) byLabels(found []match) []match {
	labels, _, _, ok := x.in.namedLabels()
	if !ok || len(labels) == 0 || len(families(found)) < 2 {
		return found
	}
	var fit []match
	for _, m := range found {
		if m.layout.Classes == len(labels) {
			m.why += fmt.Sprintf("; %d labels fit it", len(labels))
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return found
	}
	return fit
}

// shape describes the table in a sentence.
func (x *table) shape() string {
	form := "rows of values"
	if x.byValue {
		form = "values of rows"
	}
	cells := ""
	switch x.each {
	case 1:
		cells = fmt.Sprintf(", one row for each cell of strides %s", strides(x.levels))
	case 3:
		cells = fmt.Sprintf(", three rows for each cell of strides %s", strides(x.levels))
	}
	return fmt.Sprintf("%v: %s%s", x.t, form, cells)
}

func strides(levels []infer.Level) string {
	var all []string
	for _, l := range levels {
		all = append(all, fmt.Sprint(l.Stride))
	}
	return strings.Join(all, ", ")
}

// activation is what a part of the table still needs.
func (x *table) activation(column int64, why *string) infer.Activation {
	p := x.at(column)
	if p == nil {
		return infer.None
	}
	n := x.in.g.nature(p.value)
	if n == raw {
		*why += "; no activation follows the last layer of the scores"
		return infer.Sigmoid
	}
	if n.activated() {
		*why += "; scores go through " + n.String()
	}
	return infer.None
}

// bare tells whether what begins at a column comes straight from a layer of weights.
func (x *table) bare(column int64) (yes, known bool) {
	p := x.at(column)
	switch {
	case p != nil && p.written:
		return false, true
	case p == nil || !x.known():
		return false, false
	}
	return x.in.g.bare(p.value)
}

// nanodet: classes first, then four distributions.
func (x *table) nanodet() *match {
	if x.byValue || x.each != 1 {
		return nil
	}
	for _, bins := range []int64{8, 11, 17} {
		classes := x.values - 4*bins
		if classes < 1 || !x.cut(classes) && x.known() {
			continue
		}
		bare, known := x.bare(classes)
		if known && !bare || !known && bins != 8 {
			continue
		}
		if !x.known() && classes != int64(x.labelCount()) {
			continue
		}
		l := x.layout()
		l.Classes, l.Bins, l.Grid = int(classes), int(bins), x.levels
		l.At.Scores, l.At.Box = 0, int(classes)
		l.Box, l.Coding = infer.LTRB, infer.CellBins
		why := fmt.Sprintf("%s; each holds %d scores, then four distributions of %d", x.shape(), classes, bins)
		l.Activation = x.activation(0, &why)
		note := "cells are taken at their centre, as NanoDet does with three levels"
		if l.CellPoint = 0.5; len(x.levels) == 4 {
			l.CellPoint, note = 0, "cells are taken at their corner, as NanoDet-Plus does with four levels"
		}
		return &match{family: NanoDet, layout: l, why: why, c: FromShape, notes: []string{note}}
	}
	return nil
}

func (x *table) labelCount() int {
	labels, _, _, _ := x.in.namedLabels()
	return len(labels)
}

// anchored: YOLOv5 and YOLOv7, three anchors a cell.
func (x *table) anchored() *match {
	if x.each != 3 || x.values < 6 {
		return nil
	}
	if bare, known := x.bare(0); known && bare {
		return nil // raw, and without the anchors
	}
	l := x.layout()
	extra := x.masks()
	l.Classes, l.At.Object, l.At.Scores, l.OneClass = int(x.values)-5-extra, 4, 5, true
	if l.Classes < 1 {
		return nil
	}
	why := x.shape() + ", as for three anchors; a box, an objectness and the classes"
	l.Activation = x.activation(4, &why)
	family := YOLOv5
	if x.in.mentions("model.105", "model.77") {
		family = YOLOv7
		why += "; the last layer has YOLOv7's number"
	}
	m := &match{family: family, layout: l, why: why, c: FromShape, notes: []string{"YOLOv5 and YOLOv7 are read alike"}}
	if extra > 0 {
		m.notes = append(m.notes, fmt.Sprintf("the last %d values of a row, coefficients of masks, are not used", extra))
	}
	return m
}

// mentions tells whether values of the graph are called so.
func (in *inspector) mentions(words ...string) bool {
	for i := range in.model.Graph.Nodes {
		n := &in.model.Graph.Nodes[i]
		for _, w := range words {
			if strings.Contains(n.Name, w) || slices.ContainsFunc(n.Outputs, func(o string) bool { return strings.Contains(o, w) }) {
				return true
			}
		}
	}
	return false
}

// object tells whether column 4 is an objectness: whether the graph adds one number there.
func (x *table) object() (yes, known bool) {
	if !x.known() {
		return false, false
	}
	return x.cut(4) && x.cut(5) || x.sizesByExp(), true
}

// yolox: boxes of cells, or decoded in the graph.
func (x *table) yolox() *match {
	if x.byValue || x.each != 1 || x.values < 6 || x.in.ultralytics() {
		return nil
	}
	if object, known := x.object(); known && !object {
		return nil
	}
	bare, known := x.bare(0)
	decoded := known && !bare
	if decoded && !x.sizesByExp() {
		return nil
	}
	l := x.layout()
	l.Classes, l.At.Object, l.At.Scores, l.OneClass = int(x.values)-5, 4, 5, true
	why := x.shape() + "; a box, an objectness and the classes"
	l.Activation = x.activation(4, &why)
	if decoded {
		why += "; boxes are decoded in the graph, sizes by Exp"
	} else {
		l.Coding, l.Grid = infer.CellExp, x.levels
		why += "; boxes come straight from the last layer: the decoder adds cells and strides"
	}
	return &match{family: YOLOX, layout: l, why: why, c: FromShape}
}

// sizesByExp tells whether width and height go through an exponential.
func (x *table) sizesByExp() bool {
	if p := x.at(0); p != nil && p.written {
		return x.in.g.has("Exp")
	}
	p := x.at(2)
	if p == nil {
		return false
	}
	before, _ := x.in.g.strided(p.value)
	n, _ := x.in.g.origin(before)
	for range 4 {
		if n == nil || n.Op == "Exp" {
			break
		}
		if n.Op != "Mul" {
			return false
		}
		for _, input := range n.Inputs {
			if m, _ := x.in.g.origin(input); m != nil && m.Op == "Exp" {
				return true
			}
		}
		n, _ = x.in.g.origin(n.Input(0))
	}
	return n != nil && n.Op == "Exp"
}

// yolov6: decoded, with an objectness that is always 1.
func (x *table) yolov6() *match {
	if x.byValue || x.each != 1 || x.values < 6 || x.in.ultralytics() {
		return nil
	}
	if object, known := x.object(); known && !object {
		return nil
	}
	if bare, known := x.bare(0); known && (bare || x.sizesByExp()) {
		return nil
	}
	l := x.layout()
	l.Classes, l.At.Object, l.At.Scores, l.OneClass = int(x.values)-5, 4, 5, true
	why := x.shape() + "; a decoded box, an objectness and the classes"
	l.Activation = x.activation(5, &why)
	return &match{family: YOLOv6, layout: l, why: why, c: FromShape}
}

// yolov8: a box and the classes, perhaps values for masks or key points.
func (x *table) yolov8() *match {
	if x.each > 1 || x.each == 0 && !x.byValue || x.values < 5 {
		return nil
	}
	if object, known := x.object(); known && object && x.values > 5 && !x.byValue && !x.in.ultralytics() {
		return nil
	}
	if x.known() && !x.cut(4) && !x.cut(64) {
		return nil
	}
	extra, what := x.extra()
	if extra == 1 {
		x.in.refuse("output %v has one more number a row than boxes and classes, as for turned boxes: edgecam shows upright ones", x.t)
		return nil
	}
	l := x.layout()
	l.At.Scores, l.OneClass = 4, true
	why := x.shape() + "; a box and the classes"
	if bare, known := x.bare(0); known && bare {
		const bins = 16
		if !x.cut(4 * bins) {
			return nil
		}
		l.At.Scores, l.Coding, l.Box, l.Bins, l.Grid, l.CellPoint = 4*bins, infer.CellBins, infer.LTRB, bins, x.levels, 0.5
		why += "; boxes are four distributions straight from the last layer"
	} else {
		why += x.boxForm(&l)
	}
	l.Classes = int(x.values) - l.At.Scores - extra
	if l.Classes < 1 {
		return nil
	}
	l.Activation = x.activation(int64(l.At.Scores), &why)
	m := &match{family: YOLOv8, layout: l, why: why, c: FromShape, notes: []string{"YOLOv8, 9, 11 and 12 are read alike"}}
	if x.in.ultralytics() {
		m.why, m.c = "metadata of an Ultralytics export; "+m.why, Stated
	}
	if extra > 0 {
		m.notes = append(m.notes, fmt.Sprintf("the last %d values of a row, %s, are not used", extra, what))
	}
	return m
}

// boxForm asks the graph whether boxes are corners rather than a centre and a size.
func (x *table) boxForm(l *infer.Layout) string {
	p := x.at(0)
	if p == nil || p.width != 4 {
		return ""
	}
	centre, known := x.in.g.format(p.value)
	switch {
	case known && centre:
		return "; the graph makes centres and sizes"
	case known:
		l.Box = infer.XYXY
		return "; the graph makes corners"
	}
	return ""
}

// ultralytics tells of metadata that its exporter writes.
func (in *inspector) ultralytics() bool {
	m := in.rep.Metadata
	return strings.Contains(m["author"], "Ultralytics") || m["task"] != "" && m["stride"] != "" && m["names"] != ""
}

// extra is how many values of a row belong to masks, key points or the like.
func (x *table) extra() (n int, what string) {
	if n := x.masks(); n > 0 {
		return n, "coefficients of masks"
	}
	var points []int
	if json.Unmarshal([]byte(x.in.rep.Metadata["kpt_shape"]), &points) == nil && len(points) == 2 && points[0] > 0 && points[1] > 0 && points[0]*points[1] < int(x.values) {
		return points[0] * points[1], "key points"
	}
	if p := len(x.pieces); p == 3 && x.cut(4) {
		return int(x.pieces[2].width), "made apart from boxes and scores"
	}
	return 0, ""
}

// masks is how many coefficients of masks a row has: as many as there are prototypes in another output.
func (x *table) masks() int {
	for i := range x.in.outs {
		d := x.in.outs[i].dims
		if i != x.t.place && len(d) == 3 && d[0] > 3 && d[0] < x.values-4 && x.prototypes(d[1], d[2]) {
			return int(d[0])
		}
	}
	return 0
}

// prototypes tells of the size that prototypes of masks have: a part of the input's.
func (x *table) prototypes(height, width int64) bool {
	i := &x.in.rep.Spec.Input
	for _, part := range []int64{2, 4, 8} {
		if height == int64(i.Height)/part && width == int64(i.Width)/part {
			return true
		}
	}
	return false
}

// detr: finished boxes in fractions, and the classes of every query.
func (x *table) detr() *match {
	if x.byValue || x.each != 0 || x.values < 5 || x.rows > 2000 {
		return nil
	}
	p := x.at(0)
	fractions := p != nil && p.width == 4 && x.in.g.nature(p.value) == sigmoid
	if x.in.ultralytics() && !x.in.mentions("decoder") && !fractions {
		return nil
	}
	if x.known() && !x.cut(4) {
		return nil
	}
	l := x.layout()
	l.Classes, l.At.Scores, l.Units = int(x.values)-4, 4, infer.Fractions
	why := x.shape() + "; a box and the classes of every query"
	if fractions {
		why += "; boxes go through a Sigmoid: fractions"
	} else if !x.in.g.has("TopK", "GridSample") && !sameFamily(RTDETR, x.in.o.Family) {
		return nil
	}
	l.Activation = x.activation(4, &why)
	return &match{family: RTDETR, layout: l, why: why, inside: true, c: FromShape}
}
