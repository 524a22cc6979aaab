package cameras

import (
	"context"
	"fmt"
	"math"
	"time"

	"edgecam/internal/config"
	"edgecam/web"
)

// What a trial must reach beside the age.
const (
	leastAnalysed = 0.99 // of all frames that were asked for
	leastOfOne    = 0.90 // of one camera's: a trial is short, and a frame at its edge is some percent
)

const (
	// mostCalm bounds the wait for the end of the start.
	mostCalm = 20 * time.Second
	// draining is the part of its age that a queue with room loses in a moment.
	draining = 0.9
)

// comeUp bounds the time until all cameras are live: connecting, and decoders
// that are set up one after another.
func comeUp(cameras int) time.Duration {
	return 30*time.Second + time.Duration(cameras)*150*time.Millisecond
}

// trial measures n cameras.
func (b *Bench) trial(ctx context.Context, n int) (Trial, error) {
	b.o.Progress(fmt.Sprintf("%d cameras: starting", n))
	t := Trial{Cameras: n, Dropped: map[string]uint64{}}
	if err := b.start(ctx, &t, b.o.Config(n)); err != nil || t.Fails != "" {
		return t, err
	}
	b.calm(ctx)
	if err := b.measure(ctx, &t, nil); err != nil {
		return t, err
	}
	t.Fails = b.judge(&t)
	verdict := "meets the bounds"
	if t.Fails != "" {
		verdict = t.Fails
	}
	b.o.Progress(fmt.Sprintf("%d cameras: %.1f frames/s analysed, age p95 %.1f ms: %s", n, t.AnalysedFPS, t.Stages[published].P95, verdict))
	return t, nil
}

// start has the pipeline run the cameras of a trial, which fails where they do not all
// come up.
func (b *Bench) start(ctx context.Context, t *Trial, cfg *config.Config) error {
	began := time.Now()
	if _, err := b.o.Pipeline.Reload(cfg); err != nil {
		return err
	}
	waiting, err := b.warmUp(ctx, t.Cameras)
	t.ComeUpSeconds = time.Since(began).Seconds()
	if err != nil {
		return err
	}
	if waiting != "" {
		t.Fails = waiting
		b.o.Progress(fmt.Sprintf("%d cameras: %s", t.Cameras, t.Fails))
	}
	return nil
}

