package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edgecam/internal/config"
	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/cuda"
)

// cardsOf are cards that are lost and come back when they are told to.
type cardsOf struct {
	mu   sync.Mutex
	lost chan struct{}
	err  error // nil = one works

	returning bool // one is being opened again
}

func (c *cardsOf) Lost() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *cardsOf) LostErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *cardsOf) Returning() bool { return c.returning }

func (c *cardsOf) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = &cuda.LostError{Cause: errors.New("a kernel failed"), Hint: "look for an Xid"}
	close(c.lost)
}

func (c *cardsOf) back() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost, c.err = make(chan struct{}), nil
}

// The process ends once the last card has been lost for a while, where somebody starts
// it again, and nowhere else.
func TestLossEndsTheProcess(t *testing.T) {
	for _, c := range []struct {
		name    string
		restart bool
		back    time.Duration // after which one is back; 0 = never
		opening bool          // one is being opened again
		ends    bool          // with an error
	}{
		{"for good", true, 0, false, true},
		{"one comes back", true, 8 * time.Second, false, false},
		{"one comes back too late", true, 12 * time.Second, false, true},
		{"one is opened again", true, 40 * time.Second, true, false},
		{"one is opened again for ever", true, 0, true, true},
		{"nobody starts it again", false, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cards := &cardsOf{lost: make(chan struct{}), returning: c.opening}
				w := lossWatch{restart: c.restart, logger: slog.New(slog.DiscardHandler), now: time.Now}
				ctx, cancel := context.WithCancel(t.Context())
				began, ended := time.Now(), make(chan error, 1)
				go func() { ended <- w.run(ctx, cards) }()
				synctest.Wait()
				cards.lose()
				if c.back > 0 {
					time.Sleep(c.back)
					cards.back()
				}
				time.Sleep(2 * time.Minute)
				cancel()
				err := <-ended
				if (err != nil) != c.ends {
					t.Errorf("it ended with %v", err)
				}
				if c.ends && (exitCode(err) != exitFailed || hintOf(err) != "look for an Xid" || !strings.Contains(err.Error(), "a kernel failed")) {
					t.Errorf("error %v, code %d, hint %q", err, exitCode(err), hintOf(err))
				}
				if time.Since(began) < lostGrace {
					t.Error("it did not wait")
				}
			})
		})
	}
}

// After some losses in a short time cards are left alone, and tried again later.
func TestLossesInARow(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	w := lossWatch{dir: t.TempDir(), logger: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	for i := range mostLosses {
		if why := w.resting(); why != "" {
			t.Errorf("after %d losses: %s", i, why)
		}
		w.remember()
		now = now.Add(time.Minute)
	}
	if why := w.resting(); !strings.Contains(why, "it was lost 3 times") {
		t.Errorf("after all of them: %q", why)
	}
	now = now.Add(lossWindow - mostLosses*time.Minute)
	if why := w.resting(); why != "" {
		t.Errorf("a while later: %s", why)
	}
	w.remember()
	w.remember()
	if why := w.resting(); why == "" {
		t.Error("more losses later are not counted")
	}
	now = now.Add(-24 * time.Hour)
	if why := w.resting(); why != "" {
		t.Errorf("with a clock that was set back: %s", why)
	}
	if left, err := os.ReadDir(w.dir); err != nil || len(left) != 1 {
		t.Errorf("files %v, error %v", left, err)
	}
}

// What cannot be remembered is no reason not to start.
func TestLossesAreNotRemembered(t *testing.T) {
	for name, dir := range map[string]string{"nowhere": "", "no such directory": filepath.Join(t.TempDir(), "none")} {
		w := lossWatch{dir: dir, logger: slog.New(slog.DiscardHandler), now: time.Now}
		w.remember()
		if why := w.resting(); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, lossFile), []byte("[1"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := lossWatch{dir: damaged, logger: slog.New(slog.DiscardHandler), now: time.Now}
	if why := w.resting(); why != "" {
		t.Errorf("damaged: %s", why)
	}
	if w.remember(); len(w.recent()) != 1 {
		t.Errorf("a damaged file stays: %v", w.recent())
	}
}

// Cards that are left alone leave the processor at work; a configuration that demands
// one has it tried.
func TestRestingCards(t *testing.T) {
	card := testkit.NewCard(t)
	box := platform.Platform{GPUs: []platform.GPU{{Name: "stand-in", CanMapHost: true, HostRegisterSupported: true, NUMANode: -1}}}
	for mode, want := range map[string]string{"auto": "cpu", "require": "cuda", "off": "cpu"} {
		cfg := config.Default()
		cfg.GPU.Mode, cfg.Inference.Library, cfg.Inference.MaxBatch = mode, card.ONNXRuntime, 1
		in, err := openInference(t.Context(), cfg, box, cuda.New(cuda.Options{Library: card.Driver}), nil, kept{rest: "it was lost"}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%s: %v", mode, err)
			continue
		}
		if serving(in) != want || strings.Contains(in.note, "it was lost") != (mode == "auto") {
			t.Errorf("%s: %s serves, note %q", mode, serving(in), in.note)
		}
		in.close(slog.New(slog.DiscardHandler))
	}
	leftNothing(t, card)
}
