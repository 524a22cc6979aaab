package pipeline

import (
	"sync/atomic"
	"time"

	"edgecam/internal/metrics"
)

// engineObserver takes what each run of the engine took; internal/metrics
// fulfils it with histograms.
type engineObserver interface {
	ObserveInference(seconds float64)
	ObserveBatch(images int)
}

// engineStats keeps what the API shows of the engine's runs and passes each on.
type engineStats struct {
	to     engineObserver // nil = nobody
	run    *metrics.Ages
	runs   atomic.Uint64
	images atomic.Uint64
}

func (s *engineStats) observe(images int, took time.Duration) {
	s.run.Observe(took)
	s.runs.Add(1)
	s.images.Add(uint64(images))
	if s.to != nil {
		s.to.ObserveInference(took.Seconds())
		s.to.ObserveBatch(images)
	}
}

// batchMean is the mean number of images in a run since start.
func (s *engineStats) batchMean() float64 {
	runs := s.runs.Load()
	if runs == 0 {
		return 0
	}
	return float64(s.images.Load()) / float64(runs)
}
