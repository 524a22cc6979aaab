package pipeline

import (
	"sync/atomic"
	"time"

	"edgecam/framepool"
)

const (
	// idleAfter is how long nothing may be seen before a scene counts as idle.
	idleAfter = 5 * time.Second
	// idleLooks is in how many pictures, at least: a camera of which few are analysed
	// is not idle because nobody looked.
	idleLooks = 3
	// lookEvery is how often a picture is looked at for motion.
	lookEvery = 500 * time.Millisecond

	// The grid of samples that is compared from look to look, and how many of them
	// (of 576) must have changed by how much: more than noise and a flickering lamp
	// do, and less than a person far away.
	gridColumns, gridRows = 32, 18
	movedLevels           = 14
	movedCells            = 4
)

// activity tells whether anything happens before a camera. note belongs to the
// worker that has the camera's frame in hand; idle may be called by anybody.
type activity struct {
	start time.Time
	last  atomic.Int64 // of the last moment that something was seen, nanoseconds since start
	noted atomic.Int64 // of the last picture, likewise
	empty atomic.Int64 // pictures since something was seen

	looked time.Time
	valid  bool // grid holds a picture
	grid   [gridColumns * gridRows]uint8
}

func newActivity(now time.Time) *activity { return &activity{start: now} }

// note takes in a frame that was inferred; found says whether objects were.
func (a *activity) note(f *framepool.Frame, found bool) {
	at := f.Meta().Received
	since := int64(at.Sub(a.start))
	if moved := at.Sub(a.looked) >= lookEvery && a.look(f, at); found || moved {
		a.last.Store(since)
		a.empty.Store(0)
	} else {
		a.empty.Add(1)
	}
	a.noted.Store(since)
}

// idle says whether nothing was seen for a while, though it was looked for. A
// camera that has just started is not idle.
func (a *activity) idle() bool {
	return a.empty.Load() >= idleLooks && time.Duration(a.noted.Load()-a.last.Load()) > idleAfter
}

// look compares the picture with the one looked at before. Pictures in a card's
// memory are not read: there, objects alone count.
func (a *activity) look(f *framepool.Frame, at time.Time) (moved bool) {
	a.looked = at
	if f.Memory() == framepool.MemoryDevice {
		return false
	}
	m := f.Meta()
	luma, stride, width := f.Plane(0), f.Stride(0), m.Format.SampleBytes()
	shift := m.Format.BitDepth() - 8
	if width == 0 {
		return false
	}
	changed := 0
	for row := range gridRows {
		line := luma[(2*row+1)*m.Height/(2*gridRows)*stride:]
		for column := range gridColumns {
			v := sample(line, (2*column+1)*m.Width/(2*gridColumns), width, shift)
			cell := &a.grid[row*gridColumns+column]
			if d := int(v) - int(*cell); d > movedLevels || -d > movedLevels {
				changed++
			}
			*cell = v
		}
	}
	moved = a.valid && changed >= movedCells
	a.valid = true
	return moved
}

// sample is sample x of a row in 8 bits.
func sample(row []byte, x, width, shift int) uint8 {
	if width == 1 {
		return row[x]
	}
	return uint8((int(row[2*x]) | int(row[2*x+1])<<8) >> shift) //nolint:gosec // 10 bits less 2
}
