// Package bench measures the stages of the pipeline on a clip, as fast as they
// go, on one goroutine: no camera, no network, no scheduler, so that a figure
// belongs to the stage that it stands beside.
package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/track"
	"edgecam/internal/sim"
	"edgecam/platform/avcodec"
	"edgecam/preprocess"
)

// Options say what is measured.
type Options struct {
	Clip   *sim.ClipData
	Frames int // pictures to take through the stages; the clip loops
	Engine infer.Engine
	// Split gives the time that the engine has spent so far in the model's own
	// run, and in finding candidates and NMS after it.
	Split func() (model, candidates time.Duration)
	// ScoreThreshold is the score from which on a detection counts.
	ScoreThreshold float32
	Budget         *framepool.Budget
	Codecs         *avcodec.Library
	Logger         *slog.Logger
	// Progress is told now and then how many pictures are done; nil = nobody.
	Progress func(done int)
}

// warmUp is how many pictures go through before anything is counted.
const warmUp = 50 // or as many as are asked for, if that is less

// memoryMark is the picture after which memory must not grow any more.
const memoryMark = 2000

// Run takes o.Frames pictures of the clip through decoding, preprocessing, the
// engine and the tracker.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Frames < 1 {
		return nil, fmt.Errorf("bench %d frames: at least one is needed", o.Frames)
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := b.play(ctx, min(warmUp, o.Frames)); err != nil {
		return nil, err
	}
	return b.measure(ctx)
}

// bench is one run.
type bench struct {
	o       Options
	decoder *decode.Decoder
	prep    *preprocess.CPU
	slot    infer.Slot
	tracker *track.Tracker
	tracked []track.Object

	clocks  clocks
	player  clipPlayer
	left    int // pictures still to take
	objects int
	damaged int // coded pictures that the decoder refused
	idle    int // coded pictures since the last that came out
	// engine time before the counted pictures
	candidates time.Duration
	out        [][]infer.Detection
	err        error
}

func newBench(ctx context.Context, o Options) (*bench, error) {
	slot, err := o.Engine.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire engine slot: %w", err)
	}
	d, err := decode.New(decode.Options{
		Camera: "bench", Info: capture.StreamInfo{Codec: o.Clip.Codec, ParameterSets: o.Clip.ParameterSets(), ClockRate: 90000},
		Decoder: "auto", Library: o.Codecs, Budget: o.Budget, Node: -1, Lock: true, HugePages: true, Logger: o.Logger,
	})
	if err != nil {
		slot.Release()
		return nil, err
	}
	return &bench{
		o: o, decoder: d, player: clipPlayer{clip: o.Clip}, slot: slot, prep: preprocess.NewCPU(o.Engine.Info().Input),
		tracker: track.New(track.Options{}), out: make([][]infer.Detection, 1),
	}, nil
}

func (b *bench) close() {
	b.decoder.Close()
	b.slot.Release()
}

// play takes n pictures through the stages.
func (b *bench) play(ctx context.Context, n int) error {
	b.left = n
	for b.left > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		au := b.player.unit()
		start := time.Now()
		before := b.clocks.after
		if err := b.damage(b.decoder.Decode(au, b.frame)); err != nil {
			return err
		}
		// What the pictures took inside of Decode is not decoding.
		b.clocks.decode += time.Since(start) - (b.clocks.after - before)
		if b.err != nil {
			return b.err
		}
	}
	return nil
}

// damage counts a coded picture that the decoder refused. A format that is not
// taken, and a clip that gives no picture in two loops, end the run.
func (b *bench) damage(err error) error {
	b.idle++
	if err != nil {
		b.damaged++
	}
	var unsupported *capture.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return fmt.Errorf("decode picture: %w", err)
	case b.idle > 2*len(b.o.Clip.Samples):
		return errors.New("decode picture: the clip gave none in two loops")
	}
	return nil
}

// frame is the decoder's emit. It consumes f.
func (b *bench) frame(f *framepool.Frame) {
	defer f.Release()
	if b.left == 0 || b.err != nil {
		return
	}
	b.left--
	b.idle = 0
	start := time.Now()
	t, err := b.prep.Run(f, b.slot.Input(0))
	prepared := time.Now()
	if err == nil {
		b.out[0] = b.out[0][:0]
		err = b.slot.Run(1, b.threshold, b.out)
	}
	if err != nil {
		b.err = err
		return
	}
	inferred := time.Now()
	for i, d := range b.out[0] {
		b.out[0][i] = t.Inverse(d)
	}
	b.tracked = b.tracker.Update(b.tracked[:0], f.Meta().Received, b.out[0])
	b.objects += len(b.tracked)
	end := time.Now()
	b.clocks.add(start, prepared, inferred, end)
}

func (b *bench) threshold(int) float32 { return b.o.ScoreThreshold }

// measure plays the counted pictures.
func (b *bench) measure(ctx context.Context) (*Report, error) {
	b.clocks, b.objects, b.damaged = clocks{}, 0, 0
	_, b.candidates = b.o.Split()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	r := &Report{Frames: b.o.Frames}
	cpu, err := cpuSeconds()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	for done := 0; done < b.o.Frames; {
		n := min(500, b.o.Frames-done)
		if err := b.play(ctx, n); err != nil {
			return nil, err
		}
		done += n
		if done == memoryMark {
			r.RSSEarly = residentBytes()
		}
		if b.o.Progress != nil {
			b.o.Progress(done)
		}
	}
	r.Seconds = time.Since(start).Seconds()
	cpuEnd, err := cpuSeconds()
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	r.CPUSeconds = cpuEnd - cpu
	r.RSSEnd = residentBytes()
	r.AllocsPerFrame = float64(after.Mallocs-before.Mallocs) / float64(b.o.Frames)
	r.GoroutinesGrown = runtime.NumGoroutine() - goroutines
	r.fill(b)
	return r, nil
}
