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

	jobs []job  // what take fills
	hand *batch // that is being worked on

	thresholds func(class int) float32 // w.threshold, bound once
}

func (p *Pipeline) newWorker() *worker {
	n := max(1, p.model.Info().MaxBatch)
	w := &worker{
		sched: p.sched, health: p.health, pulse: &pulse{base: p.start}, stats: p.engineStats, now: p.now,
		open: p.openRunner,
		jobs: make([]job, n), hand: newBatch(n),
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
	b := w.hand
	w.fill(b, n)
	defer func() {
		for _, j := range b.jobs {
			j.frame.Release()
			w.sched.done(j.lane)
		}
		b.reset()
	}()
	if len(b.jobs) == 0 {
		return
	}
	for _, j := range b.jobs {
		j.lane.cam.raw.offer(picture{frame: j.frame})
	}
	b.at.batched = w.now()
	err := r.begin(b, w.thresholds)
	if err == nil {
		err = r.finish(b)
	}
	b.at.inferred = w.now()
	if err != nil {
		w.fail(err)
		return
	}
	w.health.good()
	w.stats.observe(len(b.jobs), b.at.inferred.Sub(b.at.batched))
	for i, j := range b.jobs {
		j.lane.cam.publish(j.frame, b.transforms[i], b.detections[i], b.at)
	}
}

// fill puts the n jobs in a batch, and ends those whose frame is too old.
func (w *worker) fill(b *batch, n int) {
	for _, j := range w.jobs[:n] {
		if w.now().Sub(j.frame.Meta().Received) > maxFrameAge {
			j.lane.cam.drops.add(dropTooOld)
			j.frame.Release()
			w.sched.done(j.lane)
			continue
		}
		b.add(j)
	}
	clear(w.jobs)
}

// threshold gives the lowest score that any camera of the batch asks of a
// class; each camera drops what is below its own when it publishes.
func (w *worker) threshold(class int) float32 {
	lowest := float32(never)
	for i := range w.hand.jobs {
		lowest = min(lowest, w.hand.jobs[i].lane.cam.thresholds[class])
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
	for _, j := range w.hand.jobs {
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
