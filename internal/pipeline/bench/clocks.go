package bench

import "time"

// clocks adds up what each stage took.
type clocks struct {
	decode, preprocess, engine, results time.Duration

	after time.Duration // all stages after decoding together
}

func (c *clocks) add(start, prepared, inferred, end time.Time) {
	c.preprocess += prepared.Sub(start)
	c.engine += inferred.Sub(prepared)
	c.results += end.Sub(inferred)
	c.after += end.Sub(start)
}
