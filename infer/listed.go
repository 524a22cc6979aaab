package infer

import "math"

// padding is what some graphs put into the scores and classes of rows that hold nothing.
const padding = -1

// Reasons of an UnhealthyError in lists of detections.
const (
	noSuchClass = "no class of the model"
	noSuchRow   = "no row of the model"
	noCount     = "no number of detections"
)

// rows reads an EndToEnd tensor.
func (d *LayoutDecoder) rows(image int, outputs [][]float32) (zero bool, err error) {
	all, err := d.output(outputs, d.l.Outputs.Boxes, "rows")
	if err != nil {
		return false, err
	}
	n := d.l.Values
	if n < 1 || len(all)%n != 0 || d.l.Rows > 0 && len(all) != d.l.Rows*n {
		return false, wrongSize("rows", len(all), max(d.l.Rows, 1)*n)
	}
	count := len(all) / n
	at := func(row, column int) int {
		if d.l.ByValue {
			return column*count + row
		}
		return row*n + column
	}
	for row := range count {
		if c := d.l.At.Image; c >= 0 && all[at(row, c)] != float32(image) {
			continue
		}
		e := entry{row: row, score: all[at(row, d.l.At.Scores)], index: at(row, d.l.At.Scores)}
		if d.l.At.Class >= 0 {
			e.class, e.classIndex = all[at(row, d.l.At.Class)], at(row, d.l.At.Class)
		}
		for i := range e.box {
			e.box[i] = all[at(row, d.l.At.Box+i)]
		}
		if err := d.entry(&e); err != nil {
			return false, err
		}
	}
	return d.seen == 0 && count > 0 && !d.l.Padded, d.sick
}

// list reads the tensors of Listed.
func (d *LayoutDecoder) list(outputs [][]float32) (zero bool, err error) {
	boxes, err := d.output(outputs, d.l.Outputs.Boxes, "boxes")
	if err != nil {
		return false, err
	}
	scores, err := d.output(outputs, d.l.Outputs.Scores, "scores")
	if err != nil {
		return false, err
	}
	if len(boxes) != 4*len(scores) {
		return false, wrongSize("boxes", len(boxes), 4*len(scores))
	}
	var classes []float32
	if d.l.Outputs.Classes >= 0 {
		if classes, err = d.output(outputs, d.l.Outputs.Classes, "classes"); err != nil {
			return false, err
		}
		if len(classes) != len(scores) {
			return false, wrongSize("classes", len(classes), len(scores))
		}
	}
	n, err := d.count(outputs, len(scores))
	if err != nil {
		return false, err
	}
	for row := range n {
		e := entry{row: row, score: scores[row], index: row, class: float32(d.l.FirstID)}
		if classes != nil {
			e.class, e.classIndex = classes[row], row
		}
		for i := range e.box {
			at := row*4 + i
			if d.l.ByValue {
				at = i*len(scores) + row
			}
			e.box[i] = boxes[at]
		}
		if err := d.entry(&e); err != nil {
			return false, err
		}
	}
	return d.seen == 0 && n > 0 && !d.l.Padded && d.l.Outputs.Count < 0, d.sick
}

// count is how many of the rows hold detections.
func (d *LayoutDecoder) count(outputs [][]float32, rows int) (int, error) {
	if d.l.Outputs.Count < 0 {
		return rows, nil
	}
	counts, err := d.output(outputs, d.l.Outputs.Count, "counts")
	if err != nil {
		return 0, err
	}
	if len(counts) != 1 {
		return 0, wrongSize("counts", len(counts), 1)
	}
	if c := counts[0]; !(c >= 0 && c <= float32(rows)) {
		return 0, &UnhealthyError{Output: "count", Value: c, Reason: noCount}
	}
	return int(counts[0]), nil
}

