package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"edgecam/internal/pipeline/schedule"
)

// Cameras that come one by one are spread by load.
func TestPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	usable := []bool{true, true, false, true}
	var cameras []schedule.Placed
	for range 300 {
		c := schedule.Placed{Load: []float64{1, 2, 8}[r.IntN(3)]}
		c.Device = schedule.Place(schedule.Loads(cameras, 4), usable)
		cameras = append(cameras, c)
	}
	spread(t, cameras, usable)
	if d := schedule.Place([]float64{1, 2}, []bool{false, false}); d != -1 {
		t.Errorf("placed on %d, where nothing is usable", d)
	}
}

// spread wants no device to have a tenth more or less than the mean, and those that
// are not usable to have nothing.
func spread(t *testing.T, cameras []schedule.Placed, usable []bool) {
	t.Helper()
	loads, sum, n := schedule.Loads(cameras, len(usable)), 0.0, 0.0
	for d, l := range loads {
		if usable[d] {
			sum += l
			n++
		} else if l > 0 {
			t.Errorf("device %d has %v and cannot be used", d, l)
		}
	}
	for d, l := range loads {
		if usable[d] {
			within(t, fmt.Sprintf("load of device %d", d), l, sum/n, 0.1)
		}
	}
}

// A device that is lost, and one that is back: all is moved that must be, and little
// else.
func TestBalance(t *testing.T) {
	var cameras []schedule.Placed
	for i := range 60 {
		cameras = append(cameras, schedule.Placed{Load: float64(1 + i%3), Device: i % 3})
	}
	schedule.Balance(cameras, []bool{true, true, true})
	spread(t, cameras, []bool{true, true, true})
	on := func(d int) (n int) {
		for _, c := range cameras {
			if c.Device == d {
				n++
			}
		}
		return n
	}
	lost, had := []bool{true, false, true}, on(1)
	if moved := schedule.Balance(cameras, lost); len(moved) != had {
		t.Errorf("%d moved, the lost one had %d", len(moved), had)
	}
	spread(t, cameras, lost)
	back := []bool{true, true, true}
	moved := schedule.Balance(cameras, back)
	spread(t, cameras, back)
	if len(moved) > 30 {
		t.Errorf("%d of 60 moved", len(moved))
	}
	if again := schedule.Balance(cameras, back); len(again) > 0 {
		t.Errorf("%d moved although nothing changed", len(again))
	}
	none := []bool{false, false, false}
	if moved := schedule.Balance(cameras, none); len(moved) > 0 {
		t.Errorf("%d moved to nowhere", len(moved))
	}
}

// One camera is not moved to and fro.
func TestBalanceOfFew(t *testing.T) {
	for n := range 4 {
		cameras := make([]schedule.Placed, n)
		for i := range cameras {
			cameras[i] = schedule.Placed{Load: 5, Device: 0}
		}
		moved := schedule.Balance(cameras, []bool{true, true})
		if len(moved) != n/2 {
			t.Errorf("%d of %d moved", len(moved), n)
		}
		if again := schedule.Balance(cameras, []bool{true, true}); len(again) > 0 {
			t.Errorf("of %d, %d moved again", n, len(again))
		}
	}
}
