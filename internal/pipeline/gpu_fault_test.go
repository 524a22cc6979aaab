package pipeline

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
)

// Scores that cannot be are an error that says so, for the whole batch, and the
// path works again when they can.
func TestGPUUnhealthyOutputs(t *testing.T) {
	b := newStand(t, 2)
	g := b.open(t)
	start := framepool.Live()
	frames := clip(t, g, 2, 1)
	r := newGPURunner(t.Context(), g)
	b.Corrupt(testkit.ScoresNaN, testkit.ScoresGood)
	_, err := runBatch(r, frames, gpuThreshold)
	var sick *infer.UnhealthyError
	if !errors.As(err, &sick) || sick.Output != "scores" || sick.Image != 0 {
		t.Errorf("error %v", err)
	}
	allBack(t, start+2, "after bad scores")
	b.Corrupt(testkit.ScoresGood, testkit.ScoresGood)
	if a, err := runBatch(r, frames, gpuThreshold); err != nil || len(a.found[1]) == 0 {
		t.Errorf("afterwards: %v, error %v", a.found, err)
	}
	release(frames)
}

// A step that fails without harm to the card ends its batch, and the next one
// runs, whichever step it is.
func TestGPUStepFails(t *testing.T) {
	b := newStand(t, 2)
	b.options.Memory = "staged"
	g := b.open(t)
	start := framepool.Live()
	frames := clip(t, g, 2, 1)
	r := newGPURunner(t.Context(), g)
	works := func() {
		t.Helper()
		if a, err := runBatch(r, frames, gpuThreshold); err != nil || len(a.found[1]) == 0 {
			t.Fatalf("found %v, error %v", a.found, err)
		}
	}
	steps := []struct {
		call  string
		after int32
	}{
		{"cuMemAlloc_v2", 0},
		{"cuMemcpyHtoDAsync_v2", 1},
		{"cuStreamWaitEvent", 0},
		{"cuLaunchKernel", 0},
		{"cuLaunchKernel", 1},
		{"cuEventCreate", 0},
		{"cuEventRecord", 0},
		{"cuEventRecord", 1},
		{"cuEventRecord", 2},
		{"cuEventSynchronize", 0},
	}
	for _, s := range steps {
		const outOfMemory = 2
		b.FailCall(s.call, outOfMemory, s.after)
		_, err := runBatch(r, frames, gpuThreshold)
		b.FailCall("", 0, 0)
		switch {
		case cuda.Code(err) == outOfMemory:
		case err == nil && s.call == "cuEventCreate": // taken from the ones that are there
		default:
			t.Errorf("%s, call %d: error %v", s.call, s.after, err)
		}
		works()
		allBack(t, start+2, s.call)
	}
	b.FailORT("run", "no such luck")
	if _, err := runBatch(r, frames, gpuThreshold); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("error %v", err)
	}
	works()
	release(frames)
}

// A card that is lost answers every batch with the reason, keeps no frame and
// can be closed.
func TestGPULostByAnError(t *testing.T) {
	for _, call := range []string{"cuLaunchKernel", "cuEventRecord", "cuEventSynchronize", "cuEventQuery"} {
		t.Run(call, func(t *testing.T) {
			b := newStand(t, 2)
			g := b.open(t)
			start := framepool.Live()
			frames := clip(t, g, 2, 1)
			r := newGPURunner(t.Context(), g)
			if err := g.Err(); err != nil {
				t.Fatal(err)
			}
			b.FailCall(call, cuda.CodeLaunchFailed, 0)
			for range 2 {
				_, err := runBatch(r, frames, gpuThreshold)
				var lost *cuda.LostError
				if !errors.As(err, &lost) || cuda.Code(err) != cuda.CodeLaunchFailed {
					t.Fatalf("error %v", err)
				}
			}
			<-g.Lost()
			if g.Err() == nil {
				t.Error("no reason")
			}
			allBack(t, start+2, "after the loss")
			release(frames)
			allBack(t, start, "after the release")
			g.Close()
			g.Close()
		})
	}
}

