package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer/ort"
	"edgecam/infer/track"
	"edgecam/internal/pipeline/bench"
	"edgecam/platform/cuda"
)

// Bench is the card for `edgecam bench pipeline`, with nothing else at work on it.
func (g *GPU) Bench(threshold float32) bench.Card { return &benchCard{g, threshold, fullEffort()} }

type benchCard struct {
	*GPU

	threshold float32
	effort    effort
}

func (b *benchCard) Serve(o *decode.Options) { b.serve(o) }

// FreeMemory implements bench.Card.
func (b *benchCard) FreeMemory(ctx context.Context) (free, total uint64, err error) {
	return b.dev.MemInfo(ctx)
}

// Stream implements bench.Card.
func (b *benchCard) Stream(ctx context.Context) bench.Stream {
	return &benchStream{threshold: b.threshold, r: newGPURunner(ctx, b.GPU)}
}

// benchStream is a runner as benches use it.
type benchStream struct {
	threshold float32
	r         runner
	flying    []*batch
}

func (s *benchStream) Depth() int { return s.r.depth() }

func (s *benchStream) Begin(pictures []*framepool.Frame) error {
	b := newBatch(len(pictures))
	for _, f := range pictures {
		b.add(job{frame: f})
	}
	if _, err := s.r.begin(b, func(int) float32 { return s.threshold }); err != nil {
		return err
	}
	s.flying = append(s.flying, b)
	return nil
}

func (s *benchStream) Finish() error {
	b := s.flying[0]
	s.flying = s.flying[1:]
	_, err := s.r.finish(b)
	return err
}

func (s *benchStream) Close() { s.r.close() }

// effort is how long measurements go on: for so many images, within so many
// batches, bare and whole path in turn.
type effort struct{ images, least, most, laps, solo int }

func fullEffort() effort { return effort{images: 3000, least: 40, most: 500, laps: 3, solo: 15} }

// Measure implements bench.Card.
func (b *benchCard) Measure(ctx context.Context, pictures []*framepool.Frame, n int) (row bench.GPURow, err error) {
	if len(pictures) == 0 || n < 1 || n > b.Info().MaxBatch {
		return row, fmt.Errorf("measure batches of %d out of %d pictures: cannot be", n, len(pictures))
	}
	m := &measurement{benchCard: b, ctx: ctx, pictures: pictures, n: n, r: newGPURunner(ctx, b.GPU)}
	m.trackers = make([]*track.Tracker, n)
	for i := range m.trackers {
		m.trackers[i] = track.New(track.Options{})
	}
	defer m.r.close()
	row.Images = n
	if err := m.solo(&row); err != nil {
		return row, err
	}
	batches := min(max(b.effort.images/n, b.effort.least), b.effort.most)
	var bare, path time.Duration
	for range b.effort.laps {
		took, err := m.bare(batches)
		if err != nil {
			return row, err
		}
		bare += took
		if took, err = m.path(batches); err != nil {
			return row, err
		}
		path += took
	}
	images := float64(n * batches * b.effort.laps)
	row.Bare, row.Path = images/bare.Seconds(), images/path.Seconds()
	return row, nil
}

// measurement is of one batch size.
type measurement struct {
	*benchCard

	ctx      context.Context //nolint:containedctx // of the one call
	pictures []*framepool.Frame
	n        int
	next     int // picture
	r        runner
	trackers []*track.Tracker
	tracked  []track.Object
}

func (m *measurement) lowest(int) float32 { return m.threshold }

// batch is the next batch of pictures.
func (m *measurement) batch(b *batch) *batch {
	if b == nil {
		b = newBatch(m.n)
	}
	b.reset()
	for range m.n {
		b.add(job{frame: m.pictures[m.next%len(m.pictures)]})
		m.next++
	}
	return b
}

// results does with a batch what the worker does, but for publishing.
func (m *measurement) results(b *batch) {
	for i, found := range b.detections {
		for k := range found {
			found[k] = b.transforms[i].Inverse(found[k])
		}
		m.tracked = m.trackers[i].Update(m.tracked[:0], b.frames[i].Meta().Received, found)
	}
}

