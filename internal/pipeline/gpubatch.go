package pipeline

import (
	"sync"

	"edgecam/framepool"
	"edgecam/preprocess"
)

// gpuBatch is what the visits to the device work on. All of it is the batch's own,
// with handles of the frames and a copy of the thresholds: a visit that hangs in
// the driver is given up while it runs, and one that comes back later goes on
// with what it was given. The worker fills and leaves it, visits begin and end in
// between.
type gpuBatch struct {
	frames     []*framepool.Frame
	transforms []preprocess.Transform
	lowest     []float32                      // score that counts, by class
	threshold  func(image, class int) float32 // of lowest, bound once

	mu      sync.Mutex
	running bool // the visit uses the batch
	left    bool // the worker does not wait for it any more
}

func newGPUBatch(images, classes int) *gpuBatch {
	b := &gpuBatch{
		frames: make([]*framepool.Frame, 0, images), transforms: make([]preprocess.Transform, images), lowest: make([]float32, classes),
	}
	b.threshold = func(_, class int) float32 { return b.lowest[class] }
	return b
}

// fill puts a batch in. It borrows the frames and keeps handles of its own.
func (b *gpuBatch) fill(frames []*framepool.Frame, threshold func(class int) float32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = false
	for _, f := range frames {
		b.frames = append(b.frames, f.Retain())
	}
	for class := range b.lowest {
		b.lowest[class] = threshold(class)
	}
}

// begin says whether the visit may use the batch: it may come when the worker
// has left.
func (b *gpuBatch) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = !b.left
	return b.running
}

// end ends the visit.
func (b *gpuBatch) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = false
	if b.left {
		b.releaseLocked()
	}
}

// leave ends the worker's part. The handles go with whoever comes last: a call
// that hangs may still read the pictures.
func (b *gpuBatch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = true
	if !b.running {
		b.releaseLocked()
	}
}

func (b *gpuBatch) releaseLocked() {
	for _, f := range b.frames {
		f.Release()
	}
	clear(b.frames)
	b.frames = b.frames[:0]
}
