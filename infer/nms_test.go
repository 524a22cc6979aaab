package infer_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edgecam/infer"
)

// TestNMSProperties checks on random scenes what must hold of any result.
func TestNMSProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		iou := 0.3 + rng.Float32()*0.6
		dets := make([]infer.Detection, rng.IntN(60))
		for i := range dets {
			x, y := rng.Float32()*100, rng.Float32()*100
			dets[i] = infer.Detection{
				Class: rng.IntN(3), Score: float32(rng.IntN(20)) / 20,
				X1: x, Y1: y, X2: x + 1 + rng.Float32()*60, Y2: y + 1 + rng.Float32()*60,
			}
		}
		shuffled := slices.Clone(dets)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		all := slices.Clone(dets)

		kept := infer.NMS(dets, iou, 1000)
		if other := infer.NMS(shuffled, iou, 1000); !slices.Equal(kept, other) {
			t.Fatalf("round %d: the result depends on the order", round)
		}
		for i := range kept {
			if !slices.Contains(all, kept[i]) {
				t.Fatalf("round %d: %v was not there before", round, kept[i])
			}
			if i > 0 && kept[i].Score > kept[i-1].Score {
				t.Fatalf("round %d: not sorted at %d", round, i)
			}
			for j := range i {
				if kept[i].Class == kept[j].Class && infer.IoU(&kept[i], &kept[j]) > iou {
					t.Fatalf("round %d: kept %v and %v", round, kept[j], kept[i])
				}
			}
		}
		for i := range all {
			if slices.Contains(kept, all[i]) {
				continue
			}
			dropped := slices.ContainsFunc(kept, func(k infer.Detection) bool {
				return k.Class == all[i].Class && k.Score >= all[i].Score && infer.IoU(&k, &all[i]) > iou
			})
			if !dropped {
				t.Fatalf("round %d: %v was dropped without reason", round, all[i])
			}
		}
		if limited := infer.NMS(slices.Clone(all), iou, 3); len(limited) != min(3, len(kept)) || !slices.Equal(limited, kept[:len(limited)]) {
			t.Fatalf("round %d: with a limit of 3: %v", round, limited)
		}
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
