package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/model/fixture"
	"edgecam/infer/ort"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// unhurried is a limit of the device's calls that no test runs into; hurried one
// for tests that let a call hang.
const (
	unhurried = time.Minute
	hurried   = 1500 * time.Millisecond
)

// stand is a GPU of stand-ins: everything but the card is real.
type stand struct {
	*testkit.Card

	options  GPUOptions
	warnings *testkit.Journal
}

// newStand has a model that costs nothing, for tests of what is around it: its
// answer hardly depends on the picture.
func newStand(t *testing.T, batch int) *stand {
	t.Helper()
	b := newBuiltinStand(t, batch)
	b.options.Engine.Model, b.options.Engine.Precision = fixture.NewPictureStub().File(t), ""
	return b
}

// newBuiltinStand has the built-in model, whose answers tell pictures apart.
func newBuiltinStand(t *testing.T, batch int) *stand {
	t.Helper()
	b := &stand{Card: testkit.NewCard(t), warnings: &testkit.Journal{}}
	b.options = GPUOptions{
		Driver: cuda.New(cuda.Options{Library: b.Driver}),
		Card:   platform.GPU{Name: "stand-in", CanMapHost: true, HostRegisterSupported: true, NUMANode: -1},
		Engine: ort.DeviceOptions{Library: b.ONNXRuntime, Provider: "cuda", Precision: "fp32", MaxBatch: batch, Driver: "550", NoGraphs: true},
		Memory: "mapped", CallTimeout: unhurried,
		Logger: slog.New(slog.NewTextHandler(b.warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	return b
}

// open takes the card into use; it is closed when the test ends.
func (b *stand) open(t *testing.T) *GPU {
	t.Helper()
	g, err := OpenGPU(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Unblock()
		g.Close()
	})
	return g
}

// clip gives pictures of the built-in clip as a camera's decoder does: n of
// them, step apart. They lie in a pool that g sees; nil = no GPU.
func clip(t *testing.T, g *GPU, n, step int) []*framepool.Frame {
	t.Helper()
	data, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	o := decode.Options{
		Camera: "clip", Info: capture.StreamInfo{Codec: data.Codec, ParameterSets: data.ParameterSets(), ClockRate: 90000},
		Library: codecs, Node: -1, ReaderSlots: n + 1, Logger: slog.New(slog.DiscardHandler),
	}
	g.serve(&o)
	d, err := decode.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() // the frames keep their pool
	var frames []*framepool.Frame
	for i, seen := 0, 0; len(frames) < n; i++ {
		s, now := data.Samples[i], time.Now()
		au := capture.AccessUnit{NALUs: s.NALUs, PTS: s.PTS, Received: now, CapturedAt: now, RandomAccess: s.RandomAccess}
		err := d.Decode(&au, func(f *framepool.Frame) {
			if seen++; len(frames) < n && (seen-1)%step == 0 {
				frames = append(frames, f)
				return
			}
			f.Release()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return frames
}

func release(frames []*framepool.Frame) {
	for _, f := range frames {
		f.Release()
	}
}

// answer is what a runner makes of frames.
type answer struct {
	found      [][]infer.Detection
	transforms []preprocess.Transform
}

func runBatch(r runner, frames []*framepool.Frame, threshold float32) (answer, error) {
	b := batchOf(frames)
	_, err := r.begin(b, func(int) float32 { return threshold })
	if err == nil {
		_, err = r.finish(b)
	}
	return answer{b.detections, b.transforms}, err
}

func batchOf(frames []*framepool.Frame) *batch {
	b := newBatch(len(frames))
	for _, f := range frames {
		b.add(job{frame: f})
	}
	return b
}

// onCPU is the answer of the path without a GPU, frame by frame, with the built-in
// model to what clip gives.
func onCPU(t *testing.T, n, step int, threshold float32) answer {
	t.Helper()
	key := [3]float32{float32(n), float32(step), threshold}
	if a, ok := answersOnCPU.Load(key); ok {
		return a.(answer)
	}
	frames := clip(t, nil, n, step)
	defer release(frames)
	a := runOnCPU(t, frames, threshold)
	answersOnCPU.Store(key, a)
	return a
}

var answersOnCPU sync.Map //nolint:gochecknoglobals // several tests ask for the same

func runOnCPU(t *testing.T, frames []*framepool.Frame, threshold float32) answer {
	t.Helper()
	engine, err := ort.New(ort.Options{Library: testkit.ONNXRuntime(t), Precision: "fp32", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := newCPURunner(t.Context(), engine, decode.NewQueue(1, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var all answer
	for i := range frames {
		a, err := runBatch(r, frames[i:i+1], threshold)
		if err != nil {
			t.Fatal(err)
		}
		all.found, all.transforms = append(all.found, a.found[0]), append(all.transforms, a.transforms[0])
	}
	return all
}

const (
	gpuThreshold  = 0.4
	leastOverlap  = 0.98
	mostScoreDiff = 0.02
)

// match asks for every object of a, but those near the threshold, its like in b.
func match(t *testing.T, what string, a, b []infer.Detection) (compared int) {
	t.Helper()
	for i := range a {
		if a[i].Score < gpuThreshold+mostScoreDiff {
			continue
		}
		compared++
		like := false
		for k := range b {
			d := a[i].Score - b[k].Score
			like = like || a[i].Class == b[k].Class && infer.IoU(&a[i], &b[k]) >= leastOverlap && d <= mostScoreDiff && d >= -mostScoreDiff
		}
		if !like {
			t.Errorf("%s: %+v has no like in %+v", what, a[i], b)
		}
	}
	return compared
}

// allBack fails the test where handles are left beyond those that it knows of.
func allBack(t *testing.T, before int64, when string) {
	t.Helper()
	if n := framepool.Live(); n != before {
		t.Errorf("%s: %d frame handles, want %d", when, n, before)
	}
}

// The card finds what the processor finds, whatever the way of the pictures and
// the size of the batch, and keeps none of them.
func TestGPUFindsWhatTheProcessorFinds(t *testing.T) {
	for _, memory := range []string{"mapped", "staged", "heap", "auto"} {
		t.Run(memory, func(t *testing.T) {
			b := newBuiltinStand(t, 3)
			b.options.Memory = memory
			g := b.open(t)
			start := framepool.Live()
			frames := clip(t, g, 6, 15)
			if f := frames[0]; memory != "heap" && f.Memory() != framepool.MemoryPinned {
				t.Fatalf("pictures lie in %v", f.Memory())
			}
			want := onCPU(t, 6, 15, gpuThreshold)
			r := newGPURunner(context.WithoutCancel(t.Context()), g)
			objects := 0
			for at, n := range map[int]int{0: 1, 1: 2, 3: 3} {
				held := framepool.Live()
				got, err := runBatch(r, frames[at:at+n], gpuThreshold)
				if err != nil {
					t.Fatal(err)
				}
				allBack(t, held, "after a batch")
				for i := range n {
					if got.transforms[i] != want.transforms[at+i] {
						t.Errorf("picture %d: place %+v, want %+v", at+i, got.transforms[i], want.transforms[at+i])
					}
					objects += match(t, "found by the processor", want.found[at+i], got.found[i])
					match(t, "found by the card", got.found[i], want.found[at+i])
				}
			}
			if objects < 12 {
				t.Errorf("%d objects were compared", objects)
			}
			s := g.feed.Stats()
			if memory == "mapped" && (s.InPlace != 6 || s.CopiedBytes != 0) || memory == "staged" && s.Copied != 6 || s.InPlace+s.Copied != 6 {
				t.Errorf("%+v", s)
			}
			release(frames)
			allBack(t, start, "at the end")
			r.close()
			g.Close()
			if n := b.Live(); n != 0 {
				t.Errorf("%d objects of the driver are left", n)
			}
			if text := b.warnings.String(); text != "" {
				t.Errorf("warnings:\n%s", text) // such as of a close in the wrong order
			}
		})
	}
}

// A threshold that lets more through than the filter holds gives what the
// processor gives, and no error.
func TestGPUTakesMoreCandidatesThanTheFilterHolds(t *testing.T) {
	b := newBuiltinStand(t, 2)
	g := b.open(t)
	frames := clip(t, g, 2, 30)
	defer release(frames)
	const low = 0.01
	want := onCPU(t, 2, 30, low)
	r := newGPURunner(t.Context(), g).(*gpuRunner)
	got, err := runBatch(r, frames, low)
	if err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		if r.flights[0].whole[i] == nil {
			t.Errorf("picture %d: the filter held all: nothing is tested", i)
		}
		if match(t, "found by the processor", want.found[i], got.found[i]) == 0 || len(got.found[i]) != len(want.found[i]) {
			t.Errorf("picture %d: %d objects, want %d", i, len(got.found[i]), len(want.found[i]))
		}
	}
}

// Scores that are all 0 are counted, for a network at work gives none.
func TestGPUCountsZeros(t *testing.T) {
	b := newStand(t, 2)
	g := b.open(t)
	frames := clip(t, g, 2, 1)
	defer release(frames)
	r := newGPURunner(t.Context(), g)
	for _, c := range []struct {
		scores int32
		want   uint64
	}{{testkit.ScoresZero, 2}, {testkit.ScoresZero, 4}, {testkit.ScoresGood, 0}} {
		b.Corrupt(c.scores, testkit.ScoresGood)
		if _, err := runBatch(r, frames, gpuThreshold); err != nil {
			t.Fatal(err)
		}
		if n := g.zeros.n.Load(); n != c.want {
			t.Errorf("%d pictures without a score, want %d", n, c.want)
		}
	}
}
