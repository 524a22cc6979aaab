package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/preprocess"
)

// batch is one batch on its way through a runner. It belongs to its worker; a
// runner uses it between begin and the return of finish.
type batch struct {
	jobs []job
	// of the jobs, one each
	frames     []*framepool.Frame
	transforms []preprocess.Transform // each frame's place in the input
	detections [][]infer.Detection    // in input pixels
	at         stamps
}

// stamps are the moments of one batch (monotonic).
type stamps struct {
	batched, inferred time.Time

	usual time.Duration // that a run of so many pictures takes
}

// newBatch makes room for n jobs.
func newBatch(n int) *batch {
	return &batch{
		jobs: make([]job, 0, n), frames: make([]*framepool.Frame, 0, n),
		transforms: make([]preprocess.Transform, 0, n), detections: make([][]infer.Detection, 0, n),
	}
}

// add takes a job in; the batch has room for it.
func (b *batch) add(j job) {
	b.jobs, b.frames = append(b.jobs, j), append(b.frames, j.frame)
	n := len(b.jobs)
	b.transforms, b.detections = b.transforms[:n], b.detections[:n]
	b.detections[n-1] = b.detections[n-1][:0]
}

// reset empties the batch, whose frames the caller has released.
func (b *batch) reset() {
	clear(b.jobs)
	clear(b.frames)
	b.jobs, b.frames, b.at = b.jobs[:0], b.frames[:0], stamps{}
	b.transforms, b.detections = b.transforms[:0], b.detections[:0]
}

// runner takes batches through preprocessing and the model: on the processor, or
// on a GPU that reads the frames where they lie. Batches finish in the order in
// which they were begun. It belongs to one worker, and borrows the frames of a
// batch from begin to the return of finish.
type runner interface {
	// depth is how many batches may be begun and not finished, from 1.
	depth() int
	// begin queues a batch; it may return before anything of it ran. threshold
	// gives the score that counts, by class, and is not called once begin has
	// returned. held says that the model runs only in finish. After an error the
	// batch is not begun.
	begin(b *batch, threshold func(class int) float32) (held bool, err error)
	// finish waits for b, which is the oldest that was begun, and sets its
	// transforms and detections. took is how long the engine was at it by its own
	// clock, 0 where it has none. The batch is over after an error too.
	finish(b *batch) (took time.Duration, err error)
	close()
}

// errNotBegun is a mistake of the caller's.
var errNotBegun = errors.New("finish batch: it is not the oldest that was begun")

// cores are the processors, which the model's runs share with the decoders.
type cores interface {
	// TakePlace has the decoders do with one fewer until giveBack is called.
	TakePlace() (giveBack func())
}

// cpuRunner is the path without a GPU: one batch at a time, worked on in finish.
type cpuRunner struct {
	cores   cores
	prep    *preprocess.CPU
	slot    infer.Slot
	lowest  []float32               // score that counts in the batch in hand, by class
	counts  func(class int) float32 // of lowest, bound once
	current *batch                  // nil = none is begun
}

func newCPURunner(ctx context.Context, engine infer.Engine, of cores) (runner, error) {
	slot, err := engine.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire engine slot: %w", err)
	}
	info := engine.Info()
	r := &cpuRunner{cores: of, prep: preprocess.NewCPU(info.Input), slot: slot, lowest: make([]float32, len(info.Labels))}
	r.counts = func(class int) float32 { return r.lowest[class] }
	return r, nil
}

func (r *cpuRunner) depth() int { return 1 }

func (r *cpuRunner) begin(b *batch, threshold func(class int) float32) (held bool, err error) {
	if r.current != nil {
		return false, errors.New("begin batch: the one before is not finished")
	}
	for class := range r.lowest {
		r.lowest[class] = threshold(class)
	}
	r.current = b
	return true, nil
}

func (r *cpuRunner) finish(b *batch) (took time.Duration, err error) {
	if r.current != b {
		return 0, errNotBegun
	}
	r.current = nil
	// A run that decoders take turns with is as late as all of these together, and they
	// are no earlier.
	defer r.cores.TakePlace()()
	for i, f := range b.frames {
		t, err := r.prep.Run(f, r.slot.Input(i))
		if err != nil {
			return 0, err
		}
		b.transforms[i] = t
	}
	return 0, r.slot.Run(len(b.frames), r.counts, b.detections)
}

func (r *cpuRunner) close() { r.slot.Release() }
