package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/config"
	"edgecam/internal/event"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
	"edgecam/web"
)

// stuckAfter is how long a batch may take before the pipeline no longer counts
// as alive; the slowest model on the slowest box takes well under it.
const stuckAfter = 30 * time.Second

// Options are the parts that a pipeline is built from.
type Options struct {
	Config *config.Config
	// Bad names cameras that the configuration has and that cannot be used,
	// with the reason: they are shown so that nobody looks for them in vain.
	Bad map[string]string
	// GPUs are the cards with a model each, Engine is the loaded model on the
	// processor; at most one of both is set. With neither the cameras run without
	// inference, for the reason in EngineProblem. The caller closes them after Run.
	Engine        infer.Engine
	GPUs          []*GPU
	EngineProblem string
	// Models looks into model files and loads them; nil where there is but the one
	// that is loaded already. OpenModels loads the others that Config names.
	Models ModelSource
	// Unused are cards that were meant to serve and cannot, with the reason: they
	// are shown.
	Unused []UnusedGPU
	// ZeroStreak gives in how many pictures in a row, up to the last, every
	// score was exactly 0: a network at work gives none. nil = not known. A GPU
	// counts by itself.
	ZeroStreak func() uint64
	Cards      []CardMeter // of the GPUs in use, as far as they tell
	Budget     *framepool.Budget
	Codecs     *avcodec.Library
	FFmpeg     *sysav.System // the machine's own, for decoders that Codecs lack. It may be nil
	Board      bool          // the machine has decoders of its own that "auto" shall use: a Jetson
	System     web.System    // what does not change while the pipeline runs
	Version    string
	Logger     *slog.Logger

	more    map[string][]Loaded // of OpenModels: by key, in the order of GPUs
	refused map[string]string   // of OpenModels: why a model is not among them, by key
}

// Pipeline runs all cameras of one box. Build it with New, then Run it once.
type Pipeline struct {
	cfg           *config.Config // of the start: what a reload does not change
	engineProblem string
	engineStats   *engineStats
	unused        []UnusedGPU
	budget        *framepool.Budget
	codecs        *avcodec.Library
	ffmpeg        *sysav.System // the machine's own
	board         bool          // with decoders of its own: a Jetson
	hosts         capture.Hosts // of all cameras, through every reload
	system        web.System
	version       string
	logger        *slog.Logger
	now           func() time.Time
	start         time.Time // monotonic zero of the pipeline's own clocks
	startedAt     time.Time // the same moment on the wall clock

	prober *capture.Prober

	software *decode.Queue // in front of decoders in software
	starts   *starts
	observe  func(Result) // nil = nobody
	meters   *meters

	source   ModelSource   // nil = models stay as they are
	previews chan struct{} // holds a value for each that is being made
	waiting  atomic.Int32  // previews that are being made or wait for it

	broker *event.Broker
	bays   []*bay       // one a device; none without inference
	phases atomic.Int64 // cameras so far, for phases that spread them

	running errgroup.Group // stations and those who watch them
	started chan struct{}  // closed when Run has started the cameras

	reload sync.Mutex // held through a whole reload and the shutdown; taken before mu
	bad    []string   // guarded by reload; ids of cameras that are shown only, because their settings are wrong

	mu       sync.Mutex
	current  *config.Config // cfg with the cameras and models of the last reload
	models   map[string]*modelEntry
	loading  map[string]config.Model // that a reload is bringing in
	rejected map[string]rejection    // by name
	cameras  map[string]*running
	homes    map[string]int     // camera id → index of its bay
	loads    map[string]float64 // what cameras are known to bring: samples a second
	left     []*running         // cameras of a lost card that have not ended yet
	outage   chan struct{}      // closed while every card is lost
	ctx      context.Context    // of Run; nil before
	closed   bool

	opening atomic.Int64 // lost cards that are being opened again
}

// running is a camera with its goroutine.
type running struct {
	cam    *camera
	cancel context.CancelFunc
	done   chan struct{}
}

