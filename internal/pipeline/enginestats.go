package pipeline

import (
	"time"

	"edgecam/internal/metrics"
)

// engineStats keeps what the API and the metrics show of the engine's runs.
type engineStats struct {
	recent  *metrics.Ages      // for the API: the last seconds
	seconds *metrics.Histogram // since start
	images  *metrics.Histogram // in a run, since start
}

func newEngineStats() *engineStats {
	return &engineStats{
		recent:  metrics.NewAges(),
		seconds: metrics.NewHistogram(metrics.RunBuckets()),
		images:  metrics.NewHistogram(metrics.BatchBuckets()),
	}
}

func (s *engineStats) observe(images int, took time.Duration) {
	s.recent.Observe(took)
	s.seconds.Observe(took.Seconds())
	s.images.Observe(float64(images))
}
