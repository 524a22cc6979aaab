package ort

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"edgecam/infer"
	"edgecam/platform/cuda"
)

// graphGain is how much of a plain run's time a replayed graph may take to be worth
// it: ONNX Runtime makes the caller wait for a graph, in which the next batch cannot be
// queued. On an H200 batches of 16 took 0.71 to 0.92 of the time as graphs, and the
// whole path was 12 to 18 % slower with them.
const graphGain = 0.67

// graphRuns is how often a graph is run until it is sure to be a replay: the
// first runs only prepare for capturing it.
const graphRuns = 3

// load gives bucket k of l a session of its own, where its provider needs that:
// ONNX Runtime's CUDA provider keeps cuDNN's plan of each convolution for the
// last shape alone. Batches that change their size between runs make it plan
// anew each time, 700 ms for the built-in model on an H200 where a run takes 2.
func (e *DeviceEngine) load(ctx context.Context, l *lane, k int) error {
	if l.more == nil || k == 0 || l.own[k] != nil {
		return nil
	}
	return e.await(context.WithoutCancel(ctx), func() error {
		s, err := l.more()
		if err == nil {
			l.own[k] = s
		}
		return err
	})
}

// serve lets bucket k of l be run. It has been tried.
func (e *DeviceEngine) serve(ctx context.Context, l *lane, k int) error {
	return e.dev.DoWithin(ctx, "bind tensors", servingLimit, func(*cuda.Context) error {
		return l.open(e.library, e.dev.GPU().Index, &e.io, e.buckets[k], k)
	})
}

// grow opens the buckets that cannot be run yet, beside serving. Until one can,
// the next larger one serves in its place.
func (e *DeviceEngine) grow() {
	var l *lane
	err := e.dev.DoWithin(e.ctx, "look at the engine", servingLimit, func(*cuda.Context) error {
		l = e.active
		return nil
	})
	if err != nil {
		return
	}
	for k, n := range e.buckets {
		if l.bound[k][0] != nil {
			continue
		}
		if err = e.prepare(e.ctx, l, k); err == nil {
			err = e.serve(e.ctx, l, k)
		}
		switch {
		case e.stopped() != nil:
			return
		case err != nil:
			e.note(nil, "batches of %d run as larger ones: %s", n, words(err))
		}
	}
}

// prepare loads bucket k and runs it once in memory of its own and on a thread of
// its own: planning its convolutions takes hundreds of milliseconds, for which
// serving need not wait. Then its answer is verified.
func (e *DeviceEngine) prepare(ctx context.Context, l *lane, k int) error {
	if err := e.load(ctx, l, k); err != nil {
		return err
	}
	scratch := &deviceIO{}
	err := e.dev.DoWithin(ctx, "allocate tensors", servingLimit, func(c *cuda.Context) error {
		return scratch.alloc(c, l.model, e.buckets[k])
	})
	if err != nil {
		return err
	}
	err = e.try(ctx, l, scratch, k, servingLimit, func(a attempt) error {
		// Whoever ends ctx waits: the run uses the stream and the scratch memory.
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepLimit)
		defer cancel()
		if err := e.await(patient, func() error { return a.b.run(false) }); err != nil {
			return err
		}
		return e.verify(ctx, a, servingLimit)
	})
	return errors.Join(err, e.dev.DoWithin(context.WithoutCancel(ctx), "free tensors", servingLimit, func(c *cuda.Context) error {
		return errors.Join(c.Wait(e.stream), scratch.free(c))
	}))
}

