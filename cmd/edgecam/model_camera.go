package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"edgecam/framepool"
	"edgecam/internal/config"
	"edgecam/internal/pipeline"
	"edgecam/platform/avcodec"
)

// cameraPatience bounds the wait for a camera's picture; its first one takes up to a
// key frame.
const cameraPatience = 30 * time.Second

// withCameraPicture opens one camera of a configuration as `run` would, and lends fn
// its next picture. Nothing else of the configuration is started.
func withCameraPicture(ctx context.Context, file, id string, fn func(*framepool.Frame) error) error {
	cfg, err := readConfig(file, nil)
	if cfg == nil {
		return err
	}
	cam, ok := cfg.Cameras[id]
	if !ok || badCameras(err, slog.New(slog.DiscardHandler))[id] != "" {
		if err != nil {
			return err
		}
		return fmt.Errorf("camera %s: %s has no such camera", id, file)
	}
	cam.Enabled, cam.Detect.Enabled = true, false // its picture alone is wanted
	cfg.Cameras = map[string]config.Camera{id: cam}
	codecs, err := avcodec.Open()
	if err != nil {
		return err
	}
	limit, _ := memoryLimit(cfg)
	p, err := pipeline.New(pipeline.Options{
		Config: cfg, EngineProblem: "not wanted", Budget: framepool.NewBudget(limit), Codecs: codecs, Version: version, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	limited, stop := context.WithTimeout(ctx, cameraPatience)
	defer stop()
	err = func() error {
		f, err := p.NextPicture(limited, id)
		if err != nil {
			return err
		}
		defer f.Release()
		return fn(f)
	}()
	cancel()
	return errors.Join(err, <-ended)
}
