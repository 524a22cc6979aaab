package pipeline

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"edgecam/infer"
)

func TestHealthRecoversAfterGoodAnswers(t *testing.T) {
	h := newHealth(slog.New(slog.DiscardHandler), time.Now)
	h.good()
	if reason, bads := h.state(); reason != "" || bads != 0 {
		t.Fatalf("a fresh model is unhealthy: %q, %d", reason, bads)
	}
	h.bad(errors.New("output scores holds NaN"))
	for range goodRuns - 1 {
		h.good()
	}
	if reason, _ := h.state(); reason != "output scores holds NaN" {
		t.Errorf("reason %q after %d good answers, want the bad one's", reason, goodRuns-1)
	}
	h.bad(errors.New("again"))
	for range goodRuns {
		h.good()
	}
	if reason, bads := h.state(); reason != "" || bads != 2 {
		t.Errorf("reason %q and %d bad answers, want none and 2", reason, bads)
	}
}

func TestPulse(t *testing.T) {
	start := time.Now()
	p := &pulse{base: start}
	if p.stuck(start.Add(time.Hour), time.Second) {
		t.Error("an idle worker counts as stuck")
	}
	p.busy(start.Add(time.Minute))
	if p.stuck(start.Add(time.Minute+time.Second), time.Second) {
		t.Error("stuck at the limit already")
	}
	if !p.stuck(start.Add(time.Minute+2*time.Second), time.Second) {
		t.Error("not stuck beyond the limit")
	}
	p.idle()
	if p.stuck(start.Add(time.Hour), time.Second) {
		t.Error("stuck although the batch has ended")
	}
}

func TestAModelThatGivesOnlyZerosIsUnhealthy(t *testing.T) {
	streak := uint64(zerosAreSick - 1)
	st := &station{model: noEngine{}, health: newHealth(slog.New(slog.DiscardHandler), time.Now), zeros: func() uint64 { return streak }}
	p := &Pipeline{now: time.Now, bays: []*bay{{st: st}}}
	if ok, why := p.Ready(); !ok {
		t.Fatalf("not ready: %s", why)
	}
	streak++
	const want = "the model is unhealthy: all of its scores were exactly 0 in the last 300 pictures"
	if ok, why := p.Ready(); ok || why != want {
		t.Errorf("ready %v, %q; want %q", ok, why, want)
	}
}

// noEngine is an engine that is never asked.
type noEngine struct{ infer.Engine }
