package infer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edgecam/infer"
)

// plainNMS is the textbook's, for comparison.
func plainNMS(sorted []infer.Detection, iou float32) []infer.Detection {
	var kept []infer.Detection
	for i := range sorted {
		if !slices.ContainsFunc(kept, func(k infer.Detection) bool {
			return k.Class == sorted[i].Class && infer.IoU(&k, &sorted[i]) > iou
		}) {
			kept = append(kept, sorted[i])
		}
	}
	return kept
}

// TestSuppressorProperties checks on random scenes what must hold of any result.
func TestSuppressorProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		s := infer.Suppressor{IoU: 0.3 + rng.Float32()*0.6, Limit: 1000}
		dets := make([]infer.Detection, rng.IntN(60))
		for i := range dets {
			x, y := rng.Float32()*100, rng.Float32()*100
			dets[i] = infer.Detection{
				Class: rng.IntN(3), Score: float32(1+rng.IntN(20)) / 20,
				X1: x, Y1: y, X2: x + 1 + rng.Float32()*60, Y2: y + 1 + rng.Float32()*60,
			}
		}
		shuffled, sorted := slices.Clone(dets), slices.Clone(dets)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })

		kept := s.Run(dets)
		if other := s.Run(shuffled); !slices.Equal(kept, other) {
			t.Fatalf("round %d: the result depends on the order", round)
		}
		// Run sorted dets in place: of a limit of 0 only that is left to see.
		(&infer.Suppressor{}).Run(sorted)
		want := plainNMS(sorted, s.IoU)
		if len(kept) != len(want) {
			t.Fatalf("round %d: %d kept, plain NMS keeps %d", round, len(kept), len(want))
		}
		for i := range kept {
			if kept[i].Class != want[i].Class || kept[i].Score != want[i].Score {
				t.Fatalf("round %d: place %d is %v, plain NMS has %v", round, i, kept[i], want[i])
			}
			// Averaging over boxes that overlap the best by more than IoU
			// cannot lead far from it.
			if got := infer.IoU(&kept[i], &want[i]); got < s.IoU-1e-4 {
				t.Fatalf("round %d: %v is at %v of the best box %v", round, kept[i], got, want[i])
			}
		}
		s.Limit = 3
		if limited := s.Run(slices.Clone(sorted)); len(limited) != min(3, len(kept)) {
			t.Fatalf("round %d: %d kept with a limit of 3", round, len(limited))
		}
	}
}

// TestSuppressorAveragesTies wants a box that does not jump when the better of
// two near ties changes.
func TestSuppressorAveragesTies(t *testing.T) {
	a := infer.Detection{Score: 0.737, X1: 100, Y1: 100, X2: 140, Y2: 200}
	b := infer.Detection{Score: 0.736, X1: 104, Y1: 98, X2: 141, Y2: 196}
	weak := infer.Detection{Score: 0.6, X1: 90, Y1: 100, X2: 140, Y2: 210}
	s := infer.Suppressor{IoU: 0.6, Limit: 10}
	first := s.Run([]infer.Detection{a, b, weak})[0]
	a.Score, b.Score = b.Score, a.Score
	second := s.Run([]infer.Detection{a, b, weak})[0]
	if got := infer.IoU(&first, &second); got < 0.995 {
		t.Errorf("overlap %v of %v and %v", got, first, second)
	}
	if d := first.X1 - 102; d < -0.2 || d > 0.2 {
		t.Errorf("left edge %v, wanted about the middle of 100 and 104", first.X1)
	}
	if first.Score != 0.737 {
		t.Errorf("score %v, want the best one's", first.Score)
	}
	a.Score, b.Score = 0.9, 0.7
	if alone := s.Run([]infer.Detection{a, b})[0]; infer.IoU(&alone, &a) < 0.999 {
		t.Errorf("%v, wanted the clear winner %v", alone, a)
	}
}

func TestIoU(t *testing.T) {
	unit := infer.Detection{X1: 0, Y1: 0, X2: 2, Y2: 2}
	tests := []struct {
		name string
		b    infer.Detection
		want float32
	}{
		{"itself", unit, 1},
		{"half beside", infer.Detection{X1: 1, Y1: 0, X2: 3, Y2: 2}, 1.0 / 3},
		{"inside", infer.Detection{X1: 0, Y1: 0, X2: 1, Y2: 1}, 0.25},
		{"touching", infer.Detection{X1: 2, Y1: 0, X2: 4, Y2: 2}, 0},
		{"apart", infer.Detection{X1: 5, Y1: 5, X2: 6, Y2: 6}, 0},
		{"no area", infer.Detection{X1: 1, Y1: 1, X2: 1, Y2: 1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, back := infer.IoU(&unit, &tt.b), infer.IoU(&tt.b, &unit); got != tt.want || back != got {
				t.Errorf("%v and %v, want %v", got, back, tt.want)
			}
		})
	}
}
