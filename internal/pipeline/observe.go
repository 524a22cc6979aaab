package pipeline

import (
	"time"

	"edgecam/framepool"
)

// Result tells of one analysed picture how old it was, from the arrival of its
// last packet on, as it left each stage.
type Result struct {
	Camera                                string
	Decoded, Batched, Inferred, Published time.Duration
}

// Observe has f called for each analysed picture, from the workers, which it must
// not hold up. It is called before Run.
func (p *Pipeline) Observe(f func(Result)) { p.observe = f }

// observed tells the observer, if there is one.
func (c *camera) observed(m *framepool.Meta, at stamps, published time.Time) {
	if c.p.observe == nil {
		return
	}
	c.p.observe(Result{
		Camera: c.id, Decoded: m.Decoded.Sub(m.Received), Batched: at.batched.Sub(m.Received),
		Inferred: at.inferred.Sub(m.Received), Published: published.Sub(m.Received),
	})
}