// bare runs the engine alone, as fast as it goes.
func (m *measurement) bare(batches int) (took time.Duration, err error) {
	err = m.dev.DoWithin(m.ctx, "measure the engine", gpuStepLimit, func(c *cuda.Context) error {
		start := time.Now()
		for i := range batches {
			if err := m.engine.Run(c, i%ort.Sides, m.n); err != nil {
				return err
			}
		}
		err := c.Wait(m.engine.Stream())
		took = time.Since(start)
		return err
	})
	return took, err
}

// path takes batches through all stages, with as many under way as there can be.
func (m *measurement) path(batches int) (time.Duration, error) {
	flying := make([]*batch, 0, m.r.depth())
	var free []*batch
	for range m.r.depth() {
		free = append(free, newBatch(m.n))
	}
	start := time.Now()
	for begun, done := 0, 0; done < batches; {
		if begun < batches && len(flying) < m.r.depth() {
			b := m.batch(free[0])
			free = free[1:]
			if _, err := m.r.begin(b, m.lowest); err != nil {
				return 0, err
			}
			flying = append(flying, b)
			begun++
			continue
		}
		b := flying[0]
		flying = slices.Delete(flying, 0, 1)
		if _, err := m.r.finish(b); err != nil {
			return 0, err
		}
		m.results(b)
		free = append(free, b)
		done++
	}
	return time.Since(start), nil
}

// solo measures the stages of batches that nothing runs beside.
func (m *measurement) solo(row *bench.GPURow) error {
	var b *batch
	var whole, results []time.Duration
	copied := m.feed.Stats().CopiedBytes
	for range m.effort.solo {
		b = m.batch(b)
		start := time.Now()
		_, err := m.r.begin(b, m.lowest)
		if err == nil {
			_, err = m.r.finish(b)
		}
		if err != nil {
			return err
		}
		inferred := time.Now()
		m.results(b)
		whole, results = append(whole, time.Since(start)), append(results, time.Since(inferred))
	}
	row.BatchMS, row.ResultsUS = 1000*median(whole).Seconds(), 1e6*median(results).Seconds()
	row.DMABytes = float64(m.feed.Stats().CopiedBytes-copied) / float64(m.effort.solo*m.n)
	var stages [3][]time.Duration
	err := m.dev.DoWithin(m.ctx, "measure the stages", gpuStepLimit, func(c *cuda.Context) error {
		row.Graph = m.engine.Waits(m.n)
		for range m.effort.solo {
			took, err := m.stages(c)
			if err != nil {
				return err
			}
			for i := range stages {
				stages[i] = append(stages[i], took[i])
			}
		}
		return nil
	})
	m.feed.Release()
	if err != nil {
		return err
	}
	row.PreprocessUS, row.EngineUS, row.CandidatesUS = 1e6*median(stages[0]).Seconds(), 1e6*median(stages[1]).Seconds(), 1e6*median(stages[2]).Seconds()
	return nil
}

// stages takes a batch through the card one stage after the other and gives the
// time of each by the card's clock.
func (m *measurement) stages(c *cuda.Context) (took [3]time.Duration, err error) {
	f := m.r.(*gpuRunner).flights[0]
	f.own.fill(m.batch(nil).frames, m.lowest)
	defer f.own.leave()
	watch, err := c.NewStopwatch()
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, watch.Close(c)) }()
	for i, s := range []struct {
		stream cuda.Stream
		queue  func() error
	}{
		{m.preparing, func() error { return f.prepare(c) }},
		{m.engine.Stream(), func() error { return m.run(c, f.side, m.n) }},
		{m.collecting, func() error { return m.filter(c, f.side, m.n, f.own.threshold) }},
	} {
		if took[i], err = watch.Time(c, s.stream, s.queue); err != nil {
			return took, err
		}
	}
	return took, m.feed.Settle(c)
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// Settled is closed when the card's engine is the one that stays.
func (g *GPU) Settled() <-chan struct{} { return g.engine.Settled() }
