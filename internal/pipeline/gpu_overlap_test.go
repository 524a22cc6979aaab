package pipeline

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
)

func lowThreshold(int) float32 { return gpuThreshold }

// underWay begins a batch of each frame.
func underWay(t *testing.T, r runner, frames []*framepool.Frame) []*batch {
	t.Helper()
	var all []*batch
	for i := range frames {
		b := batchOf(frames[i : i+1])
		if _, err := r.begin(b, lowThreshold); err != nil {
			t.Fatalf("begin %d: %v", i, err)
		}
		all = append(all, b)
	}
	return all
}

// Two batches are under way at once, each with its own answer, in the order in
// which they were begun; a card that replays CUDA graphs is no different.
func TestGPUTwoBatchesUnderWay(t *testing.T) {
	for _, c := range []struct {
		name   string
		graphs bool
		memory string
	}{{"plain", false, "mapped"}, {"copied first", false, "staged"}, {"as graphs", true, "mapped"}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuiltinStand(t, 2)
			b.options.Memory, b.options.Engine.NoGraphs = c.memory, !c.graphs
			g := openAs(t, b, c.graphs)
			start := framepool.Live()
			frames := clip(t, g, 6, 15)
			want := onCPU(t, 6, 15, gpuThreshold)
			r := newGPURunner(t.Context(), g)
			if r.depth() != 2 {
				t.Fatalf("depth %d", r.depth())
			}
			flying := underWay(t, r, frames[:2])
			if _, err := r.begin(batchOf(frames[2:3]), lowThreshold); err == nil {
				t.Error("a third was begun")
			}
			if _, err := r.finish(flying[1]); !errors.Is(err, errNotBegun) {
				t.Errorf("the younger first: %v", err)
			}
			compared := 0
			for i := range frames {
				if _, err := r.finish(flying[0]); err != nil {
					t.Fatal(err)
				}
				compared += match(t, "found by the processor", want.found[i], flying[0].detections[0])
				match(t, "found by the card", flying[0].detections[0], want.found[i])
				flying = flying[1:]
				if next := i + 2; next < len(frames) {
					flying = append(flying, underWay(t, r, frames[next:next+1])...)
				}
			}
			if compared < 12 {
				t.Errorf("%d objects were compared", compared)
			}
			if _, err := r.finish(batchOf(frames[:1])); !errors.Is(err, errNotBegun) {
				t.Errorf("none is under way: %v", err)
			}
			release(frames)
			allBack(t, start, "at the end")
		})
	}
}

// openAs takes the card into use, with every batch size replayed as a CUDA graph or
// with none. Graphs are taken where they gain, for which plain runs are slowed down
// until they do on a busy machine too.
func openAs(t *testing.T, b *stand, graphs bool) *GPU {
	t.Helper()
	if !graphs {
		return b.open(t)
	}
	defer b.SlowPlain(0)
	for slow := int32(100); ; slow *= 4 {
		b.SlowPlain(slow)
		g := b.open(t)
		if i := g.Info(); len(i.Graphs) == 2 {
			return g
		} else if slow > 5000 {
			t.Fatalf("graphs of %v, notes %q", i.Graphs, i.ProbeNotes)
		}
		g.Close()
	}
}

// Scores that cannot be spoil the batch that they are of, not the one beside it.
func TestGPUSuspectBatchAlone(t *testing.T) {
	b := newStand(t, 1)
	g := b.open(t)
	frames := clip(t, g, 2, 15)
	defer release(frames)
	r := newGPURunner(t.Context(), g)
	b.Corrupt(testkit.ScoresNaN, testkit.ScoresGood)
	bad := underWay(t, r, frames[:1])[0]
	b.Corrupt(testkit.ScoresGood, testkit.ScoresGood)
	good := underWay(t, r, frames[1:])[0]
	var sick *infer.UnhealthyError
	if _, err := r.finish(bad); !errors.As(err, &sick) {
		t.Errorf("the bad one: %v", err)
	}
	if _, err := r.finish(good); err != nil || len(good.detections[0]) == 0 {
		t.Errorf("the good one: %v, error %v", good.detections, err)
	}
}

