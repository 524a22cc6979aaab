package pipeline

import (
	"context"
	"errors"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// gpuRunner is the path with a GPU as the reader of the frames: one launch reads
// them where they lie and writes the engine's input, the model runs, a filter
// leaves the candidates, and only those cross the bus. The batch is one visit to
// the device's goroutine.
type gpuRunner struct {
	g     *GPU
	ctx   context.Context //nolint:containedctx // of the worker, whose life the runner shares
	batch gpuBatch

	sources []preprocess.Source
	found   []infer.Candidates
	visit   func(*cuda.Context) error // r.visitDevice, bound once
}

// gpuBatch is what the visit at hand works on.
type gpuBatch struct {
	frames     []*framepool.Frame
	threshold  func(class int) float32
	transforms []preprocess.Transform
}

func newGPURunner(ctx context.Context, g *GPU) runner {
	n := g.Info().MaxBatch
	r := &gpuRunner{g: g, ctx: ctx, sources: make([]preprocess.Source, n), found: make([]infer.Candidates, n)}
	r.visit = r.visitDevice
	return r
}

func (r *gpuRunner) run(frames []*framepool.Frame, threshold func(class int) float32, out [][]infer.Detection, transforms []preprocess.Transform) error {
	r.g.how.learn(r.ctx, frames)
	r.batch = gpuBatch{frames: frames, threshold: threshold, transforms: transforms}
	err := r.g.dev.Do(r.ctx, "infer batch", r.visit)
	r.g.feed.Release()
	if err != nil {
		var lost *cuda.LostError
		if errors.As(err, &lost) {
			r.g.feed.Abandon()
		}
		return err
	}
	r.batch = gpuBatch{}
	r.g.nms.SetThresholds(threshold)
	for i := range frames {
		dets, _, err := r.g.nms.DecodeCandidates(&r.found[i], out[i])
		if err != nil {
			var sick *infer.UnhealthyError
			if errors.As(err, &sick) {
				sick.Image = i
			}
			return err
		}
		out[i] = dets
	}
	return nil
}

func (r *gpuRunner) visitDevice(c *cuda.Context) error {
	g, b := r.g, r.batch
	n := len(b.frames)
	s := g.engine.Stream()
	if err := g.decoded.after(c, s); err != nil {
		return err
	}
	if err := g.feed.Place(c, b.frames, g.how.of, r.sources); err != nil {
		return err
	}
	if err := r.launch(c, s, n); err != nil {
		return errors.Join(err, g.feed.Cancel(c))
	}
	if err := g.feed.Done(c); err != nil {
		return err
	}
	if err := c.Record(g.finished, s); err != nil {
		return err
	}
	if err := c.WaitEvent(g.finished); err != nil {
		return err
	}
	if err := g.feed.Settle(c); err != nil {
		return err
	}
	for i := range n {
		if err := g.filter.Read(i, &r.found[i]); err != nil {
			return err
		}
	}
	return nil
}

// launch queues the stages of the batch.
func (r *gpuRunner) launch(c *cuda.Context, s cuda.Stream, n int) error {
	g, b := r.g, r.batch
	input, _ := g.engine.Input()
	if err := g.prep.Launch(c, s, r.sources[:n], input, b.transforms); err != nil {
		return err
	}
	if err := g.engine.Run(c, n); err != nil {
		return err
	}
	boxes, scores, _, _ := g.engine.Outputs()
	return g.filter.Launch(c, s, n, boxes, scores, func(_, class int) float32 { return b.threshold(class) })
}

func (r *gpuRunner) close() {}
