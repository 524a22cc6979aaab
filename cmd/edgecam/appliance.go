package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"edgecam/framepool"
	"edgecam/infer/ort"
	"edgecam/internal/config"
	"edgecam/internal/metrics"
	"edgecam/internal/pipeline"
	"edgecam/internal/sdnotify"
	"edgecam/platform/avcodec"
	"edgecam/platform/onnxruntime"
	"edgecam/web"
)

// appliance is everything that `run` and `demo` start, built but not running.
type appliance struct {
	cfg      *config.Config
	bad      map[string]string // cameras whose settings are wrong, and why
	logger   *slog.Logger
	engine   *ort.Engine // nil without a usable runtime
	codecs   *avcodec.Library
	pipeline *pipeline.Pipeline
	server   *web.Server
	closing  sync.Once
}

// newAppliance builds from the ground up: platform, memory, codecs, model,
// pipeline, web. The listener is open when it returns, so a port in use ends
// the start before any camera is called.
func newAppliance(cfg *config.Config, bad map[string]string, logger *slog.Logger) (*appliance, error) {
	a := &appliance{cfg: cfg, bad: bad, logger: logger}
	if err := a.build(); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *appliance) build() (err error) {
	box := detect()
	if a.cfg.GPU.Mode == "require" {
		return errors.New("gpu.mode is require, and this version has no GPU engine yet: use auto or off")
	}
	if a.codecs, err = avcodec.Open(); err != nil {
		return err
	}
	problem, err := a.loadEngine()
	if err != nil {
		return err
	}
	limit, why := memoryLimit(a.cfg) // beside the model, which is loaded by now
	a.logger.Info("frame memory", "limit_bytes", limit, "because", why)
	budget := framepool.NewBudget(limit)
	o := pipeline.Options{
		Config: a.cfg, Bad: a.bad, EngineProblem: problem, Budget: budget, Codecs: a.codecs,
		System: describe(box, a.cfg, why), Version: version, Logger: a.logger,
	}
	if a.engine != nil {
		o.Engine = a.engine
		o.ZeroStreak = func() uint64 { return a.engine.Stats().ZeroStreak }
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

// loadEngine opens the runtime and the model. A runtime that is not there
// leaves the cameras and the dashboard running, with the reason shown; a model
// that the config names and that cannot be used is the config's problem and
// ends the start.
func (a *appliance) loadEngine() (problem string, err error) {
	if p := a.cfg.Inference.Provider; p == "cuda" || p == "tensorrt" {
		return "", fmt.Errorf("inference.provider is %s, and this version has no GPU engine yet: use auto or cpu", p)
	}
	engine, err := ort.New(ort.Options{
		Library: a.cfg.Inference.Library, Model: a.cfg.Inference.Model, Precision: a.cfg.Inference.Precision,
		MaxBatch: a.cfg.Inference.MaxBatch, NMSIoU: float32(a.cfg.Inference.NMSIoU),
	})
	var missing *onnxruntime.UnavailableError
	if errors.As(err, &missing) && a.cfg.Inference.Library == "" {
		a.logger.Warn("inference is off: pictures only", "err", err, "try", missing.Hint)
		return fmt.Sprintf("%v. %s", err, missing.Hint), nil
	}
	if err != nil {
		return "", err
	}
	a.engine = engine
	info := engine.Info()
	a.logger.Info("model ready", "model", info.Model, "precision", info.Precision, "provider", info.Provider,
		"runtime", info.Version, "ms_per_image", info.ProbeMS)
	return "", nil
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
	return g.Wait()
}

// Close gives back what newAppliance took, after Run has returned.
func (a *appliance) Close() {
	a.closing.Do(func() {
		if a.server != nil {
			_ = a.server.Close() // Run has closed it already where it ran
		}
		if a.engine != nil {
			if err := a.engine.Close(); err != nil {
				a.logger.Warn("close model", "err", err)
			}
		}
	})
}

func webAuth(cfg *config.Config) *web.Auth {
	if cfg.Server.Auth == nil {
		return nil
	}
	return &web.Auth{User: cfg.Server.Auth.User, Hash: cfg.Server.Auth.PasswordHash.Reveal()}
}
