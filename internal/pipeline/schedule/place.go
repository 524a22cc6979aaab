package schedule

// apart is how far from the mean a device's load may be before cameras are moved:
// a move costs the camera a moment without pictures.
const apart = 0.10

// Placed is a camera with the device that it is on.
type Placed struct {
	Load   float64 // pictures a second times their size
	Device int     // -1 = none yet
}

// Loads sums the loads up by device.
func Loads(cameras []Placed, devices int) []float64 {
	sums := make([]float64, devices)
	for _, c := range cameras {
		if c.Device >= 0 && c.Device < devices {
			sums[c.Device] += c.Load
		}
	}
	return sums
}

// Place picks the usable device with the least load, -1 if none is usable.
func Place(loads []float64, usable []bool) int {
	best := -1
	for d := range loads {
		if usable[d] && (best < 0 || loads[d] < loads[best]) {
			best = d
		}
	}
	return best
}

// Balance moves cameras, by changing their Device, and gives the indices of those
// that it moved. All on a device that is not usable move. Of the others only as few
// as it takes, and none while all are within a tenth of the mean.
func Balance(cameras []Placed, usable []bool) (moved []int) {
	loads := Loads(cameras, len(usable))
	for i := range cameras {
		c := &cameras[i]
		if c.Device >= 0 && usable[c.Device] {
			continue
		}
		to := Place(loads, usable)
		if to < 0 {
			return moved
		}
		if c.Device >= 0 {
			loads[c.Device] -= c.Load
		}
		loads[to] += c.Load
		c.Device = to
		moved = append(moved, i)
	}
	for range cameras {
		i, to := nextMove(cameras, loads, usable)
		if i < 0 {
			break
		}
		loads[cameras[i].Device] -= cameras[i].Load
		loads[to] += cameras[i].Load
		cameras[i].Device = to
		moved = append(moved, i)
	}
	return moved
}

// nextMove is the camera whose move brings the most and the least loaded device
// closest together, -1 if they are close enough or none does.
func nextMove(cameras []Placed, loads []float64, usable []bool) (camera, to int) {
	most, sum, n := -1, 0.0, 0
	for d := range loads {
		if !usable[d] {
			continue
		}
		sum += loads[d]
		n++
		if most < 0 || loads[d] > loads[most] {
			most = d
		}
	}
	least := Place(loads, usable)
	mean := sum / float64(max(n, 1))
	if n < 2 || loads[most] <= mean*(1+apart) && loads[least] >= mean*(1-apart) {
		return -1, -1
	}
	// The ideal is half of the difference; a camera as heavy as all of it would
	// only swap the two.
	gap := loads[most] - loads[least]
	camera, best := -1, gap
	for i, c := range cameras {
		if c.Device != most || c.Load <= 0 || c.Load >= gap {
			continue
		}
		if off := abs(gap - 2*c.Load); off < best {
			camera, best = i, off
		}
	}
	return camera, least
}

func abs(x float64) float64 { return max(x, -x) }
