package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"edgecam/framepool"
	"edgecam/preprocess"
)

// geometry is what a strategy is chosen by.
type geometry struct {
	format        framepool.PixelFormat
	width, height int
}

func geometryOf(m *framepool.Meta) geometry { return geometry{m.Format, m.Width, m.Height} }

// strategies knows how pictures of each geometry in host memory come to the
// card. learn is the worker's, of is for the visit to the device that follows.
type strategies struct {
	chooser *preprocess.Chooser
	byRule  preprocess.Strategy // until, and where nothing can be measured
	logger  *slog.Logger

	mu    sync.Mutex
	known map[geometry]preprocess.Strategy // guarded by mu
}

// learn measures the geometries among frames that are new: once each, tens of
// milliseconds. A measurement that fails leaves the rule's strategy.
func (s *strategies) learn(ctx context.Context, frames []*framepool.Frame) {
	for _, f := range frames {
		if f.Memory() == framepool.MemoryDevice {
			continue
		}
		k := geometryOf(f.Meta())
		if _, ok := s.get(k); !ok {
			s.set(k, s.choose(ctx, k))
		}
	}
}

func (s *strategies) choose(ctx context.Context, k geometry) preprocess.Strategy {
	choice, err := s.chooser.Choose(ctx, k.format, k.width, k.height)
	if err != nil {
		s.logger.Warn("memory strategy not measured", "strategy", s.byRule, "err", err)
		return s.byRule
	}
	var took []string
	for _, m := range choice.Measured {
		took = append(took, fmt.Sprintf("%s %s", m.Strategy, m.Took.Round(100*time.Nanosecond)))
	}
	s.logger.Info("memory strategy", "strategy", choice.Strategy, "format", k.format.String(), "width", k.width, "height", k.height,
		"measured", took, "remembered", choice.Remembered)
	return choice.Strategy
}

// of is the strategy for a picture in host memory.
func (s *strategies) of(m *framepool.Meta) preprocess.Strategy {
	if known, ok := s.get(geometryOf(m)); ok {
		return known
	}
	return s.byRule
}

func (s *strategies) get(k geometry) (preprocess.Strategy, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.known[k]
	return known, ok
}

func (s *strategies) set(k geometry, v preprocess.Strategy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[k] = v
}
