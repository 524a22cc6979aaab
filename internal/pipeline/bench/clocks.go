package bench

import (
	"time"

	"edgecam/infer"
)

// clocks adds up what each stage took.
type clocks struct {
	decode, preprocess, model, candidates, results time.Duration

	after time.Duration // all stages after decoding together
}

// timed is a slot that knows how its last Run divides: the model's own run, and
// candidates with NMS after it.
type timed interface {
	LastRun() (model, candidates time.Duration)
}

func (c *clocks) add(start, prepared, inferred, end time.Time, slot infer.Slot) {
	c.preprocess += prepared.Sub(start)
	run := inferred.Sub(prepared)
	if t, ok := slot.(timed); ok {
		model, candidates := t.LastRun()
		c.model += model
		c.candidates += candidates
		run -= model + candidates
	}
	c.model += run
	c.results += end.Sub(inferred)
	c.after += end.Sub(start)
}
