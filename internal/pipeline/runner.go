package pipeline

import (
	"context"
	"fmt"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/preprocess"
)

// runner takes frames through preprocessing and the model: on the processor, or
// on a GPU that reads them where they lie. It belongs to one worker.
type runner interface {
	// run borrows the frames, appends the detections of frame i, in input
	// pixels, to out[i] and sets transforms[i] to the frame's place in the input.
	run(frames []*framepool.Frame, threshold func(class int) float32, out [][]infer.Detection, transforms []preprocess.Transform) error
	close()
}

// cpuRunner is the path without a GPU.
type cpuRunner struct {
	prep *preprocess.CPU
	slot infer.Slot
}

func newCPURunner(ctx context.Context, engine infer.Engine) (runner, error) {
	slot, err := engine.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire engine slot: %w", err)
	}
	return &cpuRunner{prep: preprocess.NewCPU(engine.Info().Input), slot: slot}, nil
}

func (r *cpuRunner) run(frames []*framepool.Frame, threshold func(class int) float32, out [][]infer.Detection, transforms []preprocess.Transform) error {
	for i, f := range frames {
		t, err := r.prep.Run(f, r.slot.Input(i))
		if err != nil {
			return err
		}
		transforms[i] = t
	}
	return r.slot.Run(len(frames), threshold, out)
}

func (r *cpuRunner) close() { r.slot.Release() }