// selected reads what NonMaxSuppression selected.
func (d *LayoutDecoder) selected(image int, outputs [][]float32) error {
	boxes, err := d.output(outputs, d.l.Outputs.Boxes, "boxes")
	if err != nil {
		return err
	}
	scores, err := d.output(outputs, d.l.Outputs.Scores, "scores")
	if err != nil {
		return err
	}
	chosen, err := d.output(outputs, d.l.Outputs.Selected, "selected")
	if err != nil {
		return err
	}
	rows := len(boxes) / 4
	if len(boxes)%4 != 0 || len(scores) != rows*d.l.columns() {
		return wrongSize("scores", len(scores), rows*d.l.columns())
	}
	if len(chosen)%3 != 0 {
		return wrongSize("selected", len(chosen), len(chosen)/3*3)
	}
	if i := firstNotFinite(boxes); i >= 0 {
		return &UnhealthyError{Output: "boxes", Index: i, Value: boxes[i], Reason: notFinite}
	}
	if i := firstNotFinite(scores); i >= 0 {
		return notScore(i, scores[i])
	}
	for i := 0; i < len(chosen); i += 3 {
		if chosen[i] != float32(image) {
			continue
		}
		if err := d.choose(boxes, scores, chosen, i, rows); err != nil {
			return err
		}
	}
	return d.sick
}

// choose takes one triple of (image, class, row).
func (d *LayoutDecoder) choose(boxes, scores, chosen []float32, i, rows int) error {
	column, row := chosen[i+1], chosen[i+2]
	if !(row >= 0 && row < float32(rows)) {
		return &UnhealthyError{Output: "selected", Index: i + 2, Value: row, Reason: noSuchRow}
	}
	if !(column >= 0 && column < float32(d.l.columns())) {
		return &UnhealthyError{Output: "selected", Index: i + 1, Value: column, Reason: noSuchClass}
	}
	if int(column) == d.l.Background {
		return nil
	}
	at := int(row)*d.l.columns() + int(column)
	if d.l.ScoresByValue {
		at = int(column)*rows + int(row)
	}
	class := column
	if d.l.Background >= 0 && int(column) > d.l.Background {
		class--
	}
	e := entry{row: int(row), score: scores[at], index: at, class: class + float32(d.l.FirstID), classIndex: i + 1}
	if d.l.Activation == Sigmoid {
		e.score = sigmoid(e.score)
	}
	for k := range e.box {
		at := int(row)*4 + k
		if d.l.ByValue {
			at = k*rows + int(row)
		}
		e.box[k] = boxes[at]
	}
	return d.entry(&e)
}

func (d *LayoutDecoder) output(outputs [][]float32, at int, what string) ([]float32, error) {
	if at < 0 || at >= len(outputs) {
		return nil, wrongSize(what, 0, 1)
	}
	return outputs[at], nil
}

// entry is a finished detection as a model gives it.
type entry struct {
	row               int
	score, class      float32
	index, classIndex int
	box               [4]float32
}

// entry judges a finished detection and takes it.
func (d *LayoutDecoder) entry(e *entry) error {
	if e.score == padding {
		return nil
	}
	if i := firstNotFinite(e.box[:]); i >= 0 {
		return &UnhealthyError{Output: "boxes", Index: e.row*4 + i, Value: e.box[i], Reason: notFinite}
	}
	if !(e.score >= 0 && e.score <= 1+overOne) {
		return notScore(e.index, e.score)
	}
	d.seen |= math.Float32bits(e.score) &^ (1 << 31)
	if e.score = min(e.score, 1); e.score < math.Float32frombits(d.d.lowest) {
		return nil
	}
	class := e.class - float32(d.l.FirstID)
	if !(class >= 0 && class < float32(d.l.Classes)) || class != float32(int(class)) {
		return &UnhealthyError{Output: "classes", Index: e.classIndex, Value: e.class, Reason: noSuchClass}
	}
	d.take(e.row, int(class), e.score, d.convert(nil, e.row, e.box))
	return nil
}
