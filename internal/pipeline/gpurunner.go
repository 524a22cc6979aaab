package pipeline

import (
	"context"
	"errors"
	"time"

	"edgecam/infer"
	"edgecam/infer/candidates"
	"edgecam/infer/ort"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// gpuRunner is the path with a GPU as the reader of the frames: one launch reads
// them where they lie and writes the engine's input, the model runs, a filter
// leaves the candidates, and only those cross the bus. A batch is two visits to
// the device's goroutine: begin queues all of it, finish waits for its end.
type gpuRunner struct {
	g       *GPU
	ctx     context.Context //nolint:containedctx // of the worker, whose life the runner shares
	flights [ort.Sides]*gpuFlight
	oldest  int // of the flights under way
	flying  int // how many are under way
}

// gpuFlight is a batch under way on a side of the card.
type gpuFlight struct {
	g    *GPU
	side int
	of   *batch // nil = none
	own  *gpuBatch

	queue, collect func(*cuda.Context) error // f.queueAll and f.collectAll, bound once
	counts         func(class int) float32   // score that counts, bound once

	// of the visits, and of finish once they have succeeded
	sources []preprocess.Source
	found   []infer.Candidates
	whole   [][][]float32 // all outputs, of images with more candidates than the filter holds
	waiting bool          // the engine's run is left to finish
	took    time.Duration // that the engine was at it, by the card's clock
}

func newGPURunner(ctx context.Context, g *GPU) runner {
	r := &gpuRunner{g: g, ctx: ctx}
	for side := range r.flights {
		r.flights[side] = newGPUFlight(g, side)
	}
	return r
}

func newGPUFlight(g *GPU, side int) *gpuFlight {
	info := g.Info()
	n := info.MaxBatch
	f := &gpuFlight{
		g: g, side: side, own: newGPUBatch(n, len(info.Labels)),
		sources: make([]preprocess.Source, n), found: make([]infer.Candidates, n), whole: make([][][]float32, n),
	}
	f.queue, f.collect = f.queueAll, f.collectAll
	f.counts = func(class int) float32 { return f.own.threshold(0, class) }
	return f
}

func (r *gpuRunner) depth() int { return ort.Sides }

func (r *gpuRunner) begin(b *batch, threshold func(class int) float32) (held bool, err error) {
	if r.flying == ort.Sides {
		return false, errors.New("begin batch: as many as can be are under way")
	}
	if err := r.g.dev.Err(); err != nil {
		return false, err // and the batches that were lost with it stay as they are
	}
	r.g.how.learn(r.ctx, b.frames)
	f := r.flights[(r.oldest+r.flying)%ort.Sides]
	f.own.fill(b.frames, threshold)
	if err := r.visit(r.ctx, "infer batch", f.queue); err != nil {
		f.own.leave()
		return false, err
	}
	f.of = b
	r.flying++
	return f.waiting, nil
}

func (r *gpuRunner) finish(b *batch) (took time.Duration, err error) {
	f := r.flights[r.oldest]
	if r.flying == 0 || f.of != b {
		return 0, errNotBegun
	}
	r.oldest, r.flying, f.of = (r.oldest+1)%ort.Sides, r.flying-1, nil
	// Its frames are with the card, whoever wants it still.
	err = r.visit(context.WithoutCancel(r.ctx), "infer batch", f.collect)
	f.own.leave()
	if err != nil {
		return 0, err
	}
	copy(b.transforms, f.own.transforms)
	r.g.nms.SetThresholds(f.counts)
	return f.took, f.decode(b.detections)
}

// visit goes to the device's goroutine, and gives back the pictures that the card
// has finished with, or all of them when it is lost.
func (r *gpuRunner) visit(ctx context.Context, name string, f func(*cuda.Context) error) error {
	err := r.g.dev.Do(ctx, name, f)
	r.g.feed.Release()
	var lost *cuda.LostError
	if errors.As(err, &lost) {
		r.g.feed.Abandon()
	}
	return err
}

func (r *gpuRunner) close() {}

// queueAll is the first visit: everything is queued and nothing waited for. An
// engine whose run waits is left to the second one, as a batch before this may
// be at its end.
func (f *gpuFlight) queueAll(c *cuda.Context) error {
	if !f.own.begin() {
		return errors.New("infer batch: it was given up before its turn")
	}
	defer f.own.end()
	g, n := f.g, len(f.own.frames)
	if err := g.clear(c, f.side); err != nil {
		return err
	}
	err := f.prepare(c)
	f.waiting = g.engine.Waits(n)
	if err == nil && !f.waiting {
		err = g.infer(c, f.side, n, f.own.threshold)
	}
	if err != nil && !cuda.Sticky(err) { // a lost card answers no more
		err = errors.Join(err, f.cancel(c))
	}
	return err
}

// prepare queues what brings the pictures into the engine's input.
func (f *gpuFlight) prepare(c *cuda.Context) error {
	g, frames := f.g, f.own.frames
	if err := g.decoded.after(c, g.preparing); err != nil {
		return err
	}
	if err := c.Record(g.sides[f.side].placed, g.preparing); err != nil {
		return err
	}
	if err := g.feed.Place(c, frames, g.how.of, f.sources); err != nil {
		return err
	}
	input, _ := g.engine.Input(f.side)
	if err := g.prep.Launch(c, g.preparing, f.sources[:len(frames)], input, f.own.transforms); err != nil {
		return err
	}
	if err := c.Record(g.sides[f.side].prepared, g.preparing); err != nil {
		return err
	}
	return g.feed.Done(c)
}

// cancel ends what was queued of a batch that failed on the way.
func (f *gpuFlight) cancel(c *cuda.Context) error {
	f.g.sides[f.side].unclear = true
	return errors.Join(f.g.feed.Cancel(c), f.g.clear(c, f.side))
}

// collectAll is the second visit: it waits for the batch and takes what the
// filter left of it.
func (f *gpuFlight) collectAll(c *cuda.Context) error {
	if !f.own.begin() {
		return errors.New("infer batch: it was given up before its turn")
	}
	defer f.own.end()
	err := f.await(c)
	if err == nil {
		f.took, err = f.g.sides[f.side].took(c)
	}
	if err == nil {
		err = f.g.feed.Settle(c)
	}
	if err != nil {
		if f.g.sides[f.side].unclear = true; !cuda.Sticky(err) {
			err = errors.Join(err, f.g.clear(c, f.side))
		}
		return err
	}
	for i := range f.own.frames {
		if err := f.read(c, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *gpuFlight) await(c *cuda.Context) error {
	if f.waiting {
		if err := f.g.infer(c, f.side, len(f.own.frames), f.own.threshold); err != nil {
			return err
		}
	}
	return c.WaitEvent(f.g.sides[f.side].finished)
}

// read takes what the filter left of an image, or its whole outputs where that
// was too much or there is no filter. They take a megabyte across the bus: of a
// model with one, only a threshold that lets nearly anything through leads to them.
func (f *gpuFlight) read(c *cuda.Context, i int) (err error) {
	f.whole[i] = nil
	filter := f.g.sides[f.side].filter
	if filter != nil {
		err = filter.Read(i, &f.found[i])
	}
	var many *candidates.OverflowError
	if filter == nil || errors.As(err, &many) {
		f.whole[i], err = f.g.engine.Fetch(c, f.side, i)
	}
	return err
}

// decode makes detections of what the visits found.
func (f *gpuFlight) decode(out [][]infer.Detection) error {
	for i := range out {
		dets, zero, err := f.decodeImage(i, out[i])
		if err != nil {
			var sick *infer.UnhealthyError
			if errors.As(err, &sick) {
				sick.Image = i
			}
			return err
		}
		f.g.zeros.note(zero)
		out[i] = dets
	}
	return nil
}

func (f *gpuFlight) decodeImage(i int, to []infer.Detection) (dets []infer.Detection, zero bool, err error) {
	if w := f.whole[i]; w != nil {
		return f.g.nms.Read(i, w, to)
	}
	return f.g.nms.DecodeCandidates(&f.found[i], to)
}