// A call that hangs is given up in time. The picture that it may read stays until
// it comes back, and coming back it finds all that it was given.
func TestGPUHangs(t *testing.T) {
	for _, call := range []string{"cuEventQuery", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel", "cuEventRecord", "cuEventSynchronize"} {
		t.Run(call, func(t *testing.T) {
			b := newStand(t, 2)
			b.options.Memory, b.options.CallTimeout = "staged", hurried
			g := b.open(t)
			start, threads := framepool.Live(), runtime.NumGoroutine()
			frames := clip(t, g, 2, 1)
			r := newGPURunner(t.Context(), g)
			if call == "cuEventQuery" { // before any picture is touched: needs a batch under way
				b.FailCall("cuEventSynchronize", 2, 0)
				if _, err := runBatch(r, frames, gpuThreshold); err == nil {
					t.Fatal("no error")
				}
			}
			b.Block(call)
			began := time.Now()
			_, err := runBatch(r, frames, gpuThreshold)
			took := time.Since(began)
			var late *cuda.TimeoutError
			if !errors.As(err, &late) || late.Name != "infer batch" || took > hurried+2*time.Second {
				t.Fatalf("after %v: error %v", took, err)
			}
			release(frames) // as a worker does; those of the visit are its own
			if n := framepool.Live() - start; n != 2 {
				t.Errorf("%d frames are held while the call hangs", n)
			}
			if _, err := runBatch(r, nil, gpuThreshold); !errors.As(err, &late) {
				t.Errorf("the next batch: %v", err)
			}
			began = time.Now()
			g.Close()
			if took := time.Since(began); took > time.Second {
				t.Errorf("close took %v", took)
			}
			b.Unblock()
			soon(t, "the thread to end with its frames", func() bool { return framepool.Live() == start && runtime.NumGoroutine() < threads })
		})
	}
}

// soon waits for what other goroutines bring about.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited for %s", what)
		}
	}
}

// A batch is finished although whoever wanted it is gone, since its frames are
// with the card.
func TestGPUBatchOutlivesItsContext(t *testing.T) {
	b := newStand(t, 1)
	g := b.open(t)
	start := framepool.Live()
	frames := clip(t, g, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	r := newGPURunner(ctx, g)
	g.how.learn(ctx, frames)
	b.Block("cuEventSynchronize")
	done := make(chan error, 1)
	go func() {
		_, err := runBatch(r, frames, gpuThreshold)
		done <- err
	}()
	b.AwaitBlock()
	cancel()
	b.Unblock()
	if err := <-done; err != nil {
		t.Errorf("under way: %v", err)
	}
	if _, err := runBatch(r, frames, gpuThreshold); !errors.Is(err, context.Canceled) {
		t.Errorf("the next one: %v", err)
	}
	release(frames)
	allBack(t, start, "at the end")
}

// What cannot be opened holds nothing.
func TestGPUOpenFails(t *testing.T) {
	count := func(b *stand, call string) int32 {
		before := b.Calls(call)
		g := b.open(t)
		g.Close()
		return b.Calls(call) - before
	}
	for _, call := range []string{"cuMemAlloc_v2", "cuMemHostAlloc", "cuModuleLoadDataEx", "cuStreamCreate", "cuEventCreate", "cuModuleGetFunction"} {
		t.Run(call, func(t *testing.T) {
			b := newStand(t, 1)
			n := count(b, call)
			if n == 0 {
				t.Fatal("it is not called")
			}
			before := framepool.Live()
			for _, after := range slices.Compact([]int32{0, n / 2, n - 1}) {
				b.FailCall(call, 2, after)
				g, err := OpenGPU(t.Context(), b.options)
				b.FailCall("", 0, 0)
				if err == nil {
					t.Errorf("call %d of %d: opened", after, n)
					g.Close()
				} else if cuda.Code(err) != 2 {
					t.Errorf("call %d of %d: error %v", after, n, err)
				}
				if left := b.Live(); left != 0 {
					t.Errorf("call %d of %d: %d objects of the driver are left", after, n, left)
				}
			}
			allBack(t, before, "at the end")
		})
	}
	t.Run("a call that hangs", func(t *testing.T) {
		b := newStand(t, 1)
		b.options.CallTimeout = hurried
		threads := runtime.NumGoroutine()
		b.Block("cuDevicePrimaryCtxRetain")
		var lost *cuda.LostError
		if _, err := OpenGPU(t.Context(), b.options); !errors.As(err, &lost) {
			t.Errorf("error %v", err)
		}
		b.Unblock()
		soon(t, "the thread to end", func() bool { return runtime.NumGoroutine() <= threads })
	})
	t.Run("told to stop", func(t *testing.T) {
		b := newStand(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := OpenGPU(ctx, b.options); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if left := b.Live(); left != 0 {
			t.Errorf("%d objects of the driver are left", left)
		}
	})
}
