package ort

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/internal/testkit"
)

// engine is New with the tests' library.
func engine(tb testing.TB, opts Options) *Engine {
	tb.Helper()
	opts.Library = testkit.ONNXRuntime(tb)
	e, err := New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func acquire(tb testing.TB, e *Engine) infer.Slot {
	tb.Helper()
	s, err := e.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func fill(in []float32, v float32) {
	for i := range in {
		in[i] = v
	}
}

func half(int) float32 { return 0.5 }

func TestAutoPrecision(t *testing.T) {
	without := engine(t, Options{Concurrency: 1, fastInt8: func() (bool, string) { return false, "" }})
	info := without.Info()
	if want := []string{"int8 not tried: the CPU has no int8 dot product (avx512_vnni, avx_vnni, asimddp)"}; info.Precision != "fp32" || !slices.Equal(info.ProbeNotes, want) {
		t.Errorf("CPU without: %s, notes %q", info.Precision, info.ProbeNotes)
	}
	with := engine(t, Options{Concurrency: 1, fastInt8: func() (bool, string) { return true, "avx512_vnni" }})
	info = with.Info()
	if len(info.ProbeNotes) != 2 || info.ProbeNotes[0] != "int8 tried: the CPU has avx512_vnni" || !strings.HasSuffix(info.ProbeNotes[1], ": "+info.Precision) {
		t.Errorf("CPU with: %s, notes %q", info.Precision, info.ProbeNotes)
	}
	tests := []struct {
		int8, fp32 time.Duration
		want       bool
	}{{17, 36, true}, {90, 100, true}, {91, 100, false}, {100, 100, false}, {200, 100, false}}
	for _, tt := range tests {
		if got := faster(tt.int8*time.Millisecond, tt.fp32*time.Millisecond); got != tt.want {
			t.Errorf("int8 %d ms, fp32 %d ms: %v", tt.int8, tt.fp32, got)
		}
	}
}

func TestInfo(t *testing.T) {
	e := engine(t, Options{Precision: "int8", Concurrency: 2, MaxBatch: 16})
	i := e.Info()
	if i.Model != "builtin:nanodet-g" || i.Precision != "int8" || i.Provider != "cpu" || i.Threads != 2 || i.MaxBatch != 1 {
		t.Errorf("info %+v", i)
	}
	if i.Library != testkit.ONNXRuntime(t) || !strings.HasPrefix(i.Version, "1.") || i.ProbeMS <= 0 {
		t.Errorf("library %s, version %s, probe %v ms", i.Library, i.Version, i.ProbeMS)
	}
	want := infer.InputSpec{
		Width: 416, Height: 416, Order: infer.BGR, Pad: 114,
		Mean: [3]float32{103.53, 116.28, 123.675}, Std: [3]float32{57.375, 57.12, 58.395},
	}
	if i.Input != want || len(i.Labels) != 80 || i.Labels[0] != "person" || i.Labels[79] != "toothbrush" {
		t.Errorf("input %+v, labels %v", i.Input, i.Labels)
	}
	i.Labels[0] = "changed"
	if e.Info().Labels[0] != "person" {
		t.Error("Info hands out the engine's own labels")
	}
}

// TestUnhealthy drives the model with inputs that make its outputs impossible.
func TestUnhealthy(t *testing.T) {
	e := engine(t, Options{Model: fixture.NewStub().File(t), Concurrency: 1, MaxBatch: 4, batchCap: 4})
	s := acquire(t, e)
	defer s.Release()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := []struct {
		name   string
		values []float32 // one an image
		want   string
	}{
		{"NaN", []float32{nan}, "read output boxes of image 0: value 0 is NaN: not finite"},
		{"infinite", []float32{inf}, "read output boxes of image 0: value 0 is NaN: not finite"},
		{"too large", []float32{0.5}, "read output scores of image 0: value 0 is 1.4: not between 0 and 1"},
		{"third image", []float32{0, 0.01, 0.5, 0}, "read output scores of image 2: value 0 is 1.4: not between 0 and 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := e.Stats()
			out := make([][]infer.Detection, len(tt.values))
			for i, v := range tt.values {
				fill(s.Input(i), v)
				out[i] = []infer.Detection{{Class: 7}}
			}
			err := s.Run(len(tt.values), half, out)
			var unhealthy *infer.UnhealthyError
			if !errors.As(err, &unhealthy) || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			for i := range out {
				if len(out[i]) != 1 || out[i][0].Class != 7 {
					t.Errorf("image %d: detections %v of an unhealthy run", i, out[i])
				}
			}
			after := e.Stats()
			if after.Unhealthy != before.Unhealthy+1 || after.LastUnhealthy != tt.want || after.Runs != before.Runs+1 {
				t.Errorf("stats %+v", after)
			}
		})
	}
}

func TestZeroStreak(t *testing.T) {
	m := fixture.NewStub()
	m.Scores = [][]float32{{0, 0}, {0, 0}, {0, 0}}
	e := engine(t, Options{Model: m.File(t), Concurrency: 1})
	s := acquire(t, e)
	defer s.Release()
	for step, tt := range []struct {
		level  float32
		zero   uint64
		streak uint64
	}{{0, 1, 1}, {0, 2, 2}, {0.01, 2, 0}, {0, 3, 1}} {
		fill(s.Input(0), tt.level)
		if err := s.Run(1, half, make([][]infer.Detection, 1)); err != nil {
			t.Fatal(err)
		}
		if got := e.Stats(); got.Zero != tt.zero || got.ZeroStreak != tt.streak || got.Images != uint64(step+1) {
			t.Errorf("step %d: %+v, want %d zero, %d in a row", step, got, tt.zero, tt.streak)
		}
	}
}

// TestBatch wants of a batch what its images give alone, for every size, in
// falling and rising order.
func TestBatch(t *testing.T) {
	e := engine(t, Options{Precision: "fp32", Concurrency: 1, MaxBatch: 3, batchCap: 8})
	if got := e.Info().MaxBatch; got != 3 {
		t.Fatalf("max batch %d", got)
	}
	s := acquire(t, e)
	defer s.Release()
	low := func(int) float32 { return 0.05 }
	pictures := referenceInputs(t, e.Info().Input)
	alone := make([][]infer.Detection, 3)
	order := []int{0, 100, 0}
	for i, frame := range order {
		copy(s.Input(0), pictures[frame])
		if err := s.Run(1, low, alone[i:i+1]); err != nil {
			t.Fatal(err)
		}
		if len(alone[i]) < 5 {
			t.Fatalf("frame %d alone: %d detections", frame, len(alone[i]))
		}
	}
	for _, n := range []int{3, 2, 1, 2, 3} {
		for i := range n {
			copy(s.Input(i), pictures[order[i]])
		}
		out := make([][]infer.Detection, n)
		if err := s.Run(n, low, out); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			compare(t, alone[i], out[i], 0.999, 1e-4, 0.05)
		}
	}
	for _, n := range []int{0, 4} {
		if err := s.Run(n, low, make([][]infer.Detection, 4)); err == nil {
			t.Errorf("%d images: no error", n)
		}
	}
	if err := s.Run(2, low, make([][]infer.Detection, 1)); err == nil || err.Error() != "run 2 images: wanted 1 to 3 and as many results (1 given)" {
		t.Errorf("too few results: %v", err)
	}
}

