package schedule

import "time"

const (
	// whole is the part of the time between two pictures of a stream that counts as
	// all of it: cameras jitter.
	whole = 0.75
	// usualFPS stands for the rate of a stream as long as that is not known.
	usualFPS = 30
)

// Turn tells for one camera which of its frames give way because the engine is slow.
// Pictures that were held up on the way come out of the decoder in a burst, and all
// but the newest give way at once: that is catching up, and says nothing about the
// engine. It had its chance once a frame has waited as long as the stream's pictures
// are apart. The zero value is ready.
type Turn struct{ from time.Time } // since when a frame waits, or since one was missed

// Offered notes that a frame is offered at a moment, by a stream of fps pictures a
// second (0 = not known). replaced says that one which waited has given way to it.
// due says whether the frame counts as one more for the engine to do, and missed
// whether the one that gave way was its fault.
func (t *Turn) Offered(at time.Time, replaced bool, fps float64) (due, missed bool) {
	if !replaced {
		t.from = at
		return true, false
	}
	if fps <= 0 {
		fps = usualFPS
	}
	if at.Sub(t.from).Seconds() < whole/fps {
		return false, false
	}
	t.from = at
	return true, true
}
