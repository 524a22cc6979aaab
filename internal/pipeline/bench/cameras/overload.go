package cameras

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"edgecam/internal/config"
)

// What is promised of a box that is asked for more than it can do.
const (
	// mostAged is how many times as old as at ease the frames may get.
	mostAged = 1.2
	// flatTimes and flatMore are by how much the resident memory may be more at the end
	// of a trial than at its start, and be flat: memory that is collected comes and goes.
	flatTimes, flatMore = 1.05, 16 << 20
)

// When the governor counts as settled.
const (
	// steadyFor is how long what it allows has stayed within steadyBy.
	steadyFor, steadyBy = 5 * time.Second, 0.1
	// mostSettling bounds the wait for that.
	mostSettling = 40 * time.Second
)

// priorities are those of the cameras of an overload, one after the other.
func priorities() [3]int { return [3]int{1, 2, 4} }

// Overload is what a box does that is asked for more than it can do, beside the same
// box at ease.
type Overload struct {
	Times  float64 `json:"times"`             // what it can do
	Can    int     `json:"can"`               // cameras that it can do
	Ease   *Trial  `json:"ease,omitempty"`    // half of these
	Loaded *Trial  `json:"loaded,omitempty"`  // so many times these
	Fails  string  `json:"fails,omitempty"`   // the bounds that were missed
	P95    float64 `json:"p95_times_at_ease"` // the age, overloaded

	SettledSeconds float64 `json:"settled_seconds"` // until the governor was
	Settled        bool    `json:"settled"`         // false where it was not waited for any longer

	ResidentStart int64 `json:"resident_start_bytes"`
	ResidentEnd   int64 `json:"resident_end_bytes"`
	ResidentMost  int64 `json:"resident_most_bytes"`

	Shares  []Share `json:"shares"`  // by weight
	Idle    int     `json:"idle"`    // cameras with nothing to see, at the end
	Changed int     `json:"changed"` // that became idle, or ceased to be, in the trial
	Furthest
}

// mostOf is how many cameras so many times n are.
func mostOf(times float64, n int) int { return int(math.Ceil(times*float64(n) - 1e-9)) }

// CamerasFor is how many cameras a rehearsal needs where the box can do n.
func CamerasFor(times float64, n int) int { return max(n, mostOf(times, n)) }

// overload rehearses with more cameras than the can that the box can do.
func (b *Bench) overload(ctx context.Context, r *Report, can int) error {
	o := &Overload{Times: b.o.Overload, Can: can, Shares: []Share{}}
	r.Overload = o
	if can == 0 {
		o.Fails = "the search found no number of cameras that the box can do"
		return nil
	}
	ease, err := b.trial(ctx, max(1, can/2))
	if err != nil {
		return err
	}
	o.Ease = &ease
	if len(ease.Stages) == 0 {
		o.Fails = ease.Fails
		return nil
	}
	o.Loaded = &Trial{Cameras: mostOf(b.o.Overload, can), Dropped: map[string]uint64{}}
	if err := b.overloaded(ctx, o); err != nil {
		return err
	}
	o.Loaded.Fails = o.Fails
	verdict := "meets the bounds"
	if o.Fails != "" {
		verdict = o.Fails
	}
	b.o.Progress(fmt.Sprintf("%d cameras, overloaded: %s", o.Loaded.Cameras, verdict))
	return nil
}

// overloaded carries out the trial that is too much.
func (b *Bench) overloaded(ctx context.Context, o *Overload) error {
	t := o.Loaded
	b.o.Progress(fmt.Sprintf("%d cameras, overloaded: starting", t.Cameras))
	cfg := b.o.Config(t.Cameras)
	weigh(cfg)
	if err := b.start(ctx, t, cfg); err != nil {
		return err
	}
	if t.Fails != "" {
		o.Fails = t.Fails
		return nil
	}
	began := time.Now()
	o.Settled = b.settled(ctx)
	o.SettledSeconds = time.Since(began).Seconds()
	w := &watch{}
	if err := b.measure(ctx, t, w); err != nil {
		return err
	}
	w.report(o)
	if age := o.Ease.Stages[published].P95; age > 0 {
		o.P95 = t.Stages[published].P95 / age
	}
	o.Fails = o.judge()
	return nil
}

// weigh gives the cameras priorities.
func weigh(cfg *config.Config) {
	of := priorities()
	for i, id := range slices.Sorted(maps.Keys(cfg.Cameras)) {
		c := cfg.Cameras[id]
		c.Detect.Priority = of[i%len(of)]
		cfg.Cameras[id] = c
	}
}

