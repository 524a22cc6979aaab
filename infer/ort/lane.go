package ort

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"edgecam/platform/cuda"
	"edgecam/platform/onnxruntime"
)

// lane is a session of one provider with a binding for every bucket.
type lane struct {
	provider string
	model    *model // its ports; for TensorRT those of the model it was built from
	session  *onnxruntime.Session
	graph    bool

	bound []*deviceBound  // by bucket
	times []time.Duration // of one run, by bucket; 0 = not measured
}

// deviceBound binds one bucket to device memory.
type deviceBound struct {
	binding *onnxruntime.Binding
	tensors []*onnxruntime.Tensor
	options *onnxruntime.RunOptions
}

// bind connects every bucket with d, in place of what was bound before.
func (l *lane) bind(library *onnxruntime.Library, device int, d *deviceIO, buckets []int) error {
	l.unbind()
	for k, n := range buckets {
		b, err := l.bindBucket(library, device, d, n, k)
		if err != nil {
			return fmt.Errorf("bind a batch of %d: %w", n, err)
		}
		l.bound = append(l.bound, b)
	}
	if l.times == nil {
		l.times = make([]time.Duration, len(buckets))
	}
	return nil
}

func (l *lane) bindBucket(library *onnxruntime.Library, device int, d *deviceIO, n, k int) (b *deviceBound, err error) {
	b = &deviceBound{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	// The stream orders what follows; waiting is for the event behind it.
	entries := map[string]string{onnxruntime.RunWithoutWaiting: "1"}
	if l.graph {
		entries[onnxruntime.RunGraph] = strconv.Itoa(k + 1)
	}
	if b.options, err = library.NewRunOptions(entries); err != nil {
		return b, err
	}
	if b.binding, err = l.session.NewBinding(); err != nil {
		return b, err
	}
	m := l.model
	batch, spec := int64(n), m.meta.Input
	for _, p := range []struct {
		bind    func(string, *onnxruntime.Tensor) error
		name    string
		span    span
		element onnxruntime.ElementType
		shape   []int64
	}{
		{b.binding.Input, m.input, d.input, m.inputType, []int64{batch, 3, int64(spec.Height), int64(spec.Width)}},
		{b.binding.Output, "boxes", d.boxes, m.boxesType, []int64{batch, int64(m.boxes), 4}},
		{b.binding.Output, "scores", d.scores, m.scoresType, []int64{batch, int64(m.boxes), int64(len(m.meta.Labels))}},
	} {
		t, err := library.NewDeviceTensor(p.span.memory(device), p.element, p.shape...)
		if err != nil {
			return b, err
		}
		b.tensors = append(b.tensors, t)
		if err := p.bind(p.name, t); err != nil {
			return b, err
		}
	}
	return b, nil
}

// run queues bucket k.
func (l *lane) run(k int) error { return l.bound[k].binding.RunWith(l.bound[k].options) }

func (l *lane) unbind() {
	for _, b := range l.bound {
		b.close()
	}
	l.bound = nil
}

// free unloads the session. The stream must have passed its last run.
func (l *lane) free() {
	l.unbind()
	l.session.Close()
}

// leave is free on the device's goroutine, for a lane that was given up.
func (l *lane) leave(ctx context.Context, dev *cuda.Device) {
	_ = dev.DoWithin(context.WithoutCancel(ctx), "drop session", stepLimit, func(c *cuda.Context) error {
		// On a lost device this is not reached, and the session is left alone.
		err := c.Synchronize()
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
	if b.options != nil {
		b.options.Close()
	}
}

// middle is the median.
func middle(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