// A step that fails ends its own batch; what flies beside it, and what follows,
// are whole.
func TestGPUStepFailsBesideABatch(t *testing.T) {
	b := newStand(t, 1)
	b.options.Memory = "staged"
	g := b.open(t)
	start := framepool.Live()
	frames := clip(t, g, 3, 15)
	r := newGPURunner(t.Context(), g)
	const outOfMemory = 2
	found := func(what string, flying *batch) {
		t.Helper()
		if _, err := r.finish(flying); err != nil || len(flying.detections[0]) == 0 {
			t.Fatalf("%s: %v, error %v", what, flying.detections, err)
		}
	}
	for _, call := range []string{"cuMemcpyHtoDAsync_v2", "cuStreamWaitEvent", "cuLaunchKernel", "cuEventRecord"} {
		// How often a batch makes the call depends on how its picture lies in memory.
		first := underWay(t, r, frames[:1])[0]
		before := b.Calls(call)
		second := underWay(t, r, frames[1:2])[0]
		made := b.Calls(call) - before
		found("whole", first)
		found("whole", second)
		if made == 0 {
			t.Fatalf("no batch calls %s", call)
		}
		for _, after := range slices.Compact([]int32{0, made - 1}) {
			first := underWay(t, r, frames[:1])[0]
			b.FailCall(call, outOfMemory, after)
			_, err := r.begin(batchOf(frames[1:2]), lowThreshold)
			b.FailCall("", 0, 0)
			if cuda.Code(err) != outOfMemory {
				t.Fatalf("%s, call %d of %d: error %v", call, after, made, err)
			}
			found(call+": the one beside", first)
			found(call+": the one after", underWay(t, r, frames[2:])[0])
		}
	}
	flying := underWay(t, r, frames[:2])
	b.FailCall("cuEventSynchronize", outOfMemory, 0)
	if _, err := r.finish(flying[0]); cuda.Code(err) != outOfMemory {
		t.Errorf("error %v", err)
	}
	found("the one beside", flying[1])
	found("the one after", underWay(t, r, frames[2:])[0])
	release(frames)
	allBack(t, start, "at the end")
}

// A card that is lost takes all batches along that are under way, gives their
// pictures back, and nothing of them is to be had.
func TestGPULostWithTwoBatches(t *testing.T) {
	for name, c := range map[string]struct {
		call   string
		code   int32
		begun  int // batches before the call fails
		finish bool
	}{
		"as the second is queued":       {"cuLaunchKernel", cuda.CodeLaunchFailed, 1, false},
		"as the first is waited for":    {"cuEventSynchronize", cuda.CodeLaunchFailed, 2, true},
		"as the pictures are looked at": {"cuEventQuery", cuda.CodeLaunchFailed, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newStand(t, 1)
			g := b.open(t)
			start := framepool.Live()
			frames := clip(t, g, 2, 15)
			r := newGPURunner(t.Context(), g)
			flying := underWay(t, r, frames[:c.begun])
			b.FailCall(c.call, c.code, 0)
			var lost *cuda.LostError
			if !c.finish {
				if _, err := r.begin(batchOf(frames[1:]), lowThreshold); !errors.As(err, &lost) {
					t.Errorf("begin: %v", err)
				}
			}
			for i, f := range flying {
				if _, err := r.finish(f); !errors.As(err, &lost) || len(f.detections[0]) != 0 {
					t.Errorf("finish %d: %v, %v", i, f.detections, err)
				}
			}
			if _, err := r.begin(batchOf(frames[:1]), lowThreshold); !errors.As(err, &lost) {
				t.Errorf("another: %v", err)
			}
			release(frames)
			allBack(t, start, "after the loss")
			g.Close()
		})
	}
}

// A call that hangs while another batch is under way: that one is given up at once
// with its pictures, those of the call stay until it comes back.
func TestGPUHangsWithTwoBatches(t *testing.T) {
	for _, finish := range []bool{false, true} {
		b := newStand(t, 1)
		b.options.CallTimeout = hurried
		g := b.open(t)
		start, threads := framepool.Live(), runtime.NumGoroutine()
		frames := clip(t, g, 2, 15)
		r := newGPURunner(t.Context(), g)
		var late *cuda.TimeoutError
		flying := underWay(t, r, frames[:1])
		if finish {
			flying = append(flying, underWay(t, r, frames[1:])...)
			b.Block("cuEventSynchronize")
		} else {
			b.Block("cuLaunchKernel")
			if _, err := r.begin(batchOf(frames[1:]), lowThreshold); !errors.As(err, &late) {
				t.Fatalf("begin: %v", err)
			}
		}
		for i, f := range slices.Clone(flying) {
			if _, err := r.finish(f); !errors.As(err, &late) || len(f.detections[0]) != 0 {
				t.Errorf("finish %d: %v, %v", i, f.detections, err)
			}
		}
		release(frames)
		if n := framepool.Live() - start; n != 1 {
			t.Errorf("%d frames are held while the call hangs", n)
		}
		g.Close()
		b.Unblock()
		soon(t, "the thread to end with its frame", func() bool { return framepool.Live() == start && runtime.NumGoroutine() < threads })
	}
}
