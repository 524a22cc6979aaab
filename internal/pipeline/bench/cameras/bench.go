package cameras

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/internal/pipeline/schedule"
	"edgecam/platform/cuda"
	"edgecam/web"
)

// Pipeline is what is measured: *pipeline.Pipeline, running.
type Pipeline interface {
	Cameras() []web.Camera
	System() web.System
	Claims() map[string]schedule.Claim
	Reload(cfg *config.Config) (config.Changes, error)
	TakeAway(uuid string) error
	OnGPU(ctx context.Context, uuid, name string, f func(*cuda.Context) error) error
}

var _ Pipeline = (*pipeline.Pipeline)(nil)

// Options of a bench.
type Options struct {
	Pipeline Pipeline
	Config   func(cameras int) *config.Config // with the first so many cameras; each time a new one

	Cameras  int           // of the first trial
	FindMax  bool          // search for the most that meet P95
	Most     int           // cameras of the largest trial of a search
	Overload float64       // times what the box can do that it is rehearsed with; 0 = no rehearsal. There must be as many cameras
	P95      time.Duration // the bound of the age at publication
	Duration time.Duration // that a trial is measured for
	Settle   time.Duration // of warm-up once all cameras are live. It defaults to 3 s
	Limit    time.Duration // after which the search begins no other trial

	SourceFPS float64 // of the cameras; 0 = not known: what is decoded counts
	DetectFPS float64 // analysed pictures a second that are asked of a camera; 0 = all

	SimulatorCPU func() time.Duration // nil where the cameras are not simulated
	Cards        []CardOptions        // that work
	Lose         *Lose                // a card that is lost on the way; not of a search
	Progress     func(line string)    // nil = none

	every    time.Duration // between looks at the cameras. It defaults to a second.
	resident func() int64  // bytes. It defaults to those of this process.
}

// Bench measures. Make it with New, before the pipeline runs: Observe wants to be
// told of every result.
type Bench struct {
	o      Options
	stages [4]spread
	cards  atomic.Pointer[[]*cardCount] // of the trial
	loss   atomic.Pointer[lossLog]      // of the trial that a card is lost in
}

// The stages of a frame, in the order of Bench.stages.
func stageNames() [4]string { return [4]string{"decoded", "batched", "inferred", "published"} }

// published is the index of the last stage.
const published = 3

// New makes a bench.
func New() *Bench { return &Bench{} }

// Observe takes a result; it is for pipeline.Observe.
func (b *Bench) Observe(r pipeline.Result) {
	for i, age := range [4]time.Duration{r.Decoded, r.Batched, r.Inferred, r.Published} {
		b.stages[i].add(age)
	}
	if cards := b.cards.Load(); cards != nil {
		countOn(*cards, r)
	}
	if log := b.loss.Load(); log != nil {
		log.add(r)
	}
}

// Run carries out the trials.
func (b *Bench) Run(ctx context.Context, o Options) (*Report, error) {
	b.o = o
	if b.o.Settle == 0 {
		b.o.Settle = 3 * time.Second
	}
	if b.o.every == 0 {
		b.o.every = time.Second
	}
	if b.o.resident == nil {
		b.o.resident = func() int64 { bytes, _ := statusOf("self"); return bytes }
	}
	if b.o.Progress == nil {
		b.o.Progress = func(string) {}
	}
	r := &Report{P95Bound: ms(o.P95)}
	switch {
	case o.FindMax:
		if err := b.findMax(ctx, r); err != nil || o.Overload == 0 {
			return r, err
		}
		return r, b.overload(ctx, r, r.Max)
	case o.Overload > 0:
		return r, b.overload(ctx, r, o.Cameras)
	default:
		t, err := b.trial(ctx, o.Cameras)
		if err != nil {
			return nil, err
		}
		r.Trials, r.Best = []Trial{t}, &t
		return r, nil
	}
}

// fine is the part of the number to which a search is exact: trials take long,
// and a machine does not repeat itself any better.
const fine = 50

// findMax doubles the number until a trial fails, and bisects, to one camera or
// one in fifty. The last number that passed is r.Best, nil where none did.
func (b *Bench) findMax(ctx context.Context, r *Report) error {
	began := time.Now()
	good, bad := 0, b.o.Most+1
	n := min(max(b.o.Cameras, 1), b.o.Most)
	for bad-good > max(1, good/fine) {
		if b.o.Limit > 0 && time.Since(began) > b.o.Limit {
			r.CutShort = fmt.Sprintf("the search was ended after %s, before %d cameras were tried", b.o.Limit, n)
			break
		}
		t, err := b.trial(ctx, n)
		if err != nil {
			return err
		}
		r.Trials = append(r.Trials, t)
		if t.Fails == "" {
			good = n
			best := t
			r.Best = &best
		} else {
			bad = n
			r.Stops = t.Fails
		}
		if n = (good + bad) / 2; bad > b.o.Most {
			n = min(max(2*good, 1), b.o.Most)
		}
	}
	r.Max = good
	if good == b.o.Most {
		r.Stops = fmt.Sprintf("there were no more than %d cameras", b.o.Most)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