// New builds a pipeline with every camera of the config; one that cannot be
// built is left out and shown with the reason. Nothing runs before Run.
func New(o Options) (*Pipeline, error) {
	now := time.Now
	p := &Pipeline{
		cfg: o.Config, current: o.Config, engineProblem: o.EngineProblem, engineStats: newEngineStats(), unused: o.Unused,
		budget: o.Budget, codecs: o.Codecs, ffmpeg: o.FFmpeg, board: o.Board, system: o.System, version: o.Version, logger: o.Logger, now: now, start: now(),
		prober: capture.NewProber(), broker: event.NewBroker(), cameras: map[string]*running{}, homes: map[string]int{}, loads: map[string]float64{},
		outage: make(chan struct{}), started: make(chan struct{}),
	}
	p.startedAt = p.start.UTC()
	p.source, p.previews = o.Models, make(chan struct{}, mostPreviews)
	p.makeModels(o)
	p.makeBays(o)
	p.addModels(o)
	p.meters = newMeters(o.Cards)
	p.software, p.starts = softwareQueue(), newStarts(p.setUps)
	bad := map[string]string{}
	maps.Copy(bad, o.Bad)
	for _, id := range sortedIDs(o.Config.Cameras) {
		cam, err := p.newCamera(id, o.Config.Cameras[id])
		if err != nil {
			p.logger.Error("camera left out", "err", err)
			bad[id] = err.Error()
			continue
		}
		p.cameras[id] = &running{cam: cam}
	}
	for id, why := range bad {
		cam, err := p.newCamera(id, config.Camera{})
		if err != nil {
			return nil, err
		}
		cam.disabled = "left out, its settings are wrong: " + why
		p.cameras[id] = &running{cam: cam}
		p.bad = append(p.bad, id)
	}
	return p, nil
}

// Run runs until ctx ends. When it returns every session has been torn down, every
// goroutine has ended and every frame is back in its pool, but for what hangs in a card
// that was lost, or waits to be closed behind hundreds of decoders: that is left to the
// end of the process.
func (p *Pipeline) Run(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for _, b := range p.bays {
		for _, s := range b.all() {
			p.startStationLocked(s)
		}
		p.running.Go(func() error { p.watch(ctx, b); return nil })
	}
	p.running.Go(func() error { p.meter(ctx); return nil })
	p.running.Go(func() error { p.spare(ctx); return nil })
	for _, r := range p.cameras {
		p.startLocked(r)
	}
	p.mu.Unlock()
	close(p.started)

	<-ctx.Done()
	// Upstream first: no camera gives frames any more, then the workers end.
	p.reload.Lock()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.awaitStopped(slices.Collect(maps.Values(p.cameras)))
	p.awaitLeft()
	for _, b := range p.bays {
		for _, s := range b.all() {
			s.stop()
		}
	}
	p.broker.Close()
	p.reload.Unlock() // who looks after a card that is lost just now may wait for it
	err := p.running.Wait()
	p.Close()
	p.closeReopened()
	return err
}

// Started is closed when Run has started the cameras, and Reload may be called.
func (p *Pipeline) Started() <-chan struct{} { return p.started }

func (p *Pipeline) startLocked(r *running) { p.startAfterLocked(r, nil) }

