package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/preprocess"
)

// maxFrameAge bounds the age of what is inferred: an older frame is dropped and
// counted, whatever made it old.
const maxFrameAge = time.Second

// worker takes frames from the scheduler through preprocessing, the engine and
// the tracker to publication. Each has its own preprocessing tables and engine
// slot; there are as many as the engine profits from.
type worker struct {
	sched  *scheduler
	engine infer.Engine
	prep   *preprocess.CPU
	health *health
	pulse  *pulse
	stats  *engineStats
	now    func() time.Time
	logger *slog.Logger

	jobs       []job
	stamps     []stamps
	transforms []preprocess.Transform
	detections [][]infer.Detection
}

// stamps are the moments of one frame's way (monotonic).
type stamps struct{ batched, inferred time.Time }

func (p *Pipeline) newWorker() *worker {
	info := p.engine.Info()
	n := max(1, info.MaxBatch)
	return &worker{
		sched: p.sched, engine: p.engine, prep: preprocess.NewCPU(info.Input),
		health: p.health, pulse: &pulse{base: p.start}, stats: p.engineStats, now: p.now, logger: p.logger,
		jobs: make([]job, n), stamps: make([]stamps, n),
		transforms: make([]preprocess.Transform, n), detections: make([][]infer.Detection, n),
	}
}

// run works until the scheduler stops.
func (w *worker) run(ctx context.Context) error {
	slot, err := w.engine.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire engine slot: %w", err)
	}
	defer slot.Release()
	for {
		w.pulse.idle()
		n := w.sched.take(w.jobs)
		if n == 0 {
			return nil
		}
		w.pulse.busy(w.now())
		w.batch(slot, n)
	}
}

// batch takes n jobs to their end: every frame is released and every lane is
// free again when it returns.
func (w *worker) batch(slot infer.Slot, n int) {
	n = w.dropOld(n)
	defer func() {
		for _, j := range w.jobs[:n] {
			j.frame.Release()
			w.sched.done(j.lane)
		}
		clear(w.jobs)
	}()
	if n == 0 {
		return
	}
	if err := w.fill(slot, n); err != nil {
		w.fail(n, "preprocess", err)
		return
	}
	start := w.now()
	if err := slot.Run(n, w.threshold(n), w.detections[:n]); err != nil {
		w.fail(n, "infer", err)
		return
	}
	end := w.now()
	w.health.good()
	w.stats.observe(n, end.Sub(start))
	for i, j := range w.jobs[:n] {
		w.stamps[i].inferred = end
		j.lane.cam.publish(j.frame, w.transforms[i], w.detections[i], w.stamps[i])
	}
}

// dropOld ends the jobs whose frame is too old and gives how many are left.
func (w *worker) dropOld(n int) int {
	kept := 0
	for _, j := range w.jobs[:n] {
		if w.now().Sub(j.frame.Meta().Received) > maxFrameAge {
			j.lane.cam.drops.add(dropTooOld)
			j.frame.Release()
			w.sched.done(j.lane)
			continue
		}
		w.jobs[kept] = j
		kept++
	}
	return kept
}

func (w *worker) fill(slot infer.Slot, n int) error {
	for i, j := range w.jobs[:n] {
		w.stamps[i].batched = w.now()
		t, err := w.prep.Run(j.frame, slot.Input(i))
		if err != nil {
			return fmt.Errorf("camera %s: %w", j.lane.cam.id, err)
		}
		w.transforms[i] = t
		w.detections[i] = w.detections[i][:0]
	}
	return nil
}

// threshold gives the lowest score that any camera of the batch asks of a
// class; each camera drops what is below its own when it publishes.
func (w *worker) threshold(n int) func(class int) float32 {
	if n == 1 {
		own := w.jobs[0].lane.cam.thresholds
		return func(class int) float32 { return own[class] }
	}
	return func(class int) float32 {
		lowest := float32(never)
		for _, j := range w.jobs[:n] {
			lowest = min(lowest, j.lane.cam.thresholds[class])
		}
		return lowest
	}
}

func (w *worker) fail(n int, stage string, err error) {
	reason := dropInferenceError
	var sick *infer.UnhealthyError
	if errors.As(err, &sick) {
		reason = dropUnhealthy
	}
	w.health.bad(stage, err)
	for _, j := range w.jobs[:n] {
		j.lane.cam.drops.add(reason)
	}
}

// publish turns the engine's answer for a frame into tracked objects in
// fractions of the picture and tells the world. It borrows f.
func (c *camera) publish(f *framepool.Frame, t preprocess.Transform, found []infer.Detection, at stamps) {
	kept := found[:0]
	for _, d := range found {
		if d.Score >= c.thresholds[d.Class] {
			kept = append(kept, t.Inverse(d))
		}
	}
	c.report(f, c.tracker.Update(f.Meta().Received, kept), at)
}
