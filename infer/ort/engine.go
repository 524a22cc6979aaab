package ort

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"edgecam/infer"
	"edgecam/platform/onnxruntime"
)

var _ infer.Engine = (*Engine)(nil)

// Engine is a loaded model with its slots.
type Engine struct {
	library *onnxruntime.Library
	model   *model
	info    infer.Info
	stats   counters

	free   chan *slot // the slots that nobody holds
	closed chan struct{}
	close  sync.Once
}

// New opens the library, loads the model, chooses its precision and tries it.
// Errors: *onnxruntime.UnavailableError, *infer.ModelError.
func New(opts Options) (*Engine, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	library, skipped, err := onnxruntime.Find(opts.Library)
	if err != nil {
		return nil, err
	}
	best, notes, err := choose(library, opts)
	if err != nil {
		library.Close()
		return nil, err
	}
	e := &Engine{library: library, model: best.model, free: make(chan *slot, opts.Concurrency), closed: make(chan struct{})}
	e.add(best.slot)
	batch := len(best.slot.bound)
	for len(e.free) < opts.Concurrency {
		s, err := newSlot(library, best.model, batch, opts.NMSIoU)
		if err != nil {
			e.shut()
			return nil, fmt.Errorf("make engine: slot %d of %d: %w", len(e.free)+1, opts.Concurrency, err)
		}
		e.add(s)
	}
	onnxruntime.Trim() // what trying the models took
	for _, s := range skipped {
		notes = append(notes, "library passed over: "+s)
	}
	e.info = infer.Info{
		Model: opts.Model, Precision: best.model.precision, Provider: "cpu",
		Library: library.Path(), Version: library.Version(),
		Labels: best.model.meta.Labels, Input: best.model.meta.Input,
		MaxBatch: batch, Threads: opts.Concurrency,
		ProbeMS: ms(best.median()), ProbeNotes: notes,
	}
	return e, nil
}

func (e *Engine) add(s *slot) {
	s.engine = e
	e.free <- s
}

// Info is what New found.
func (e *Engine) Info() infer.Info {
	info := e.info
	info.Labels = slices.Clone(info.Labels)
	info.ProbeNotes = slices.Clone(info.ProbeNotes)
	return info
}

// Stats is a snapshot of the counters.
func (e *Engine) Stats() Stats { return e.stats.snapshot() }

// Acquire waits for a free slot, see infer.Engine.
func (e *Engine) Acquire(ctx context.Context) (infer.Slot, error) {
	if e.isClosed() {
		return nil, infer.ErrClosed
	}
	select {
	case s := <-e.free:
		if e.isClosed() {
			e.free <- s
			return nil, infer.ErrClosed
		}
		s.held.Store(true)
		return s, nil
	case <-e.closed:
		return nil, infer.ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("acquire slot: %w", ctx.Err())
	}
}

func (e *Engine) isClosed() bool {
	select {
	case <-e.closed:
		return true
	default:
		return false
	}
}

// Close waits until every slot is released, then unloads the model.
func (e *Engine) Close() error {
	e.close.Do(func() {
		close(e.closed)
		for range cap(e.free) {
			(<-e.free).close()
		}
		e.unload()
	})
	return nil
}

// shut frees an engine that New could not finish.
func (e *Engine) shut() {
	for len(e.free) > 0 {
		(<-e.free).close()
	}
	e.unload()
}

func (e *Engine) unload() {
	e.model.session.Close()
	e.library.Close()
}
