// Package farm measures what bad cameras do to an appliance that runs for long:
// a farm of cameras with every fault in turn, others in good health beside them,
// and one that loses its power again and again. The cameras are processes of
// their own, so that the figures of this process are the appliance's.
package farm

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"edgecam/internal/config"
	"edgecam/web"
)

// Box is the appliance under test, without cameras at first.
type Box interface {
	Reload(cfg *config.Config) (config.Changes, error)
	Cameras() []web.Camera
	Camera(id string) (web.Camera, bool)
	System() web.System
}

// Options says how large the farm is and how long it is watched.
type Options struct {
	Box      Box
	Config   *config.Config // of the box; its cameras are replaced
	Binary   string         // edgecam's, for the cameras
	Env      []string       // more of their environment
	Flapping int            // cameras with faults
	Healthy  int
	Duration time.Duration // of the whole watch
	WarmUp   time.Duration // its begin, which the slope leaves out
	Period   time.Duration // of a fault, see the word flap of faults
	Seed     uint64
	Progress io.Writer // nil = none
}

// sampleEvery is how often figures are taken.
const sampleEvery = time.Second

// settle bounds the wait for cameras to come and to go.
const settle = 30 * time.Second

// Names of the cameras.
const (
	healthyName = "healthy%d"
	oddName     = "flap%d"
	phoenixName = "phoenix"
)

// Run builds the farm, watches it, and takes it down.
func Run(ctx context.Context, o Options) (*Report, error) {
	healthy, err := startCameras(ctx, o, "127.0.0.1:0", "--cameras", fmt.Sprint(o.Healthy))
	if err != nil {
		return nil, err
	}
	defer healthy.kill()
	odd, err := startCameras(ctx, o, "127.0.0.1:0", "--cameras", fmt.Sprint(o.Flapping),
		"--fault", "flap="+o.Period.String(), "--seed", fmt.Sprint(o.Seed))
	if err != nil {
		return nil, err
	}
	defer odd.kill()
	phoenix, err := newPhoenix(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { phoenix.kill() }() // the process that is its last, not the first one

	r := &Report{Flapping: o.Flapping, Healthy: o.Healthy, Seed: o.Seed, States: map[string]int{}, HealthyDropped: map[string]uint64{}}
	empty := withCameras(o.Config, nil)
	if _, err := o.Box.Reload(empty); err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // of loading the model
	r.Before = figuresNow()
	urls := map[string]string{phoenixName: phoenix.url}
	name(urls, healthyName, healthy.urls)
	name(urls, oddName, odd.urls)
	if _, err := o.Box.Reload(withCameras(o.Config, urls)); err != nil {
		return nil, err
	}
	if err := comeUp(ctx, o); err != nil {
		return nil, err
	}
	watched, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	returned := make(chan []time.Duration, 1)
	go func() { returned <- phoenix.run(watched, o) }()
	r.watch(watched, o)
	cancel()
	r.returns(<-returned)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	before := time.Now()
	if _, err := o.Box.Reload(empty); err != nil {
		return nil, err
	}
	r.StopSeconds = time.Since(before).Seconds()
	r.After = figuresAtRest(ctx, r.Before, func() bool { return o.Box.System().Memory.PoolBytes == 0 })
	memory := o.Box.System().Memory
	r.SlotsLeft, r.PoolBytesLeft = memory.InUse, memory.PoolBytes
	r.judge(o)
	return r, nil
}

func name(urls map[string]string, pattern string, list []string) {
	for i, url := range list {
		urls[fmt.Sprintf(pattern, i+1)] = url
	}
}

func withCameras(cfg *config.Config, urls map[string]string) *config.Config {
	next := *cfg
	next.Cameras = map[string]config.Camera{}
	for _, id := range slices.Sorted(maps.Keys(urls)) {
		c := config.DefaultCamera()
		c.URL = config.NewSecret(urls[id])
		c.Detect.FPS = 1 // it is about capture
		next.Cameras[id] = c
	}
	return &next
}

// comeUp waits for the healthy cameras.
func comeUp(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for i := range o.Healthy {
		id := fmt.Sprintf(healthyName, i+1)
		for {
			c, _ := o.Box.Camera(id)
			if c.State == "live" {
				break
			}
			if !sleep(ctx, 20*time.Millisecond) {
				return fmt.Errorf("camera %s is %s after %v: %s", id, c.State, settle, c.Reason)
			}
		}
	}
	return nil
}

// watch takes figures until ctx ends.
func (r *Report) watch(ctx context.Context, o Options) {
	began := time.Now()
	first := map[string]uint64{}
	for i := range o.Healthy {
		id := fmt.Sprintf(healthyName, i+1)
		c, _ := o.Box.Camera(id)
		first[id] = c.Frames
	}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-tick.C:
			r.sample(time.Since(began), o)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	for i := range o.Healthy {
		id := fmt.Sprintf(healthyName, i+1)
		c, _ := o.Box.Camera(id)
		r.healthy(c, first[id])
	}
	for _, c := range o.Box.Cameras() {
		r.Attempts += c.Attempts
		r.Damaged += c.Damaged
		r.Frames += c.Frames
	}
}

func (r *Report) sample(at time.Duration, o Options) {
	f := figuresNow()
	r.Peak = r.Peak.most(f)
	if at >= o.WarmUp {
		if r.Warm.ResidentBytes == 0 {
			r.Warm = f
		}
		r.points = append(r.points, point{at: at, figures: f})
	}
	r.End = f
	live := 0
	for _, c := range o.Box.Cameras() {
		r.States[c.State]++
		if c.State == "live" {
			live++
		}
	}
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, "\r%4.0f s  %d of %d cameras live  %.1f MiB, %.1f Go's  %d goroutines  %d descriptors ",
			at.Seconds(), live, len(o.Box.Cameras()), mib(f.ResidentBytes), mib(f.GoBytes), f.Goroutines, f.Descriptors)
	}
}

// sleep waits; false when ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
