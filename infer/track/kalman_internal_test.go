package track

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestAxisFindsTheVelocity(t *testing.T) {
	a := start(0.1, 0.01, 0.3)
	for i := 1; i <= 40; i++ {
		a.predict(0.1, 0.001)
		a.correct(0.1+0.02*float64(i), 0.01)
	}
	if math.Abs(a.v-0.2) > 0.01 || math.Abs(a.x-0.9) > 0.005 {
		t.Errorf("position %v, velocity %v; want 0.9 and 0.2", a.x, a.v)
	}
}

// TestAxisStepsAdd wants one long step to be what many short ones are.
func TestAxisStepsAdd(t *testing.T) {
	a := axis{x: 0.3, v: 0.2, pxx: 0.01, pxv: 0.002, pvv: 0.05}
	b := a
	a.predict(0.8, 0.3)
	for range 8 {
		b.predict(0.1, 0.3)
	}
	for name, d := range map[string]float64{"x": a.x - b.x, "v": a.v - b.v, "pxx": a.pxx - b.pxx, "pxv": a.pxv - b.pxv, "pvv": a.pvv - b.pvv} {
		if math.Abs(d) > 1e-12 {
			t.Errorf("%s differs by %v", name, d)
		}
	}
}

// TestAxisStaysSound drives the filter at random: the covariance must stay one.
func TestAxisStaysSound(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for range 200 {
		a := start(rng.Float64(), 0.001+rng.Float64(), rng.Float64()*10)
		for range 500 {
			dt := 0.0
			if rng.IntN(3) > 0 {
				dt = math.Pow(10, rng.Float64()*6-4)
			}
			a.predict(dt, math.Pow(10, rng.Float64()*8-6))
			if rng.IntN(2) == 0 {
				a.correct(rng.Float64(), math.Pow(10, rng.Float64()*5-5))
			}
			if !(a.pxx > 0 && a.pvv >= 0 && a.pxx*a.pvv-a.pxv*a.pxv >= -1e-9*a.pxx*a.pvv) || math.IsNaN(a.x) || math.IsNaN(a.v) {
				t.Fatalf("unsound filter %+v", a)
			}
		}
	}
}
