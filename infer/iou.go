package infer

// IoU is the area that two boxes share over the area that they cover, 0..1;
// 0 where a box has no area.
func IoU(a, b *Detection) float32 {
	w := min(a.X2, b.X2) - max(a.X1, b.X1)
	h := min(a.Y2, b.Y2) - max(a.Y1, b.Y1)
	if !(w > 0 && h > 0) {
		return 0
	}
	shared := w * h
	return shared / ((a.X2-a.X1)*(a.Y2-a.Y1) + (b.X2-b.X1)*(b.Y2-b.Y1) - shared)
}
