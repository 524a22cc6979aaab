package ort

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// Kernels such as Split and Concat take page-locked host memory for what they are
// launched with (CudaStream::EnqueDeferredCPUBuffer). ONNX Runtime gives it back in
// CudaStream::CleanUpOnRunEnd, which DeviceStreamCollection::CleanUp leaves out after
// a run that does not wait. What such runs have taken piles up until the session's
// next run that waits, which settles it: CleanUpOnRunEnd queues the giving back as
// a callback of the stream, and then the run waits for the stream.
//
// A session must be settled before it is released. Else ~CudaStream queues that
// callback, which may be the last to hold the memory's allocator: it ends the
// allocator inside of a callback, where CUDA refuses to free memory, and ONNX
// Runtime's exception ends the process.
//
// In a session that captures CUDA graphs CleanUpOnRunEnd waits and gives back at
// once, without a callback. There the memory must stay taken once a graph is
// replayed: the copies in the graph read it each time.

// settleEvery is which run of a session settles it. It bounds what piles up, 256
// bytes or more a run for each such node, and lets one run in so many wait for the
// card.
const settleEvery = 256

// roomRuns is how many runs a session's page-locked memory has room for before its
// graphs are captured. ONNX Runtime makes two runs of the first one of a graph, a
// plain one and the one that it captures, for each side; the others are to spare.
const roomRuns = 2*Sides + 2

// queue queues a plain run of bucket k and waits for nothing.
func (l *lane) queue(k, side int) error {
	l.deferred[l.home(k)]++
	return l.bound[k][side].binding.RunWith(l.bound[k][side].plain)
}

// settle settles the session of bucket k by a run, which is waited for.
func (l *lane) settle(k, side int) error {
	if err := l.bound[k][side].binding.RunWith(l.bound[k][side].settling); err != nil {
		return err
	}
	l.deferred[l.home(k)] = 0
	return nil
}

// unsettled says that the session of bucket k is to be settled. One whose graphs
// serve never is: what they took is not counted.
func (l *lane) unsettled(k int) bool { return l.deferred[l.home(k)] > 0 }

// settleAll settles all sessions, before they are released. It belongs where runs
// belong: it uses the stream and the tensors that serve. A batch whose outputs are
// still to be read has them written once more, of the same pictures.
func (l *lane) settleAll() error {
	var errs []error
	for k := range l.bound {
		if l.bound[k][0] == nil || !l.unsettled(k) {
			continue
		}
		if err := l.settle(k, 0); err != nil {
			errs = append(errs, fmt.Errorf("settle session of %s: %w", l.provider, err))
		}
	}
	return errors.Join(errs...)
}

// makeRoom lets bucket k's session take page-locked memory for the runs that are
// to be captured: cudaHostAlloc is not allowed while one is. The memory comes out
// of an arena, which keeps what is given back.
func (e *DeviceEngine) makeRoom(ctx context.Context, l *lane, k int) error {
	return e.dev.DoWithin(ctx, "make room for graphs", stepLimit, func(*cuda.Context) error {
		for range roomRuns {
			if err := l.queue(k, 0); err != nil {
				return err
			}
		}
		return l.settle(k, 0)
	})
}

// newRunOptions makes b's. The stream orders what follows, and waiting is for the
// event behind it, except in runs that settle. graphs says that the session captures
// them, graph is graphOf or noGraph.
func (b *deviceBound) newRunOptions(library *onnxruntime.Library, graphs bool, graph int) (err error) {
	entries := map[string]string{}
	if graphs {
		entries[onnxruntime.RunGraph] = strconv.Itoa(noGraph)
	}
	if b.settling, err = library.NewRunOptions(entries); err != nil {
		return err
	}
	entries[onnxruntime.RunWithoutWaiting] = "1"
	if b.plain, err = library.NewRunOptions(entries); err != nil || !graphs || graph == noGraph {
		return err
	}
	entries[onnxruntime.RunGraph] = strconv.Itoa(graph)
	b.graph, err = library.NewRunOptions(entries)
	return err
}