// prepareAll prepares the buckets that cannot be run yet, all at once, and lets
// them be run.
func (e *DeviceEngine) prepareAll(ctx context.Context, l *lane) error {
	errs := make([]error, len(e.buckets))
	var all sync.WaitGroup
	for k := range e.buckets {
		if l.bound[k][0] != nil {
			continue
		}
		all.Go(func() { errs[k] = e.prepare(ctx, l, k) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for k := range e.buckets {
		if l.bound[k][0] != nil {
			continue
		}
		if err := e.serve(ctx, l, k); err != nil {
			return err
		}
	}
	return nil
}

// useGraphs captures l's runs as CUDA graphs, of every bucket and side, wants
// them to agree with the CPU as the plain runs did, and takes those that gain.
// It happens before anything is served: while a graph is captured, no other
// thread may take memory of the card.
func (e *DeviceEngine) useGraphs(ctx context.Context, l *lane) error {
	if err := e.prepareAll(ctx, l); err != nil {
		return err
	}
	for k := range e.buckets {
		if err := e.capture(ctx, l, k); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info.Graphs = nil
	for k, n := range e.buckets {
		if l.replay[k] {
			e.info.Graphs = append(e.info.Graphs, n)
		}
	}
	if len(e.info.Graphs) == 0 {
		e.info.NoGraphs = "they are not faster here"
	}
	return nil
}

// capture makes the graphs of a bucket, which serve if they gain.
func (e *DeviceEngine) capture(ctx context.Context, l *lane, k int) error {
	// Plain runs settle the session, and none may after the capture.
	plain, err := e.clock(ctx, attempt{l: l, b: l.bound[k][0], d: &e.io[0], k: k}, stepLimit)
	if err != nil {
		return err
	}
	if err := e.makeRoom(ctx, l, k); err != nil {
		return err
	}
	for side := Sides - 1; side >= 0; side-- {
		a := attempt{l: l, b: l.bound[k][side], d: &e.io[side], k: k, replay: true}
		for range graphRuns {
			if err := e.verify(ctx, a, stepLimit); err != nil {
				return err
			}
		}
	}
	graph, err := e.clock(ctx, attempt{l: l, b: l.bound[k][0], d: &e.io[0], k: k, replay: true}, stepLimit)
	if err != nil {
		return err
	}
	e.noteQuietly("%d images %.2f ms, as a CUDA graph %.2f ms", e.buckets[k], ms(plain), ms(graph))
	l.times[k], l.replay[k] = plain, float64(graph) <= graphGain*float64(plain)
	if l.replay[k] {
		l.times[k] = graph
	}
	return nil
}

// wantGraphs says whether CUDA graphs are tried, or why not.
func (e *DeviceEngine) wantGraphs() (bool, string) {
	if e.opts.NoGraphs {
		return false, "they were not asked for"
	}
	if e.opts.Provider != providerCUDA {
		if _, err := e.library.TensorRTVersion(); err == nil {
			return false, "TensorRT is to take over"
		}
	}
	return true, ""
}

// openLane makes the lane that serves first, with CUDA graphs where they work. A
// graph that fails leaves its stream in a state of its own, so that the lane
// without them is made anew on another.
func (e *DeviceEngine) openLane(ctx context.Context, precisions []string) (*lane, error) {
	graphs, why := e.wantGraphs()
	if graphs {
		l, err := e.tryLane(ctx, precisions, true)
		if err == nil || ctx.Err() != nil || e.dev.Err() != nil || !aboutGraphs(err) {
			return l, err
		}
		why = words(unwrapProvider(err))
		if err := e.freshStream(ctx); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	e.info.NoGraphs = why
	if graphs {
		e.info.ProbeNotes = e.info.ProbeNotes[:e.before]
	}
	e.mu.Unlock()
	return e.tryLane(ctx, precisions, false)
}

// aboutGraphs says whether an error is of CUDA graphs: those of their use say so,
// and ONNX Runtime where a session cannot have them ("cannot use the graph capture
// feature").
func aboutGraphs(err error) bool { return strings.Contains(err.Error(), "graph") }

// unwrapProvider gives what a *ProviderError is about.
func unwrapProvider(err error) error {
	var refused *ProviderError
	if errors.As(err, &refused) {
		return refused.Err
	}
	return err
}

func (e *DeviceEngine) tryLane(ctx context.Context, precisions []string, graphs bool) (*lane, error) {
	l, err := e.chooseLane(ctx, precisions, graphs)
	if err != nil {
		return nil, err
	}
	for _, k := range e.firstBuckets() {
		if err = e.serve(ctx, l, k); err != nil {
			break
		}
	}
	if err == nil && graphs {
		if err = e.useGraphs(ctx, l); err != nil {
			err = fmt.Errorf("use CUDA graphs: %w", err)
		}
	}
	if err != nil {
		l.leave(ctx, e.dev)
		return nil, e.refusal(err)
	}
	return l, nil
}

// freshStream replaces a stream of the engine's own.
func (e *DeviceEngine) freshStream(ctx context.Context) error {
	if !e.own {
		return nil
	}
	return e.dev.DoWithin(ctx, "renew stream", stepLimit, func(c *cuda.Context) error {
		s, err := c.NewUrgentStream()
		if err != nil {
			return err
		}
		old := e.stream
		e.stream = s
		return c.FreeStream(old)
	})
}

// Waits says whether each Run of n images waits for the card: a CUDA graph that
// ONNX Runtime replays does.
func (e *DeviceEngine) Waits(n int) bool {
	if e.active == nil {
		return false
	}
	k := e.active.bucketFor(e.buckets, n)
	return k >= 0 && e.active.replay[k]
}

// clearGraphs notes in info that graphs are over.
func clearGraphs(i *infer.Info) { i.Graphs, i.NoGraphs = nil, "TensorRT serves" }
