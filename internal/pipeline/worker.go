package pipeline

import (
	"context"
	"errors"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/preprocess"
)

// maxFrameAge bounds the age of what is inferred: an older frame is dropped and
// counted, whatever made it old.
const maxFrameAge = time.Second

// worker takes frames from the scheduler through a runner and the tracker to
// publication. There are as many as the engine profits from.
type worker struct {
	sched  *scheduler
	open   func(ctx context.Context) (runner, error)
	health *health
	pulse  *pulse
	stats  *engineStats
	now    func() time.Time

	jobs []job
	hand []job // the part of jobs that is being worked on
	// of the jobs in hand
	frames     []*framepool.Frame
	transforms []preprocess.Transform
	detections [][]infer.Detection

	thresholds func(class int) float32 // w.threshold, bound once
}

// stamps are the moments of one batch (monotonic).
type stamps struct{ batched, inferred time.Time }

func (p *Pipeline) newWorker() *worker {
	n := max(1, p.model.Info().MaxBatch)
	w := &worker{
		sched: p.sched, health: p.health, pulse: &pulse{base: p.start}, stats: p.engineStats, now: p.now,
		open: p.openRunner,
		jobs: make([]job, n), frames: make([]*framepool.Frame, n),
		transforms: make([]preprocess.Transform, n), detections: make([][]infer.Detection, n),
	}
	w.thresholds = w.threshold
	return w
}

// run works until the scheduler stops.
func (w *worker) run(ctx context.Context) error {
	r, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		w.pulse.idle()
		n := w.sched.take(w.jobs)
		if n == 0 {
			return nil
		}
		w.pulse.busy(w.now())
		w.batch(r, n)
	}
}

// batch takes n jobs to their end: every frame is released and every lane is
// free again when it returns.
func (w *worker) batch(r runner, n int) {
	n = w.dropOld(n)
	defer func() {
		for _, j := range w.jobs[:n] {
			j.frame.Release()
			w.sched.done(j.lane)
		}
		clear(w.jobs)
		clear(w.frames)
	}()
	if n == 0 {
		return
	}
	w.hand = w.jobs[:n]
	for i, j := range w.hand {
		w.frames[i] = j.frame
		w.detections[i] = w.detections[i][:0]
		j.lane.cam.raw.offer(picture{frame: j.frame})
	}
	at := stamps{batched: w.now()}
	err := r.run(w.frames[:n], w.thresholds, w.detections[:n], w.transforms[:n])
	at.inferred = w.now()
	if err != nil {
		w.fail(err)
		return
	}
	w.health.good()
	w.stats.observe(n, at.inferred.Sub(at.batched))
	for i, j := range w.hand {
		j.lane.cam.publish(j.frame, w.transforms[i], w.detections[i], at)
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

// threshold gives the lowest score that any camera of the batch asks of a
// class; each camera drops what is below its own when it publishes.
func (w *worker) threshold(class int) float32 {
	lowest := float32(never)
	for i := range w.hand {
		lowest = min(lowest, w.hand[i].lane.cam.thresholds[class])
	}
	return lowest
}

func (w *worker) fail(err error) {
	reason := dropInferenceError
	var sick *infer.UnhealthyError
	if errors.As(err, &sick) {
		reason = dropUnhealthy
	}
	w.health.bad(err)
	for _, j := range w.hand {
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
	c.tracked = c.tracker.Update(c.tracked[:0], f.Meta().Received, kept)
	c.report(f, c.tracked, at)
}
