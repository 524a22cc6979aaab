package infer

import (
	"cmp"
	"slices"
)

// Suppressor is class-wise non-maximum suppression. The zero value of Limit
// keeps nothing. It reuses its memory and belongs to one goroutine.
//
// A kept box is not the best one's alone: neighbouring cells of a detector
// often score an object within a thousandth of each other with boxes that
// differ by several pixels, and which of them wins turns with the rounding of a
// sample. So the boxes that a kept one suppresses are averaged into it with
// weights of (score / best score)^32: a tie counts in full, a score 2 % lower
// half, one 10 % lower nothing. The score stays the best one's.
type Suppressor struct {
	IoU   float32 // overlap above which a box of the same class is dropped
	Limit int     // boxes kept at most
	// AnyClass: boxes of other classes suppress too.
	AnyClass bool
	sums     []sum // of the kept boxes
}

// sum is a weighted sum of boxes.
type sum struct{ weight, x1, y1, x2, y2 float32 }

// Run keeps of every class the boxes that no better kept box overlaps by more
// than IoU, best first. It works in place: the result is a prefix of dets,
// whose order changes. Equal scores are ordered by class and place, so that the
// result does not depend on the order of dets. Scores are positive.
func (s *Suppressor) Run(dets []Detection) []Detection {
	slices.SortFunc(dets, better)
	s.sums = s.sums[:0]
	kept := 0
	for i := range dets {
		d := dets[i]
		if k := s.over(&d, dets[:kept]); k >= 0 {
			s.sums[k].add(&d, dets[k].Score)
		} else if kept < s.Limit {
			var own sum
			own.add(&d, d.Score)
			s.sums = append(s.sums, own)
			dets[kept] = d
			kept++
		}
	}
	for k := range kept {
		t, d := &s.sums[k], &dets[k]
		d.X1, d.Y1, d.X2, d.Y2 = t.x1/t.weight, t.y1/t.weight, t.x2/t.weight, t.y2/t.weight
	}
	return dets[:kept]
}

// over finds the kept box that suppresses d, or -1. Nearly all pairs lie apart,
// which four comparisons tell without a call.
func (s *Suppressor) over(d *Detection, kept []Detection) int {
	for k := range kept {
		e := &kept[k]
		if e.X1 < d.X2 && d.X1 < e.X2 && e.Y1 < d.Y2 && d.Y1 < e.Y2 && (s.AnyClass || e.Class == d.Class) && IoU(e, d) > s.IoU {
			return k
		}
	}
	return -1
}

func (t *sum) add(d *Detection, best float32) {
	w := d.Score / best
	for range 5 { // w^32
		w *= w
	}
	t.weight += w
	t.x1 += w * d.X1
	t.y1 += w * d.Y1
	t.x2 += w * d.X2
	t.y2 += w * d.Y2
}

// better orders by falling score; the rest only breaks ties. The numbers are finite: cmp.Compare, which looks for NaN
// first, takes a third of the time of a picture full of objects.
func better(a, b Detection) int {
	if a.Score != b.Score {
		if a.Score > b.Score {
			return -1
		}
		return 1
	}
	if a.Class != b.Class {
		return cmp.Compare(a.Class, b.Class)
	}
	return cmp.Or(cmp.Compare(a.X1, b.X1), cmp.Compare(a.Y1, b.Y1), cmp.Compare(a.X2, b.X2), cmp.Compare(a.Y2, b.Y2))
}
