package pipeline

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/infer"
)

// goodRuns is how many answers in a row make a sick model well again.
const goodRuns = 10

// health is what is known of the model's answers. A model that gives NaN or
// fails is unhealthy, visibly, until it has answered well for a while: "no
// objects" must never mean "no answer".
type health struct {
	logger *slog.Logger
	now    func() time.Time

	sick atomic.Bool // mirrors reason != "", so that good runs cost no lock

	mu     sync.Mutex
	reason string
	kind   string // of the reason, one of a few
	since  time.Time
	run    int    // good answers since the last bad one
	bads   uint64 // bad answers since start
}

func newHealth(logger *slog.Logger, now func() time.Time) *health {
	return &health{logger: logger, now: now}
}

// good notes an answer that can be used.
func (h *health) good() {
	if !h.sick.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run++; h.run < goodRuns || h.reason == "" {
		return
	}
	h.logger.Info("model healthy again", "was", h.reason, "for", h.now().Sub(h.since).Round(time.Millisecond))
	h.reason = ""
	h.sick.Store(false)
}

// bad notes a batch that gave no answer; the first of a row is logged.
func (h *health) bad(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bads++
	h.run = 0
	if h.reason == "" {
		h.since = h.now()
		h.logger.Error("model unhealthy", "err", err)
	}
	h.reason, h.kind = err.Error(), failed
	var unhealthy *infer.UnhealthyError
	if errors.As(err, &unhealthy) {
		h.kind = unhealthy.Reason
	}
	h.sick.Store(true)
}

// state gives the reason why the model is unhealthy, "" when it is well, and
// how many answers could not be used since start.
func (h *health) state() (reason string, bads uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reason, h.bads
}

// kindOf is the kind of the reason that state gives.
func (h *health) kindOf() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == "" {
		return ""
	}
	return h.kind
}

// failed is the kind of a run that gave no numbers at all.
const failed = "run failed"

// pulse shows whether a worker moves: since when, counted from base on the
// monotonic clock, it works on the batch in hand; 0 while it waits for one.
type pulse struct {
	base  time.Time
	since atomic.Int64
}

func (p *pulse) idle()            { p.since.Store(0) }
func (p *pulse) busy(t time.Time) { p.since.Store(max(1, int64(t.Sub(p.base)))) }

// stuck says whether the batch in hand has taken longer than limit.
func (p *pulse) stuck(now time.Time, limit time.Duration) bool {
	s := p.since.Load()
	return s != 0 && int64(now.Sub(p.base))-s > int64(limit)
}

// zeroStreak counts the pictures in a row of which every score was 0.
type zeroStreak struct{ n atomic.Uint64 }

func (z *zeroStreak) note(zero bool) {
	if !zero {
		z.n.Store(0)
		return
	}
	z.n.Add(1)
}
