package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"edgecam/platform/wholefile"
)

const (
	// lostGrace is how long the dashboard goes on saying that the last card is lost
	// before the process ends to be started anew: time for a look and a scrape.
	lostGrace = 10 * time.Second
	// returnGrace is how much longer a card may take that is being opened again: its model
	// is loaded and tried.
	returnGrace = 50 * time.Second
	// mostLosses within lossWindow are enough: the next start leaves the cards alone for
	// the rest of it. A start with a card and its loss take half a minute or so.
	mostLosses = 3
	lossWindow = 15 * time.Minute
	// lossFile is where the times of the losses are kept, in the state directory.
	lossFile = "gpu-losses.json"
)

// cards is what the pipeline says of them.
type cards interface {
	Lost() <-chan struct{} // closed while none works
	LostErr() error
	Returning() bool // one is being opened again
}

// lossWatch ends the process when the last card is lost, where somebody starts it
// again: a new process has a card back that this one cannot open. It remembers how often that was.
type lossWatch struct {
	dir     string // "" = nothing is remembered
	restart bool   // somebody starts the process again
	logger  *slog.Logger
	now     func() time.Time
}

// newLossWatch makes the watch. systemd starts the process again, and so do those who
// run containers.
func newLossWatch(dir string, container bool, logger *slog.Logger) lossWatch {
	return lossWatch{dir: dir, restart: container || os.Getenv("NOTIFY_SOCKET") != "", logger: logger, now: time.Now}
}

// run watches until ctx ends, or with an error where the process should.
// Where nobody starts it again the pictures go on and /readyz says why.
func (w *lossWatch) run(ctx context.Context, c cards) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.Lost():
		}
		err := c.LostErr()
		if err == nil {
			continue // one is back already
		}
		w.logger.Error("nothing is detected any more", "err", err, "hint", hintOf(err), "restart", w.restart)
		if !w.restart {
			return nil
		}
		if !w.wait(ctx, c) {
			return nil
		}
		if err := c.LostErr(); err != nil {
			w.remember()
			return fmt.Errorf("no gpu answers any more: ending, for a restart: %w", err)
		}
	}
}

// wait gives the grace; false when ctx ends.
func (w *lossWatch) wait(ctx context.Context, c cards) bool {
	grace := time.NewTimer(lostGrace)
	defer grace.Stop()
	end := time.NewTimer(lostGrace + returnGrace)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-end.C:
			return true
		case <-grace.C:
		}
		if !c.Returning() {
			return true
		}
		grace.Reset(time.Second)
	}
}

// recent gives the losses of the last while.
func (w *lossWatch) recent() []time.Time {
	if w.dir == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(w.dir, lossFile))
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			w.logger.Warn("losses of the gpu are not remembered", "err", err)
		}
		return nil
	}
	var all, recent []time.Time
	if err := json.Unmarshal(data, &all); err != nil {
		w.logger.Warn("losses of the gpu are not remembered", "err", err)
	}
	for _, at := range all {
		if age := w.now().Sub(at); age >= 0 && age < lossWindow { // a clock may have been set back
			recent = append(recent, at)
		}
	}
	return recent
}

func (w *lossWatch) remember() {
	if w.dir == "" {
		return
	}
	recent := append(w.recent(), w.now().UTC())
	data, err := json.Marshal(recent[max(0, len(recent)-mostLosses):])
	if err == nil {
		err = wholefile.Write(filepath.Join(w.dir, lossFile), data, 0o600)
	}
	if err != nil {
		w.logger.Warn("losses of the gpu are not remembered", "err", err)
	}
}

// resting says why cards are left alone for now, "" = they are not.
func (w *lossWatch) resting() string {
	recent := w.recent()
	if len(recent) < mostLosses {
		return ""
	}
	until := recent[len(recent)-mostLosses].Add(lossWindow)
	return fmt.Sprintf("it was lost %d times within %.0f minutes: a start after %s tries it again", len(recent), lossWindow.Minutes(), until.Local().Format(time.TimeOnly))
}
