package ort

import (
	"context"
	"fmt"
	"slices"
	"time"

	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// lane is one provider's sessions. Of a bucket it can run once open has bound it
// to the engine's tensors.
type lane struct {
	provider string
	model    *model // its ports; for TensorRT those of the model it was built from
	session  *onnxruntime.Session
	// own are the sessions of buckets that need one for themselves; nil: session
	// serves the bucket, or nothing yet.
	own []*onnxruntime.Session
	// more loads another session of the same; nil: one session serves all buckets.
	more func() (*onnxruntime.Session, error)
	// graphs says that the sessions were made to capture CUDA graphs.
	graphs bool

	bound    [][Sides]*deviceBound // by bucket; nil = it cannot be run
	replay   []bool                // by bucket: runs replay a graph
	times    []time.Duration       // of one run, by bucket; 0 = not measured
	deferred []int                 // by home: plain runs since the session was settled
}

func newLane(provider string, buckets int) *lane {
	return &lane{
		provider: provider, own: make([]*onnxruntime.Session, buckets), bound: make([][Sides]*deviceBound, buckets),
		replay: make([]bool, buckets), times: make([]time.Duration, buckets), deferred: make([]int, buckets),
	}
}

// deviceBound binds one bucket to device memory.
type deviceBound struct {
	binding  *onnxruntime.Binding
	tensors  []*onnxruntime.Tensor
	plain    *onnxruntime.RunOptions
	settling *onnxruntime.RunOptions
	graph    *onnxruntime.RunOptions // nil where the session has none
}

// noGraph is the number of a run that neither captures nor replays.
const noGraph = -1

// graphOf numbers the graph of a bucket and side within the bucket's session.
func graphOf(k, side int) int { return k*Sides + side + 1 }

// bind connects bucket k, n images, with d. graph is graphOf or noGraph.
func (l *lane) bind(library *onnxruntime.Library, device int, d *deviceIO, n, k, graph int) (b *deviceBound, err error) {
	b = &deviceBound{}
	defer func() {
		if err != nil {
			b.close()
			err = fmt.Errorf("bind a batch of %d: %w", n, err)
		}
	}()
	if err = b.newRunOptions(library, l.graphs, graph); err != nil {
		return b, err
	}
	if b.binding, err = l.of(k).NewBinding(); err != nil {
		return b, err
	}
	return b, b.bindPorts(library, device, l.model, d, n)
}

func (b *deviceBound) bindPorts(library *onnxruntime.Library, device int, m *model, d *deviceIO, n int) error {
	in := &m.input
	if err := b.bindPort(library, b.binding.Input, in.name, d.input.memory(device), in.element, in.shape(n)); err != nil {
		return err
	}
	for i := range m.outputs {
		p := &m.outputs[i]
		if err := b.bindPort(library, b.binding.Output, p.name, d.outputs[i].memory(device), p.element, p.shape(n)); err != nil {
			return err
		}
	}
	sizes, err := m.newSizes(library, n)
	if err != nil || sizes == nil {
		return err
	}
	b.tensors = append(b.tensors, sizes)
	return b.binding.Input(m.sizes.Name, sizes)
}

func (b *deviceBound) bindPort(library *onnxruntime.Library, bind func(string, *onnxruntime.Tensor) error, name string, memory onnxruntime.DeviceMemory, element onnxruntime.ElementType, shape []int64) error {
	t, err := library.NewDeviceTensor(memory, element, shape...)
	if err != nil {
		return err
	}
	b.tensors = append(b.tensors, t)
	return bind(name, t)
}

// of is the session that serves bucket k.
func (l *lane) of(k int) *onnxruntime.Session {
	if l.own[k] == nil {
		return l.session
	}
	return l.own[k]
}

// home is the place of the bucket whose session serves bucket k.
func (l *lane) home(k int) int {
	if l.own[k] == nil {
		return 0
	}
	return k
}

// open binds bucket k to the engine's tensors, from when on it can be run.
func (l *lane) open(library *onnxruntime.Library, device int, io *[Sides]deviceIO, n, k int) error {
	var bound [Sides]*deviceBound
	for side := range io {
		b, err := l.bind(library, device, &io[side], n, k, graphOf(k, side))
		if err != nil {
			for _, done := range bound[:side] {
				done.close()
			}
			return err
		}
		bound[side] = b
	}
	l.bound[k] = bound
	return nil
}

// bucketFor is the place of the smallest bucket that holds n images and can be
// run, -1 = none.
func (l *lane) bucketFor(buckets []int, n int) int {
	for k := max(0, bucketFor(buckets, n)); k < len(buckets); k++ {
		if buckets[k] >= n && l.bound[k][0] != nil {
			return k
		}
	}
	return -1
}

// run queues bucket k, over the tensors of a side.
func (l *lane) run(k, side int) error {
	switch {
	case l.replay[k]:
		return l.bound[k][side].run(true)
	case l.deferred[l.home(k)] >= settleEvery-1:
		return l.settle(k, side)
	}
	return l.queue(k, side)
}

// run is a run that is waited for, so that it may settle the session as well: a
// lane that is given up has nothing to be settled.
func (b *deviceBound) run(replay bool) error {
	if replay {
		return b.binding.RunWith(b.graph)
	}
	return b.binding.RunWith(b.settling)
}

// free unloads the sessions. The stream must have passed their last run. One that
// could not be settled is left alone, as its release may end the process.
func (l *lane) free() {
	for k := range l.bound {
		if l.unsettled(k) {
			continue
		}
		for _, b := range l.bound[k] {
			if b != nil {
				b.close()
			}
		}
		l.bound[k] = [Sides]*deviceBound{}
		if l.own[k] != nil {
			l.own[k].Close()
			l.own[k] = nil
		}
	}
	if l.session != nil && !l.unsettled(0) {
		l.session.Close()
	}
}

// leave is free on the device's goroutine, for a lane that was given up.
func (l *lane) leave(ctx context.Context, dev *cuda.Device) {
	_ = dev.DoWithin(context.WithoutCancel(ctx), "drop session", stepLimit, func(c *cuda.Context) error {
		// On a lost device this is not reached, and the session is left alone.
		err := c.Synchronize()
		if err == nil {
			err = l.settleAll()
		}
		l.free()
		return err
	})
}

func (b *deviceBound) close() {
	if b.binding != nil {
		b.binding.Close()
	}
	for _, t := range b.tensors {
		t.Close()
	}
	for _, o := range []*onnxruntime.RunOptions{b.plain, b.settling, b.graph} {
		if o != nil {
			o.Close()
		}
	}
}

// middle is the median.
func middle(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
