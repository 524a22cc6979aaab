package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"edgecam/framepool"
	"edgecam/internal/config"
	"edgecam/internal/metrics"
	"edgecam/internal/pipeline"
	"edgecam/internal/sdnotify"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
	"edgecam/platform/nvml"
	"edgecam/web"
)

// appliance is everything that `run` and `demo` start, built but not running.
type appliance struct {
	cfg      *config.Config
	bad      map[string]string // cameras whose settings are wrong, and why
	logger   *slog.Logger
	codecs   *avcodec.Library
	infer    *inference
	meters   *nvml.Library // nil where no card tells how busy it is
	pipeline *pipeline.Pipeline
	server   *web.Server
	closing  sync.Once
}

// newAppliance builds from the ground up: platform, memory, codecs, model,
// pipeline, web. The listener is open when it returns, so a port in use ends
// the start before any camera is called.
func newAppliance(ctx context.Context, cfg *config.Config, bad map[string]string, logger *slog.Logger) (*appliance, error) {
	a := &appliance{cfg: cfg, bad: bad, logger: logger}
	if err := a.build(ctx); err != nil {
		a.Close()
		return nil, err
	}
	debug.FreeOSMemory() // a start takes more than the hours after it
	return a, nil
}

func (a *appliance) build(ctx context.Context) (err error) {
	driver := cuda.New(cuda.Options{})
	box := detect(driver)
	if a.codecs, err = avcodec.Open(); err != nil {
		return err
	}
	if a.infer, err = openInference(ctx, a.cfg, box, driver, a.codecs, a.logger); err != nil {
		return err
	}
	limit, why := memoryLimit(a.cfg) // beside the model, which is loaded by now
	a.logger.Info("frame memory", "limit_bytes", limit, "because", why)
	budget := framepool.NewBudget(limit)
	o := pipeline.Options{
		Config: a.cfg, Bad: a.bad, GPUs: a.infer.gpus, Unused: a.infer.unused, EngineProblem: a.infer.problem, Budget: budget, Codecs: a.codecs,
		System: describe(box, a.cfg, a.infer, why), Version: version, Logger: a.logger,
	}
	o.Cards = a.openMeters()
	o.Models = a.infer.models
	if cpu := a.infer.cpu; cpu != nil {
		o.Engine = cpu
		o.ZeroStreak = func() uint64 { return cpu.Stats().ZeroStreak }
	}
	if err = o.OpenModels(ctx); err != nil {
		return err
	}
	a.pipeline, err = pipeline.New(o)
	if err != nil {
		return err
	}
	registry, err := metrics.New(metrics.Options{Snapshot: a.snapshot, Version: version, Logger: a.logger})
	if err != nil {
		return err
	}
	a.server, err = web.New(web.Options{
		Listen: a.cfg.Server.Listen, Auth: webAuth(a.cfg), Backend: a.pipeline,
		Metrics: registry.Handler(), Version: version, Logger: a.logger,
	})
	return err
}

// snapshot is what /metrics shows. It is called once the listener is open.
func (a *appliance) snapshot() metrics.Snapshot {
	s := a.pipeline.Metrics()
	pictures, detections := a.server.Viewers()
	s.Viewers = map[string]int{"pictures": pictures, "detections": detections}
	return s
}

// URL is where the dashboard is.
func (a *appliance) URL() string { return "http://" + a.server.Addr().String() }

// Run runs until ctx ends; hangups, if not nil, has file read again.
func (a *appliance) Run(ctx context.Context, file string, hangups <-chan os.Signal) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.pipeline.Run(ctx) })
	g.Go(func() error { return a.server.Run(ctx) })
	g.Go(func() error {
		return sdnotify.Run(ctx, sdnotify.Options{Alive: a.pipeline.Alive, Status: a.pipeline.Summary, Logger: a.logger})
	})
	if hangups != nil {
		g.Go(func() error { a.reloadOnHangup(ctx, file, hangups); return nil })
	}
	if len(a.infer.gpus) > 0 {
		g.Go(func() error { return a.watchGPUs(ctx) })
	}
	return g.Wait()
}

// lostGrace is how long the dashboard goes on saying that the last card is lost
// before the process ends for systemd to start it anew: time for a look and a
// scrape, and for another card to come back.
const lostGrace = 10 * time.Second

// watchGPUs ends the process when the last card is lost and systemd will start it
// again: the surest way to have a card back is a new process. Without systemd the
// pictures go on and /readyz says why.
func (a *appliance) watchGPUs(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.pipeline.Lost():
		}
		err := a.pipeline.LostErr()
		if err == nil {
			continue // one is back already
		}
		restart := os.Getenv("NOTIFY_SOCKET") != ""
		a.logger.Error("nothing is detected any more", "err", err, "hint", hintOf(err), "restart", restart)
		if !restart {
			return nil
		}
		grace := time.NewTimer(lostGrace)
		select {
		case <-ctx.Done():
			grace.Stop()
			return nil
		case <-grace.C:
		}
		if a.pipeline.LostErr() != nil {
			return errors.New("the gpu does not answer: ending, for a restart")
		}
	}
}

// Close gives back what newAppliance took, after Run has returned.
func (a *appliance) Close() {
	a.closing.Do(func() {
		if a.server != nil {
			_ = a.server.Close() // Run has closed it already where it ran
		}
		if a.pipeline != nil {
			a.pipeline.Close()
		}
		if a.infer != nil {
			a.infer.close(a.logger)
		}
		if a.meters != nil {
			a.meters.Close()
		}
	})
}

func webAuth(cfg *config.Config) *web.Auth {
	if cfg.Server.Auth == nil {
		return nil
	}
	return &web.Auth{User: cfg.Server.Auth.User, Hash: cfg.Server.Auth.PasswordHash.Reveal()}
}
