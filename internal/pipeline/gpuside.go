package pipeline

import (
	"errors"
	"time"

	"edgecam/infer/candidates"
	"edgecam/infer/ort"
	"edgecam/platform/cuda"
)

// gpuSide is what one of the batches under way has on the card for itself, beside
// its side of the engine's tensors. The streams are shared: pictures are prepared
// on one, the engine runs on its own, candidates are found on a third, and events
// hand a batch on from each to the next. So the pictures of one batch are prepared
// while the engine works on the one before, and nobody waits but finish.
type gpuSide struct {
	filter   *candidates.Filter // nil where outputs are read whole
	placed   cuda.Event         // its pictures are there, and are prepared from here on
	prepared cuda.Event         // the input is written
	started  cuda.Event         // the engine has come to it
	inferred cuda.Event         // the outputs are written; without timing, unlike the others
	finished cuda.Event         // the candidates lie in host memory
	// unclear says that work may be under way which no event stands for: the side
	// must not be used before the streams are empty.
	unclear bool
}

func (s *gpuSide) open(c *cuda.Context, filters bool, o candidates.Options) (err error) {
	if filters {
		if s.filter, err = candidates.New(c, o); err != nil {
			return err
		}
	}
	for _, e := range s.events() {
		if *e, err = c.NewEvent(e != &s.inferred); err != nil {
			return err
		}
	}
	return nil
}

func (s *gpuSide) events() []*cuda.Event {
	return []*cuda.Event{&s.placed, &s.prepared, &s.started, &s.inferred, &s.finished}
}

// took is how long the card was at the side's last batch: in the engine and the filter,
// or in preparing it where that took longer, as the two go on side by side. Whoever waits
// for the end may come late, and could not tell.
func (s *gpuSide) took(c *cuda.Context) (time.Duration, error) {
	preparing, err := c.ElapsedMS(s.placed, s.prepared)
	if err != nil {
		return 0, err
	}
	inferring, err := c.ElapsedMS(s.started, s.finished)
	return time.Duration(float64(max(preparing, inferring)) * float64(time.Millisecond)), err
}

func (s *gpuSide) close(c *cuda.Context) error {
	var errs []error
	if s.filter != nil {
		errs = append(errs, s.filter.Close(c))
		s.filter = nil
	}
	for _, e := range s.events() {
		errs = append(errs, c.FreeEvent(*e))
		*e = 0
	}
	return errors.Join(errs...)
}

// clear waits for work of a side that no event stands for.
func (g *GPU) clear(c *cuda.Context, side int) error {
	s := &g.sides[side]
	if !s.unclear {
		return nil
	}
	for _, stream := range []cuda.Stream{g.preparing, g.engine.Stream(), g.collecting} {
		if err := c.Wait(stream); err != nil {
			return err
		}
	}
	s.unclear = false
	return nil
}

// infer queues the engine and the filter for the n images that are being
// prepared on a side.
func (g *GPU) infer(c *cuda.Context, side, n int, threshold func(image, class int) float32) error {
	if err := g.run(c, side, n); err != nil {
		return err
	}
	return g.filter(c, side, n, threshold)
}

func (g *GPU) run(c *cuda.Context, side, n int) error {
	s, stream := &g.sides[side], g.engine.Stream()
	if err := c.After(stream, s.prepared); err != nil {
		return err
	}
	if err := c.Record(s.started, stream); err != nil {
		return err
	}
	if err := g.engine.Run(c, side, n); err != nil {
		return err
	}
	return c.Record(s.inferred, stream)
}

func (g *GPU) filter(c *cuda.Context, side, n int, threshold func(image, class int) float32) error {
	s := &g.sides[side]
	if err := c.After(g.collecting, s.inferred); err != nil {
		return err
	}
	if s.filter != nil {
		boxes, scores, _, _ := g.engine.Outputs(side)
		if err := s.filter.Launch(c, g.collecting, n, boxes, scores, threshold); err != nil {
			return err
		}
	}
	return c.Record(s.finished, g.collecting)
}

// gpuSides are the batches that may be under way.
type gpuSides [ort.Sides]gpuSide