// warmUp waits until n cameras are live; the text says which are not.
func (b *Bench) warmUp(ctx context.Context, n int) (waiting string, err error) {
	for end := time.Now().Add(comeUp(n)); ; {
		live := 0
		for _, c := range b.o.Pipeline.Cameras() {
			if c.State == "live" {
				live++
			} else {
				waiting = fmt.Sprintf("%s is %s: %s", c.ID, c.State, c.Reason)
			}
		}
		switch {
		case live >= n:
			return "", nil
		case time.Now().After(end):
			return fmt.Sprintf("only %d of %d cameras came up; %s", live, n, waiting), nil
		}
		if sleep(ctx, b.o.every/4); ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}

// calm waits until the start is over: its burst of first frames fills the queues,
// which drain where there is room, and may have the governor reduce rates, which it
// takes back where it was nothing else.
func (b *Bench) calm(ctx context.Context) {
	last := math.Inf(1)
	for end := time.Now().Add(mostCalm); ; {
		for i := range b.stages {
			b.stages[i].reset()
		}
		sleep(ctx, b.o.Settle)
		if ctx.Err() != nil || time.Now().After(end) {
			return
		}
		age := b.stages[published].percentiles().P95
		reducing := b.o.Pipeline.System().Governor.Reducing
		if !reducing && (age <= ms(b.o.P95) || age > draining*last) {
			return
		}
		last = age
	}
}

// measure fills in a trial, and has w, if there is one, look on.
func (b *Bench) measure(ctx context.Context, t *Trial, w *watch) error {
	before := b.o.Pipeline.Cameras()
	for i := range b.stages {
		b.stages[i].reset()
	}
	cpu, simulator, began := processCPU("self"), b.simulatorCPU(), time.Now()
	cards := newCardMeters(b.o.Cards)
	b.cards.Store(&cards.counts)
	lost := b.startLoss(ctx)
	w.look(before, &b.o)
	unwell := map[string]bool{}
	for end := began.Add(b.o.Duration); time.Now().Before(end) || lost.goesOn(end); {
		if sleep(ctx, min(b.o.every, max(time.Until(end), b.o.every/4))); ctx.Err() != nil {
			return ctx.Err()
		}
		cards.look(b.o.Pipeline.System().Platform.GPUs)
		now := b.o.Pipeline.Cameras()
		for _, c := range now {
			if c.State != "live" {
				unwell[c.ID] = true
			}
		}
		w.look(now, &b.o)
	}
	took := time.Since(began).Seconds()
	t.Seconds = took
	t.Cores = (processCPU("self") - cpu).Seconds() / took
	t.SimulatorCores = (b.simulatorCPU() - simulator).Seconds() / took
	for i, name := range stageNames() {
		t.Stages = append(t.Stages, Stage{Name: name, Percentiles: b.stages[i].percentiles()})
	}
	after := b.o.Pipeline.Cameras()
	t.count(before, after, b.o)
	w.end(before, after, took)
	t.Stalls += len(unwell)
	t.Cards, t.Apart = cards.end(b.o.Pipeline.System().Platform.GPUs, took)
	t.Nodes = nodesOf("/proc/self")
	if err := lost.end(t, took); err != nil {
		return err
	}
	system := b.o.Pipeline.System()
	t.memory(system.Memory)
	t.Run, t.BatchMean = system.Inference.RunMS, system.Inference.BatchMean
	if g := system.Governor; g.Reducing {
		t.Governor = &Governor{Reason: g.Reason, AskedFPS: g.AskedFPS, AllowedFPS: g.AllowedFPS, Cameras: g.Cameras}
	}
	return nil
}

func (b *Bench) simulatorCPU() time.Duration {
	if b.o.SimulatorCPU == nil {
		return 0
	}
	return b.o.SimulatorCPU()
}

// count fills in what came of the frames between two looks at the cameras.
func (t *Trial) count(before, after []web.Camera, o Options) {
	old := map[string]web.Camera{}
	for _, c := range before {
		old[c.ID] = c
	}
	for _, c := range after {
		was := old[c.ID]
		decoded, analysed := float64(since(was.Frames, c.Frames)), float64(since(was.Inferred, c.Inferred))
		t.DecodedFPS += decoded / t.Seconds
		t.AnalysedFPS += analysed / t.Seconds
		asked := decoded
		if o.SourceFPS > 0 {
			asked = o.SourceFPS * t.Seconds
		}
		if o.DetectFPS > 0 {
			asked = min(asked, o.DetectFPS*t.Seconds)
		}
		t.AskedFPS += asked / t.Seconds
		dropped := map[string]uint64{}
		for reason, n := range c.Dropped {
			if n = since(was.Dropped[reason], n); n > 0 {
				dropped[reason] = n
				t.Dropped[reason] += n
			}
		}
		if fps := analysed / t.Seconds; t.Slowest.Camera == "" || fps < t.Slowest.FPS {
			t.Slowest = Slowest{
				Camera: c.ID, FPS: fps, Share: share(analysed, asked), DecodedFPS: decoded / t.Seconds, Dropped: dropped,
			}
		}
		t.Stalls += int(since(was.Attempts, c.Attempts))
	}
	t.AnalysedShare = share(t.AnalysedFPS, t.AskedFPS)
	if t.Cores > 0 {
		t.PerCPUSecond = t.AnalysedFPS / t.Cores
	}
	t.CPUPercentOfOne = t.Cores / float64(max(t.Cameras, 1)) * 100
}

// since is what a counter counted; a camera that moved to another card has counted
// from zero again.
func since(was, is uint64) uint64 {
	if is < was {
		return is
	}
	return is - was
}

// share is a of b, at most 1: a trial may end just behind a frame.
func share(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return min(a/b, 1)
}

// judge says in words which bound a trial misses, "" = none.
func (b *Bench) judge(t *Trial) string {
	p95 := t.Stages[published].P95
	switch {
	case t.Loss != nil:
		return t.Loss.fails()
	case t.Stalls > 0:
		return fmt.Sprintf("%d cameras stalled or had to be called again", t.Stalls)
	case t.AnalysedShare < leastAnalysed && t.Governor != nil:
		return fmt.Sprintf("only %.1f %% of the frames were analysed: rates were lowered, %s", t.AnalysedShare*100, t.Governor.Reason)
	case t.AnalysedShare < leastAnalysed:
		return fmt.Sprintf("only %.1f %% of the frames were analysed", t.AnalysedShare*100)
	case t.Slowest.Share < leastOfOne:
		return fmt.Sprintf("camera %s had only %.1f frames/s analysed, of %.1f decoded; not analysed: %s",
			t.Slowest.Camera, t.Slowest.FPS, t.Slowest.DecodedFPS, drops(t.Slowest.Dropped))
	case p95 > ms(b.o.P95):
		return fmt.Sprintf("the age of 5 %% of the frames is over %s", b.o.P95)
	}
	return ""
}