// startAfterLocked starts a camera once another one has ended, or after leaveWait;
// nil = at once.
func (p *Pipeline) startAfterLocked(r *running, before <-chan struct{}) {
	ctx, cancel := context.WithCancel(p.ctx)
	r.cancel, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		defer cancel()
		if before != nil {
			timer := time.NewTimer(leaveWait)
			defer timer.Stop()
			select {
			case <-before:
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		r.cam.run(ctx)
	}()
}

// Reload puts the cameras of cfg in place of those that run: a camera whose
// settings are the same goes on untouched, a changed one is stopped and built
// anew, and keeps its viewers. Models that are new or changed are loaded beside the
// others and tried on a live picture; then their cameras move over, and their
// streams go on. Nothing changes when it returns an error. All other settings take a
// restart: Changes says which differ.
func (p *Pipeline) Reload(cfg *config.Config) (config.Changes, error) {
	p.reload.Lock()
	defer p.reload.Unlock()
	p.mu.Lock()
	old, up := p.current, p.ctx != nil && !p.closed
	p.mu.Unlock()
	if !up {
		return config.Changes{}, errors.New("reload: the pipeline is not running")
	}
	diff := config.Diff(old, cfg)
	models, err := p.loadModels(p.ctx, cfg)
	if err != nil {
		return config.Changes{}, fmt.Errorf("reload: nothing changed: %w", err)
	}
	diff.Models = diff.Models || len(models.fresh) > 0
	undo := models.install()
	changed := slices.DeleteFunc(slices.Clone(diff.Changed), func(id string) bool { return p.movable(id, old, cfg) })
	fresh, err := p.build(cfg, slices.Concat(diff.Added, changed))
	if err == nil {
		if err = models.plan(old, cfg, changed); err != nil {
			p.discardAll(fresh)
		}
	}
	if err != nil {
		undo()
		return config.Changes{}, fmt.Errorf("reload: nothing changed: %w", err)
	}
	p.hand(fresh)
	p.stop(slices.Concat(p.bad, diff.Removed, changed))
	p.bad = nil
	p.forget(diff.Removed)
	models.commit()
	for id, cam := range fresh {
		if cam.station() == nil {
			p.forget([]string{id}) // switched off
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, cam := range fresh {
		p.cameras[id] = &running{cam: cam}
		p.startLocked(p.cameras[id])
	}
	next := *old
	next.Cameras = cfg.Cameras
	if p.source != nil {
		next.Inference.Model, next.Inference.Models = cfg.Inference.Model, cfg.Inference.Models
		next.Inference.ScoreThreshold = cfg.Inference.ScoreThreshold
	}
	p.current = &next
	return diff, nil
}

// hand gives each new camera the viewers of the one that it takes the place of.
func (p *Pipeline) hand(fresh map[string]*camera) {
	for id, cam := range fresh {
		if old, ok := p.camera(id); ok {
			cam.inherit(old)
		}
	}
}

// build makes the cameras named by ids, all or none.
func (p *Pipeline) build(cfg *config.Config, ids []string) (map[string]*camera, error) {
	built := map[string]*camera{}
	var problems []error
	for _, id := range ids {
		cam, err := p.newCamera(id, cfg.Cameras[id])
		if err != nil {
			problems = append(problems, err)
			continue
		}
		built[id] = cam
	}
	if err := errors.Join(problems...); err != nil {
		p.discardAll(built)
		return nil, err
	}
	return built, nil
}

func (p *Pipeline) discardAll(built map[string]*camera) {
	for _, cam := range built {
		p.discard(cam)
	}
}

// stop ends the cameras named by ids, all at once, and takes them out.
func (p *Pipeline) stop(ids []string) {
	p.mu.Lock()
	var ending []*running
	for _, id := range ids {
		r := p.cameras[id]
		r.cancel()
		ending = append(ending, r)
		delete(p.cameras, id)
	}
	p.mu.Unlock()
	p.awaitStopped(ending)
}

// discard gives back what newCamera took for a camera that never ran.
func (p *Pipeline) discard(c *camera) {
	if a := c.at.Load(); a != nil {
		a.leave()
	}
	if _, ok := p.camera(c.id); !ok {
		p.forget([]string{c.id})
	}
}

// Alive says whether the workers move. It feeds the service watchdog: a GPU
// call or a library that hangs for good makes it false, a box without cameras
// does not.
func (p *Pipeline) Alive() bool {
	now := p.now()
	for _, s := range p.stations() {
		if s.stuck(now) {
			return false
		}
	}
	return true
}

// camera gives the camera with an id.
func (p *Pipeline) camera(id string) (*camera, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.cameras[id]
	if !ok {
		return nil, false
	}
	return r.cam, true
}

// sorted gives all cameras in the order of their ids.
func (p *Pipeline) sorted() []*camera {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*camera, 0, len(p.cameras))
	for _, r := range p.cameras {
		out = append(out, r.cam)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

func sortedIDs(m map[string]config.Camera) []string {
	ids := make([]string, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}
