package pipeline

import (
	"time"

	"edgecam/framepool"
	"edgecam/internal/metrics"
)

// ages keeps the frame age of one camera at the end of each stage, from the
// arrival of the frame's last packet on.
type ages struct{ decoded, batched, inferred, published *metrics.Ages }

func newAges() ages {
	return ages{metrics.NewAges(), metrics.NewAges(), metrics.NewAges(), metrics.NewAges()}
}

func (a *ages) observe(m *framepool.Meta, at stamps, published time.Time) {
	a.decoded.Observe(m.Decoded.Sub(m.Received))
	a.batched.Observe(at.batched.Sub(m.Received))
	a.inferred.Observe(at.inferred.Sub(m.Received))
	a.published.Observe(published.Sub(m.Received))
}
