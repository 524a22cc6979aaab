package infer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Strides find number v of row r of an image's part of an output at
// At + r*Row + v*Value.
type Strides struct{ At, Row, Value int }

// FilterPlan tells a filter on a GPU where in the outputs boxes and scores lie, and
// which of them the LayoutDecoder must see. Numbers are handed on as they are.
type FilterPlan struct {
	Rows, Columns          int // scores a row, the background among them
	BoxValues, ScoreValues int // numbers of an image in its tensor
	Box, Object, Score     Strides
	HasObject              bool
	Least, Most            float32 // beyond these a score or objectness cannot be

	layout Layout
}

// FilterPlan gives the plan for outputs that hold every row in one tensor, or in one
// of boxes and one of scores. The error says why a filter cannot do.
func (l *Layout) FilterPlan() (*FilterPlan, error) {
	switch {
	case l.Kind != Joined && l.Kind != Split:
		return nil, errors.New("its outputs are decoded whole")
	case l.Activation == Softmax:
		return nil, errors.New("its scores depend on their whole row")
	case l.Coding == CellBins:
		return nil, errors.New("its boxes are distributions")
	case l.At.Object > l.At.Scores || l.ByValue && len(l.Grid) > 1:
		return nil, errors.New("its rows are in no order that a filter keeps")
	}
	p := part{rows: l.Rows}
	l.views(&p, l.Kind == Joined)
	plan := &FilterPlan{
		Rows: l.Rows, Columns: l.columns(), BoxValues: l.Rows * l.Values, ScoreValues: l.Rows * l.Values,
		Box: p.box.strides(), Object: p.object.strides(), Score: p.score.strides(), HasObject: l.At.Object >= 0,
		Least: 0, Most: 1 + overOne, layout: *l,
	}
	if l.Kind == Split {
		plan.ScoreValues = l.Rows * (l.At.Scores + l.columns())
	}
	if l.Activation == Sigmoid {
		plan.Least, plan.Most = -math.MaxFloat32, math.MaxFloat32
	}
	return plan, nil
}

func (v view) strides() Strides { return Strides{v.at, v.row, v.value} }

// Threshold is the raw score of a column that counts, for a class's threshold:
// what reaches it is judged again. The background's is out of reach.
func (p *FilterPlan) Threshold(column int, threshold func(class int) float32) float32 {
	class := p.Class(column)
	if class < 0 {
		return float32(math.Inf(1))
	}
	return p.layout.rawScore(float64(ClampThreshold(threshold(class))), p.layout.ClassPower)
}

// Class is that of a column of scores, −1 of the background's.
func (p *FilterPlan) Class(column int) int {
	switch {
	case p.layout.Background < 0 || column < p.layout.Background:
		return column
	case column == p.layout.Background:
		return -1
	}
	return column - 1
}

// ObjectThreshold is the raw objectness that counts.
func (p *FilterPlan) ObjectThreshold(threshold func(class int) float32) float32 {
	if !p.HasObject {
		return 0
	}
	lowest := ClampThreshold(2)
	for class := range p.layout.Classes {
		lowest = min(lowest, ClampThreshold(threshold(class)))
	}
	return p.layout.rawScore(float64(lowest), p.layout.ObjectPower)
}

// DecodeCandidates is Decode of outputs that a GPU has filtered by the layout's
// FilterPlan: it gives the same detections, zero and error. Boxes, scores and
// objectness of the candidates are the outputs' own numbers. It sorts c.List.
func (d *LayoutDecoder) DecodeCandidates(c *Candidates, dst []Detection) (dets []Detection, zero bool, err error) {
	d.begin()
	if c.BadBox.Found {
		return dst, false, &UnhealthyError{Output: "boxes", Index: c.BadBox.Index, Value: c.BadBox.Value, Reason: notFinite}
	}
	if c.BadScore.Found {
		return dst, false, notScore(c.BadScore.Index, c.BadScore.Value)
	}
	if d.l.ByValue && d.l.Kind == Joined || d.l.ScoresByValue && d.l.Kind == Split {
		slices.SortFunc(c.List, inColumns)
	} else {
		slices.SortFunc(c.List, inOrder)
	}
	d.given = c.List
	for i := range c.List {
		e := &c.List[i]
		if e.Row < 0 || e.Row >= d.l.Rows || e.Class < 0 || e.Class >= d.l.Classes {
			return dst, false, fmt.Errorf("decode candidates: row %d, class %d of %d rows of %d classes", e.Row, e.Class, d.l.Rows, d.l.Classes)
		}
		p := d.partOf(e.Row)
		d.hit(p, e.Row-p.first, e.Class, d.score(e.Score, e.Object), int32(i))
	}
	if err := d.settle(); err != nil {
		return dst, false, err
	}
	return d.finish(dst, c.Zero), c.Zero, nil
}

// inColumns is the order of outputs that lie class by class.
func inColumns(a, b Candidate) int {
	if a.Class != b.Class {
		return cmp.Compare(a.Class, b.Class)
	}
	return cmp.Compare(a.Row, b.Row)
}