// settled waits until the governor has lowered the rates to what they stay at, and says
// whether it has. It is not waited for as calm does: an overload does not pass.
func (b *Bench) settled(ctx context.Context) bool {
	sleep(ctx, b.o.Settle)
	allowed, since := 0.0, time.Now()
	for end := since.Add(mostSettling); ctx.Err() == nil && time.Now().Before(end); sleep(ctx, b.o.every) {
		now := b.o.Pipeline.System().Governor
		if !now.Reducing || math.Abs(now.AllowedFPS-allowed) > steadyBy*allowed {
			allowed, since = now.AllowedFPS, time.Now()
		}
		if now.Reducing && time.Since(since) >= steadyFor {
			return true
		}
	}
	return false
}

// judge says in words which bounds the overloaded trial misses, "" = none.
func (o *Overload) judge() string {
	t := o.Loaded
	switch {
	case o.Ease.Governor != nil:
		return fmt.Sprintf("%d cameras are no ease: rates were lowered, %s", o.Ease.Cameras, o.Ease.Governor.Reason)
	case o.P95 == 0:
		return "nothing was analysed, so that no age is known"
	case t.Governor == nil && t.AnalysedShare >= leastAnalysed:
		return fmt.Sprintf("%d cameras were no overload: every one was analysed as asked for", t.Cameras)
	}
	var missed []string
	if t.Stalls > 0 {
		missed = append(missed, fmt.Sprintf("%d cameras stalled or had to be called again", t.Stalls))
	}
	if o.P95 > mostAged {
		missed = append(missed, fmt.Sprintf("p95 %.2f times that at ease, at most %g is promised", o.P95, mostAged))
	}
	if float64(o.ResidentEnd) > flatTimes*float64(o.ResidentStart)+flatMore {
		missed = append(missed, fmt.Sprintf("resident memory rose by %.0f %%", 100*(float64(o.ResidentEnd)/float64(o.ResidentStart)-1)))
	}
	if math.Abs(o.Percent) > mostApart {
		missed = append(missed, fmt.Sprintf("camera %s had %.2f of its share", o.Camera, 1+o.Percent/100))
	}
	return strings.Join(missed, "; ")
}

func (o *Overload) table(w io.Writer) {
	fmt.Fprintf(w, "\noverload, %g times the %d cameras that the box can do\n", o.Times, o.Can)
	if t := o.Loaded; t != nil && len(t.Stages) > 0 {
		o.figures(w)
		t.table(w)
	}
	if o.Fails != "" {
		fmt.Fprintf(w, "\nthe promise is not kept: %s\n", o.Fails)
		return
	}
	fmt.Fprintf(w, "\nthe promise is kept: p95 at most %g times that at ease, memory flat, every camera within %d %% of its share\n", mostAged, mostApart)
}

// figures prints what is judged.
func (o *Overload) figures(w io.Writer) {
	t := o.Loaded
	fmt.Fprintf(w, "age p95: %.1f ms with %d cameras, at ease; %.1f ms with %d, %.2f times that\n",
		o.Ease.Stages[published].P95, o.Ease.Cameras, t.Stages[published].P95, t.Cameras, o.P95)
	settled := fmt.Sprintf("was settled after %.0f s", o.SettledSeconds)
	if !o.Settled {
		settled = fmt.Sprintf("was not settled after %.0f s", o.SettledSeconds)
	}
	fmt.Fprintf(w, "frames/s: %.1f asked for, %.1f analysed; the governor %s\n", t.AskedFPS, t.AnalysedFPS, settled)
	fmt.Fprintf(w, "resident memory: %.0f MiB at the start, %.0f at the end, %.0f at most\n\n",
		mib(o.ResidentStart), mib(o.ResidentEnd), mib(o.ResidentMost))
	fmt.Fprintf(w, "%8s %8s %10s %10s %6s\n", "priority", "cameras", "analysed/s", "its share", "idle")
	for _, s := range o.Shares {
		fmt.Fprintf(w, "%8g %8d %10.2f %10.2f %6d\n", s.Weight, s.Cameras, s.FPS, s.ExpectedFPS, s.Idle)
	}
	switch {
	case o.Percent == 0:
		fmt.Fprint(w, "no camera is further from its share than the edge of the trial")
	default:
		fmt.Fprintf(w, "furthest from its share: %s, %.2f frames/s in place of %.2f (%+.1f %%)", o.Camera, o.FPS, o.ExpectedFPS, o.Percent)
	}
	fmt.Fprintf(w, "; idle at the end: %d, changed: %d\n", o.Idle, o.Changed)
}
