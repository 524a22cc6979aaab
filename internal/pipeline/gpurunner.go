package pipeline

import (
	"context"
	"errors"

	"edgecam/infer"
	"edgecam/infer/candidates"
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
	batch *gpuBatch
	visit func(*cuda.Context) error // r.visitDevice, bound once

	current *batch                  // nil = none is begun
	counts  func(class int) float32 // score that counts in it, bound once

	// of the visit, and of run once that has succeeded
	sources []preprocess.Source
	found   []infer.Candidates
	whole   []wholeOutputs // of images with more candidates than the filter holds
}

// wholeOutputs are the model's outputs for one image. They take a megabyte across
// the bus: only a threshold that lets nearly anything through leads to them.
type wholeOutputs struct{ boxes, scores []float32 }

func newGPURunner(ctx context.Context, g *GPU) runner {
	info := g.Info()
	n := info.MaxBatch
	r := &gpuRunner{
		g: g, ctx: ctx, batch: newGPUBatch(n, len(info.Labels)),
		sources: make([]preprocess.Source, n), found: make([]infer.Candidates, n),
		whole: make([]wholeOutputs, n),
	}
	r.visit, r.counts = r.visitDevice, func(class int) float32 { return r.batch.threshold(0, class) }
	return r
}

func (r *gpuRunner) depth() int { return 1 }

func (r *gpuRunner) begin(b *batch, threshold func(class int) float32) error {
	if r.current != nil {
		return errors.New("begin batch: the one before is not finished")
	}
	if err := r.g.dev.Err(); err != nil {
		return err // and the batch that was lost with it stays as it is
	}
	r.g.how.learn(r.ctx, b.frames)
	r.batch.fill(b.frames, threshold)
	r.current = b
	return nil
}

func (r *gpuRunner) finish(b *batch) error {
	if r.current != b {
		return errNotBegun
	}
	r.current = nil
	err := r.g.dev.Do(r.ctx, "infer batch", r.visit)
	r.g.feed.Release()
	var lost *cuda.LostError
	if errors.As(err, &lost) {
		r.g.feed.Abandon()
	}
	r.batch.leave()
	if err != nil {
		return err
	}
	copy(b.transforms, r.batch.transforms)
	r.g.nms.SetThresholds(r.counts)
	return r.decode(b.detections)
}

// decode makes detections of what the visit found.
func (r *gpuRunner) decode(out [][]infer.Detection) error {
	for i := range out {
		dets, zero, err := r.decodeImage(i, out[i])
		if err != nil {
			var sick *infer.UnhealthyError
			if errors.As(err, &sick) {
				sick.Image = i
			}
			return err
		}
		r.g.zeros.note(zero)
		out[i] = dets
	}
	return nil
}

func (r *gpuRunner) decodeImage(i int, to []infer.Detection) (dets []infer.Detection, zero bool, err error) {
	if w := &r.whole[i]; w.scores != nil {
		return r.g.nms.Decode(w.boxes, w.scores, to)
	}
	return r.g.nms.DecodeCandidates(&r.found[i], to)
}

func (r *gpuRunner) visitDevice(c *cuda.Context) error {
	if !r.batch.begin() {
		return errors.New("infer batch: it was given up before its turn")
	}
	defer r.batch.end()
	g, frames := r.g, r.batch.frames
	s := g.engine.Stream()
	if err := g.decoded.after(c, s); err != nil {
		return err
	}
	if err := g.feed.Place(c, frames, g.how.of, r.sources); err != nil {
		return err
	}
	err := r.launch(c, s, len(frames))
	if err == nil {
		err = g.feed.Done(c)
	}
	if err != nil {
		return errors.Join(err, g.feed.Cancel(c))
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
	for i := range frames {
		if err := r.read(c, i); err != nil {
			return err
		}
	}
	return nil
}

// read takes what the filter left of an image, or its whole outputs where that
// was too much.
func (r *gpuRunner) read(c *cuda.Context, i int) error {
	r.whole[i] = wholeOutputs{}
	err := r.g.filter.Read(i, &r.found[i])
	var many *candidates.OverflowError
	if errors.As(err, &many) {
		r.whole[i].boxes, r.whole[i].scores, err = r.g.engine.Fetch(c, i)
	}
	return err
}

// launch queues the stages of the batch.
func (r *gpuRunner) launch(c *cuda.Context, s cuda.Stream, n int) error {
	g := r.g
	input, _ := g.engine.Input()
	if err := g.prep.Launch(c, s, r.sources[:n], input, r.batch.transforms); err != nil {
		return err
	}
	if err := g.engine.Run(c, n); err != nil {
		return err
	}
	boxes, scores, _, _ := g.engine.Outputs()
	return g.filter.Launch(c, s, n, boxes, scores, r.batch.threshold)
}

func (r *gpuRunner) close() {}
