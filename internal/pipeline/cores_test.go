package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/config"
	"edgecam/internal/pipeline/schedule"
)

// borrowed counts the places that are taken of decoders.
type borrowed struct{ taken, all int }

func (b *borrowed) TakePlace() func() {
	b.taken++
	b.all++
	return func() { b.taken-- }
}

// lookingSlot looks at the decoders' places while it runs.
type lookingSlot struct {
	input []float32
	run   func() error
}

func (s *lookingSlot) Input(int) []float32 { return s.input }

func (s *lookingSlot) Run(int, func(int) float32, [][]infer.Detection) error { return s.run() }

func (s *lookingSlot) Release() {}

// oneSlot is an engine that has nothing else.
type oneSlot struct {
	infer.Engine

	slot infer.Slot
}

func (e oneSlot) Info() infer.Info {
	return infer.Info{Input: infer.InputSpec{Width: 32, Height: 32}, Labels: []string{"person"}}
}

func (e oneSlot) Acquire(context.Context) (infer.Slot, error) { return e.slot, nil }

// A run of the model on the processors has a decoder less beside it, and gives its place
// back, whether it succeeds or fails.
func TestRunTakesADecodersPlace(t *testing.T) {
	var of borrowed
	for _, want := range []error{nil, errors.New("the run failed")} {
		s := &lookingSlot{input: make([]float32, 3*32*32), run: func() error {
			if of.taken != 1 {
				t.Errorf("%d places are taken during the run", of.taken)
			}
			return want
		}}
		r, err := newCPURunner(t.Context(), oneSlot{slot: s}, &of)
		if err != nil {
			t.Fatal(err)
		}
		b := newBatch(1)
		f := framepool.NewHeapFrame(framepool.Meta{Format: framepool.Gray8, Width: 64, Height: 36, Stride: [3]int{64}}, [][]byte{make([]byte, 64*36)})
		b.add(job{frame: f})
		if _, err := r.begin(b, func(int) float32 { return 0.5 }); err != nil {
			t.Fatal(err)
		}
		if of.taken != 0 {
			t.Error("a batch that does not run has a place")
		}
		if _, err := r.finish(b); !errors.Is(err, want) {
			t.Errorf("finish: %v", err)
		}
		f.Release()
		r.close()
	}
	if of.taken != 0 || of.all != 2 {
		t.Errorf("%d places are kept, %d were taken", of.taken, of.all)
	}
}

// The governor's limit spares a decoder, but not where the engine chooses among all
// pictures: with key pictures alone it would have none that is young.
func TestAllPicturesAreForAnEngineThatChooses(t *testing.T) {
	st := &station{sched: newScheduler(time.Now, time.Second)}
	c := &camera{cfg: config.Camera{Detect: config.Detect{FPS: 5}}}
	if got := c.wanted(); got != 5 {
		t.Errorf("without analysis: %v", got)
	}
	c.at.Store(&analysis{st: st})
	c.limit.set(0.4, "too much")
	if got := c.wanted(); got != 0.4 {
		t.Errorf("limited: %v", got)
	}
	st.sched.choose(schedule.Choice{Young: time.Millisecond, Most: 1, Width: 1})
	if got := c.wanted(); got != 5 {
		t.Errorf("while the engine chooses: %v", got)
	}
}
