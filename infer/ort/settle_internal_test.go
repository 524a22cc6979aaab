package ort

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"edgecam/infer/model/fixture"
	"edgecam/platform/cuda"
)

// runs queues n batches of a size, the sides in turn.
func (r *rig) runs(e *DeviceEngine, batch, n int) {
	r.t.Helper()
	err := r.dev.Do(context.Background(), "run", func(c *cuda.Context) error {
		for i := range n {
			if err := e.Run(c, i%Sides, batch); err != nil {
				return err
			}
		}
		return c.Wait(e.Stream())
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// calls counts what the stand-in noted.
func (r *rig) calls(call string) int {
	n := 0
	for line := range strings.Lines(r.notes()) {
		if line == call+"\n" {
			n++
		}
	}
	return n
}

// TestSettlesWhileServing bounds what the runs of each session leave behind,
// whichever serves a batch size. The end of every test of a rig wants no session
// to be released that was not settled.
func TestSettlesWhileServing(t *testing.T) {
	const runs = 600
	for provider, sessions := range map[string]int{"cuda": 2, "tensorrt": 1} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t)
			if provider == "tensorrt" {
				r.tensorRT()
			}
			r.opts.Model, r.opts.Provider, r.opts.MaxBatch = fixture.NewPictureStub().File(t), provider, 2
			e := r.start()
			if i := r.settle(e); i.Provider != provider {
				t.Fatalf("%s serves", i.Provider)
			}
			r.clear()
			for batch := 1; batch <= 2; batch++ {
				r.runs(e, batch, runs/2)
				r.runs(e, batch, runs/2)
			}
			want := sessions * (runs * 2 / sessions / settleEvery)
			if settled := r.calls("settle " + provider); settled != want || r.calls("run "+provider) != 2*runs-want {
				t.Errorf("%d runs settle and %d do not, want %d to settle", settled, r.calls("run "+provider), want)
			}
		})
	}
}

// TestSettlesBeforeRelease wants the sessions that have served to be settled when
// they go, at a swap by a run before the first one of those that follow, and the
// others to go as they are.
func TestSettlesBeforeRelease(t *testing.T) {
	t.Run("close", func(t *testing.T) {
		r := newRig(t)
		r.opts.Model, r.opts.Provider = fixture.NewPictureStub().File(t), "cuda"
		for range 2 { // as a model is loaded again
			e := r.start()
			r.settle(e)
			r.runs(e, 1, 3)
			r.runs(e, 4, 2)
			r.clear()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if got, want := r.notes(), strings.Repeat("settle cuda\n", 2)+strings.Repeat("release cuda\n", 3); !sameLines(got, want) {
				t.Errorf("at the end:\n%s", got)
			}
		}
	})
	t.Run("swap", func(t *testing.T) {
		r := tensorRTRig(t)
		r.blockBuild(1)
		e := r.start()
		r.awaitBuild()
		r.runs(e, 1, 3)
		r.clear()
		r.blockBuild(0)
		if i := r.settle(e); i.Provider != "tensorrt" || r.calls("settle cuda") != 1 || r.calls("run tensorrt") != 0 {
			t.Errorf("%s serves after\n%s", i.Provider, r.notes())
		}
		r.runs(e, 1, 3)
	})
	for batch := 1; batch <= 2; batch++ {
		t.Run(fmt.Sprintf("cannot be settled, batch of %d", batch), func(t *testing.T) {
			r := newRig(t)
			r.opts.Model, r.opts.Provider, r.opts.MaxBatch = fixture.NewPictureStub().File(t), "cuda", 2
			e, err := NewDevice(t.Context(), r.dev, r.opts)
			if err != nil {
				t.Fatal(err)
			}
			r.settle(e)
			r.runs(e, batch, 3)
			r.clear()
			r.failORT("run", "CUDA failure 700: an illegal memory access was encountered")
			if err := e.Close(); err == nil || !strings.Contains(err.Error(), "settle session of cuda: ") {
				t.Errorf("error %v", err)
			}
			if n := r.calls("release cuda"); n != 1 { // that of the other size
				t.Errorf("%d sessions released, want 1", n)
			}
		})
	}
}

func sameLines(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.Lines(a)), slices.Sorted(strings.Lines(b)))
}

// TestSettlesNoReplays captures graphs, for which the stand-in has no more room
// than earlier runs have made, and wants no run afterwards to give back what the
// graphs read. Where they do not serve it is given back as always.
func TestSettlesNoReplays(t *testing.T) {
	start := func(t *testing.T) (*rig, *DeviceEngine) {
		t.Helper()
		r := newRig(t)
		r.opts.Model, r.opts.Provider, r.opts.NoGraphs, r.opts.MaxBatch = fixture.NewPictureStub().File(t), "cuda", false, 2
		r.slowPlain(30)
		e := r.start()
		if i := r.settle(e); !slices.Equal(i.Graphs, []int{1, 2}) {
			t.Fatalf("graphs %v, none because %q", i.Graphs, i.NoGraphs)
		}
		r.slowPlain(0)
		return r, e
	}
	t.Run("replayed", func(t *testing.T) {
		r, e := start(t)
		r.runs(e, 1, 600)
		r.runs(e, 2, 600)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := r.calls("settled after a capture"); n != 0 || r.calls("replay cuda") < 1200 {
			t.Errorf("%d runs give back what %d replays read", n, r.calls("replay cuda"))
		}
	})
	t.Run("not used", func(t *testing.T) {
		r, e := start(t)
		err := r.dev.Do(t.Context(), "serve without graphs", func(*cuda.Context) error {
			clear(e.active.replay)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.clear()
		r.runs(e, 1, 600)
		r.runs(e, 2, 600)
		if n := r.calls("settled after a capture"); n != 4 {
			t.Errorf("%d runs settle, want 4", n)
		}
	})
}