// TestConcurrentRuns has more users than slots and wants everyone's own result.
func TestConcurrentRuns(t *testing.T) {
	m := fixture.NewStub()
	e := engine(t, Options{Model: m.File(t), Concurrency: 3})
	var wg sync.WaitGroup
	for user := range 12 {
		wg.Go(func() {
			out := make([][]infer.Detection, 1)
			for round := range 50 {
				s, err := e.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				level := float32(user)/200 + float32(round)/2000
				fill(s.Input(0), level)
				out[0] = out[0][:0]
				if err := s.Run(1, half, out); err != nil {
					t.Error(err)
				}
				s.Release()
				if len(out[0]) != 2 || math.Abs(float64(out[0][0].Score-(0.9+level))) > 1e-4 {
					t.Errorf("user %d round %d: %v, want a score of %v", user, round, out[0], 0.9+level)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := e.Stats(); got.Runs != 600 || got.Images != 600 || got.Infer <= 0 || got.Decode <= 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	e := engine(t, Options{Model: fixture.NewStub().File(t), Concurrency: 1})
	s := acquire(t, e)
	defer s.Release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := e.Acquire(ctx)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || err.Error() != "acquire slot: context canceled" {
		t.Errorf("error %v", err)
	}
}

// TestCloseWaitsForSlots closes while one slot is held and another is waited for.
func TestCloseWaitsForSlots(t *testing.T) {
	e := engine(t, Options{Model: fixture.NewStub().File(t), Concurrency: 1})
	s := acquire(t, e)
	waiter := make(chan error)
	go func() {
		_, err := e.Acquire(t.Context())
		waiter <- err
	}()
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	if err := <-waiter; !errors.Is(err, infer.ErrClosed) {
		t.Errorf("waiting Acquire: %v", err)
	}
	select {
	case <-closed:
		t.Fatal("Close returned while a slot was held")
	default:
	}
	fill(s.Input(0), 0) // still there
	if err := s.Run(1, half, make([][]infer.Detection, 1)); !errors.Is(err, infer.ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
	s.Release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := e.Acquire(t.Context()); !errors.Is(err, infer.ErrClosed) {
		t.Errorf("Acquire after Close: %v", err)
	}
}

func TestBrokenOwnershipPanics(t *testing.T) {
	e := engine(t, Options{Model: fixture.NewStub().File(t), Concurrency: 1})
	s := acquire(t, e)
	s.Release()
	for name, do := range map[string]func(){
		"ort: Release of a slot that is not acquired": s.Release,
		"ort: Run of a slot that is not acquired":     func() { _ = s.Run(1, half, make([][]infer.Detection, 1)) },
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %q", got, name)
				}
			}()
			do()
		}()
	}
}

func TestRunAllocatesLittle(t *testing.T) {
	e := engine(t, Options{Model: fixture.NewStub().File(t), Concurrency: 1})
	s := acquire(t, e)
	defer s.Release()
	fill(s.Input(0), 0)
	out := [][]infer.Detection{make([]infer.Detection, 0, 16)}
	allocs := testing.AllocsPerRun(100, func() {
		out[0] = out[0][:0]
		if err := s.Run(1, half, out); err != nil {
			t.Error(err)
		}
	})
	// The arguments of the C call are the one that escapes.
	if allocs > 2 {
		t.Errorf("%v allocations a run", allocs)
	}
}
