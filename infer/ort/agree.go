package ort

import (
	"fmt"
	"math"
	"slices"

	"edgecam/infer"
)

// How far the outputs of two providers for one picture may differ.
const (
	scoreTolerance = 0.02
	minOverlap     = 0.98
	// sureScore is the score from which on a box counts; a picture without any
	// such counts the boxes whose score is near the best.
	sureScore = 0.4
	nearBest  = 0.9
)

// answer is what the outputs for one image say: of models that give every row
// four values a box, one a box and class; of others what they found.
type answer struct {
	boxes, scores []float32
	classes       int

	found []infer.Detection
	list  bool // found it is
	zero  bool // every score is 0
}

// answer reads the bytes of the outputs for one image.
func (m *model) answer(raw [][]byte) (answer, error) {
	all := make([][]float32, m.places)
	for i := range m.outputs {
		p := &m.outputs[i]
		all[p.place] = appendFloats(nil, raw[i], p.element)
	}
	if m.layout == nil {
		return answer{boxes: all[0], scores: all[1], classes: len(m.meta.Labels)}, nil
	}
	d, err := m.layoutDecoder(0)
	if err != nil {
		return answer{}, err
	}
	d.SetThresholds(func(int) float32 { return sureScore })
	a := answer{classes: len(m.meta.Labels), list: !m.layout.Dense()}
	if a.found, a.zero, err = d.Decode(all, nil); err != nil || a.list {
		return a, err
	}
	a.boxes, a.scores, err = d.Expand(all)
	return a, err
}

// DisagreeError says where a provider's outputs differ from those of another.
type DisagreeError struct {
	What string // the box or score, with both values
}

func (e *DisagreeError) Error() string { return "answers differ: " + e.What }

// healthy finds values that no network at work gives: an *infer.UnhealthyError.
func (o answer) healthy() error {
	if o.zero {
		return &infer.UnhealthyError{Output: "scores", Reason: "all scores are 0"}
	}
	if o.list {
		return nil
	}
	if i := firstBad(o.boxes); i >= 0 {
		return &infer.UnhealthyError{Output: "boxes", Index: i, Value: o.boxes[i], Reason: "not finite"}
	}
	if i := firstBad(o.scores); i >= 0 {
		return &infer.UnhealthyError{Output: "scores", Index: i, Value: o.scores[i], Reason: "not finite"}
	}
	for i, v := range o.scores {
		if v < 0 || v > 1+1e-3 {
			return &infer.UnhealthyError{Output: "scores", Index: i, Value: v, Reason: "not between 0 and 1"}
		}
	}
	if !slicesAny(o.scores) {
		return &infer.UnhealthyError{Output: "scores", Reason: "all scores are 0"}
	}
	if !slicesAny(o.boxes) {
		return &infer.UnhealthyError{Output: "boxes", Reason: "all boxes are 0"}
	}
	return nil
}

func firstBad(values []float32) int {
	for i, v := range values {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return i
		}
	}
	return -1
}

// slicesAny tells whether any value is other than 0.
func slicesAny(values []float32) bool {
	for _, v := range values {
		if v != 0 {
			return true
		}
	}
	return false
}

// agree compares got with want box by box, before any selection, so that a
// box near a threshold cannot hide a difference. Errors: *infer.UnhealthyError
// for got, *DisagreeError.
func agree(want, got answer) error {
	if err := got.healthy(); err != nil {
		return err
	}
	if want.list {
		return agreeOnFound(want.found, got.found)
	}
	if len(want.boxes) != len(got.boxes) || len(want.scores) != len(got.scores) {
		return &DisagreeError{What: fmt.Sprintf("%d values, wanted %d", len(got.boxes)+len(got.scores), len(want.boxes)+len(want.scores))}
	}
	for i, w := range want.scores {
		if d := w - got.scores[i]; d > scoreTolerance || d < -scoreTolerance {
			return &DisagreeError{What: fmt.Sprintf("score of class %d of box %d is %.3f, wanted %.3f ± %v", i%want.classes, i/want.classes, got.scores[i], w, scoreTolerance)}
		}
	}
	floor := want.floor()
	for row := range len(want.boxes) / 4 {
		if want.best(row) < floor {
			continue
		}
		a, b := want.box(row), got.box(row)
		if o := infer.IoU(&a, &b); o < minOverlap {
			return &DisagreeError{What: fmt.Sprintf("box %d is (%.1f %.1f %.1f %.1f), wanted (%.1f %.1f %.1f %.1f): overlap %.3f, wanted %v",
				row, b.X1, b.Y1, b.X2, b.Y2, a.X1, a.Y1, a.X2, a.Y2, o, minOverlap)}
		}
	}
	return nil
}

// agreeOnFound wants every detection of one list in the other. Those whose score
// is near the threshold may come and go.
func agreeOnFound(want, got []infer.Detection) error {
	for i, list := range [][]infer.Detection{want, got} {
		other, what := got, "is missing"
		if i == 1 {
			other, what = want, "was not expected"
		}
		for k := range list {
			if a := &list[k]; a.Score >= sureScore+scoreTolerance && !slices.ContainsFunc(other, func(b infer.Detection) bool { return alike(a, &b) }) {
				return &DisagreeError{What: fmt.Sprintf("class %d at (%.1f %.1f %.1f %.1f) with a score of %.3f %s", a.Class, a.X1, a.Y1, a.X2, a.Y2, a.Score, what)}
			}
		}
	}
	return nil
}

func alike(a, b *infer.Detection) bool {
	d := a.Score - b.Score
	return a.Class == b.Class && d <= scoreTolerance && d >= -scoreTolerance && infer.IoU(a, b) >= minOverlap
}

// floor is the score from which on boxes are compared.
func (o answer) floor() float32 {
	var best float32
	for _, v := range o.scores {
		best = max(best, v)
	}
	return min(sureScore, nearBest*best)
}

func (o answer) best(row int) float32 {
	var best float32
	for _, v := range o.scores[row*o.classes : (row+1)*o.classes] {
		best = max(best, v)
	}
	return best
}

func (o answer) box(row int) infer.Detection {
	b := o.boxes[row*4:]
	return infer.Detection{X1: b[0], Y1: b[1], X2: b[2], Y2: b[3]}
}
