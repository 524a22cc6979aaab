package infer

import (
	"cmp"
	"fmt"
	"slices"
)

// Candidate is a score that may count, with the box of its row in input pixels.
// A filter by a FilterPlan gives score, objectness and box as the outputs have them.
type Candidate struct {
	Row, Class    int
	Score, Object float32
	Box           [4]float32
}

// Suspect is a number that cannot be.
type Suspect struct {
	Found bool
	Index int // in the image's part of the output
	Value float32
}

// Candidates is what a filter on a GPU leaves of one image's outputs.
type Candidates struct {
	// List has every score that is at least its class's threshold and no suspect,
	// in any order. Thresholds of the filter may be lower than the decoder's.
	List     []Candidate
	Zero     bool    // every score is exactly 0
	BadBox   Suspect // the first coordinate that is not finite
	BadScore Suspect // the first score that is not between 0 and 1
}

// DecodeCandidates is Decode of outputs that a GPU has filtered: it gives the
// same detections, zero and error. It sorts c.List.
func (d *Decoder) DecodeCandidates(c *Candidates, dst []Detection) (dets []Detection, zero bool, err error) {
	if c.BadBox.Found {
		return dst, false, &UnhealthyError{Output: "boxes", Index: c.BadBox.Index, Value: c.BadBox.Value, Reason: notFinite}
	}
	// The filter's threads find candidates in any order. In the order of the
	// outputs the first thing that is wrong is the one that Decode finds.
	slices.SortFunc(c.List, inOrder)
	d.candidates = d.candidates[:0]
	for i := range c.List {
		e := &c.List[i]
		if e.Row < 0 || e.Row >= d.opts.Boxes || e.Class < 0 || e.Class >= d.opts.Classes {
			return dst, false, fmt.Errorf("decode candidates: row %d, class %d of %d boxes of %d classes", e.Row, e.Class, d.opts.Boxes, d.opts.Classes)
		}
		if c.BadScore.Found && e.Row*d.opts.Classes+e.Class > c.BadScore.Index {
			break
		}
		if err := d.consider(e.Row, e.Class, e.Score, e.Box[:]); err != nil {
			return dst, false, err
		}
	}
	if c.BadScore.Found {
		return dst, false, &UnhealthyError{Output: "scores", Index: c.BadScore.Index, Value: c.BadScore.Value, Reason: notAScore}
	}
	return d.finish(dst), c.Zero, nil
}

func inOrder(a, b Candidate) int {
	if a.Row != b.Row {
		return cmp.Compare(a.Row, b.Row)
	}
	return cmp.Compare(a.Class, b.Class)
}
