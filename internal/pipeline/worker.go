package pipeline

import (
	"context"
	"errors"
	"time"

	"edgecam/infer"
	"edgecam/internal/pipeline/schedule"
)

// maxFrameAge bounds the age of what is inferred: an older frame is dropped and
// counted, whatever made it old.
const maxFrameAge = time.Second

// errTooOld ends a picture that waited too long.
var errTooOld = errors.New("the picture was too old to be analysed: the engine is behind")

// waitedLong is the age of a frame that was not taken fresh.
const waitedLong = maxFrameAge / 4

// waitedLeast is what a wait for a batch takes at least. One that returns sooner
// found the batch at its end already, and does not say when that was.
const waitedLeast = 50 * time.Microsecond

// worker takes frames from the scheduler through a runner and the tracker to
// publication. There are as many as the engine profits from. While a batch is in
// flight it collects the next one, as far as the runner's depth goes.
type worker struct {
	st    *station
	only  bool // there is no other for this engine
	pulse *pulse
	now   func() time.Time

	flight *schedule.Flight
	alarm  alarm
	jobs   []job    // what take fills
	flying []*batch // begun and not finished, the oldest first
	spare  []*batch
	asking *batch // that is being begun

	thresholds func(class int) float32 // w.threshold, bound once
}

func (s *station) newWorker(only bool) *worker {
	w := &worker{
		st: s, only: only, pulse: &pulse{base: s.start}, now: s.now,
		flight: schedule.NewFlight(s.times), jobs: make([]job, s.most),
	}
	w.thresholds = w.threshold
	return w
}

// run works until the scheduler stops.
func (w *worker) run(ctx context.Context) error {
	r, err := w.st.open(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	defer w.alarm.stop()
	for range r.depth() {
		w.spare = append(w.spare, newBatch(len(w.jobs)))
	}
	if w.only {
		w.st.sched.ordered(r.depth())
	}
	for {
		n, ok := w.st.sched.take(w.jobs, w.flight, &w.alarm)
		if n > 0 {
			w.begin(r, n)
		}
		if len(w.flying) > 0 && (n == 0 || len(w.spare) == 0) {
			w.finish(r)
		}
		// A batch that runs in finish does so now: what comes meanwhile is in the next
		// one, which would else be closed a whole run too early.
		for w.flight.Held() {
			w.finish(r)
		}
		if !ok && len(w.flying) == 0 {
			return nil
		}
	}
}

// begin puts n jobs on their way.
func (w *worker) begin(r runner, n int) {
	b := w.spare[len(w.spare)-1]
	w.fill(b, n)
	if len(b.jobs) == 0 {
		return
	}
	for _, j := range b.jobs {
		j.lane.of.begun(j.frame)
	}
	b.at.batched, b.at.usual = w.now(), w.st.times.Of(len(b.jobs))
	if len(w.flying) == 0 {
		w.pulse.busy(b.at.batched)
	}
	w.asking = b
	held, err := r.begin(b, w.thresholds)
	w.asking = nil
	if err != nil {
		w.fail(b, err)
		w.end(b)
		return
	}
	w.flight.Begun(len(b.jobs), b.at.batched, w.now(), held)
	w.spare = w.spare[:len(w.spare)-1]
	w.flying = append(w.flying, b)
}

// finish takes the oldest batch in flight to its end: every frame is released and
// every lane may be served again when it returns.
func (w *worker) finish(r runner) {
	b := w.flying[0]
	w.flying = append(w.flying[:0], w.flying[1:]...)
	w.spare = append(w.spare, b)
	began := w.now()
	took, err := r.finish(b)
	b.at.inferred = w.now()
	if err != nil {
		w.flight.Failed(b.at.inferred)
		w.fail(b, err)
		w.end(b)
		return
	}
	took = w.flight.Finished(b.at.inferred, b.at.inferred.Sub(began) >= waitedLeast, took)
	w.st.health.good()
	w.st.stats.observe(len(b.jobs), took)
	w.st.load.ran(len(b.jobs), took)
	w.st.pictures.Add(uint64(len(b.jobs))) // first: whoever reads runs before it sees no run without its pictures
	w.st.runs.Add(1)
	for i, j := range b.jobs {
		j.lane.of.publish(j.frame, b.transforms[i], b.detections[i], b.at)
	}
	w.end(b)
}

// end gives back what a batch holds.
func (w *worker) end(b *batch) {
	for _, j := range b.jobs {
		j.frame.Release()
		w.st.sched.done(j.lane)
	}
	b.reset()
	if len(w.flying) == 0 {
		w.pulse.idle()
	} else {
		w.pulse.busy(w.now())
	}
}

// fill puts the n jobs in a batch, and ends those whose frame is too old.
func (w *worker) fill(b *batch, n int) {
	now, run := w.now(), w.st.times.Of(n)
	for _, j := range w.jobs[:n] {
		if beyond(now.Sub(j.frame.Meta().Received), run) {
			j.lane.of.drop(dropTooOld, errTooOld)
			w.st.load.grewOld(j.frame.Meta(), now)
			w.st.late.Add(1)
			j.frame.Release()
			w.st.sched.done(j.lane)
			continue
		}
		b.add(j)
	}
	clear(w.jobs)
}

// beyond says whether a frame of an age is too old to be inferred: what it would
// be by the end of the run counts. An engine that takes as long by itself still
// gets the frames that are fresh.
func beyond(age, run time.Duration) bool {
	return age > maxFrameAge || age > waitedLong && age+run > maxFrameAge
}

// oldest is the age at which a result is of no use any more. An engine that
// usually takes most of a second by itself is all that there is: what it made of
// a fresh frame is published, with its age.
func (s stamps) oldest() time.Duration {
	return max(maxFrameAge, waitedLong+s.usual*5/4)
}

// threshold gives the lowest score that any camera of the batch asks of a
// class; each camera drops what is below its own when it publishes.
func (w *worker) threshold(class int) float32 {
	lowest := float32(never)
	for i := range w.asking.jobs {
		lowest = min(lowest, w.asking.jobs[i].lane.of.thresholds[class])
	}
	return lowest
}

func (w *worker) fail(b *batch, err error) {
	reason := dropInferenceError
	var sick *infer.UnhealthyError
	if errors.As(err, &sick) {
		reason = dropUnhealthy
	}
	w.st.health.bad(err)
	for _, j := range b.jobs {
		j.lane.of.drop(reason, err)
	}
}
