package infer

import (
	"cmp"
	"slices"
)

// NMS keeps of every class the boxes that no better kept box overlaps by more
// than iou, best first. It works in place: the result is a prefix of dets,
// whose order changes. At most limit are kept. Equal scores are ordered by
// class and place, so that the result does not depend on the order of dets.
func NMS(dets []Detection, iou float32, limit int) []Detection {
	slices.SortFunc(dets, better)
	kept := 0
	for i := range dets {
		if kept == limit {
			break
		}
		if !suppressed(&dets[i], dets[:kept], iou) {
			dets[kept] = dets[i]
			kept++
		}
	}
	return dets[:kept]
}

func suppressed(d *Detection, kept []Detection, iou float32) bool {
	for k := range kept {
		if kept[k].Class == d.Class && IoU(&kept[k], d) > iou {
			return true
		}
	}
	return false
}

// better orders by falling score; the rest only breaks ties.
func better(a, b Detection) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	if a.Class != b.Class {
		return cmp.Compare(a.Class, b.Class)
	}
	if a.X1 != b.X1 {
		return cmp.Compare(a.X1, b.X1)
	}
	if a.Y1 != b.Y1 {
		return cmp.Compare(a.Y1, b.Y1)
	}
	if a.X2 != b.X2 {
		return cmp.Compare(a.X2, b.X2)
	}
	return cmp.Compare(a.Y2, b.Y2)
}
