package pipeline

import (
	"time"

	"edgecam/framepool"
	"edgecam/internal/metrics"
)

// The stages of a frame's age, each from the arrival of its last packet to the
// end of the stage.
const (
	stageDecoded   = "decoded"
	stageBatched   = "batched"
	stageInferred  = "inferred"
	stagePublished = "published"
)

// ages keeps the frame age of one camera at the end of each stage.
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
