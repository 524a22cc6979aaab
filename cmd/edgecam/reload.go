package main

import (
	"context"
	"errors"
	"os"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/sdnotify"
)

// settleTime is how long a file must have been left alone before it is read
// again, and settleLimit how long that is waited for: what an editor has
// written so far may well be a configuration, only with fewer cameras.
const (
	settleTime  = 200 * time.Millisecond
	settleLimit = 5 * time.Second
)

// reloadOnHangup reads file again for every hangup until ctx ends; those that
// come meanwhile count as one.
func (a *appliance) reloadOnHangup(ctx context.Context, file string, hangups <-chan os.Signal) {
	select {
	case <-ctx.Done():
		return
	case <-a.pipeline.Started():
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			a.reload(ctx, file)
		}
	}
}

func (a *appliance) reload(ctx context.Context, file string) {
	sdnotify.Reloading(a.logger)
	defer sdnotify.Ready(a.logger)
	settle(ctx, file, settleTime)
	a.infer.models.forget()
	cfg, err := loadConfig(file)
	if err != nil {
		a.rejectModels(err)
		a.logger.Error("reload: the running configuration stays", "file", file, "err", err)
		return
	}
	changes, err := a.pipeline.Reload(cfg)
	if err != nil {
		a.logger.Error("reload: the running configuration stays", "file", file, "err", err)
		return
	}
	a.logger.Info("reloaded", "file", file, "added", changes.Added, "removed", changes.Removed, "changed", changes.Changed, "models", changes.Models)
	if keys := restartKeys(changes); len(keys) > 0 {
		a.logger.Warn("these settings changed and take a restart", "keys", keys)
	}
}

// settle waits until nobody has written to a file for a while, or it is no use
// waiting.
func settle(ctx context.Context, file string, quiet time.Duration) {
	limit := time.Now().Add(settleLimit)
	for {
		info, err := os.Stat(file)
		if err != nil {
			return
		}
		left := quiet - time.Since(info.ModTime())
		// A file from the future, as after a clock was set back, tells nothing.
		if left <= 0 || left > quiet || time.Now().After(limit) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// restartKeys names the changed sections that a reload leaves as they were.
func restartKeys(c config.Changes) (keys []string) {
	for _, s := range []struct {
		changed bool
		key     string
	}{
		{c.Server, "server"}, {c.GPU, "gpu"}, {c.Inference, "inference"}, {c.Memory, "memory"}, {c.Log, "log"}, {c.StateDir, "state_dir"},
	} {
		if s.changed {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// rejectModels shows beside a model that works why the one in the configuration cannot
// take its place.
func (a *appliance) rejectModels(err error) {
	var problems config.Errors
	if !errors.As(err, &problems) {
		return
	}
	for _, p := range problems {
		if name := p.Model(); name != "" {
			a.pipeline.RejectModel(name, p)
		}
	}
}
