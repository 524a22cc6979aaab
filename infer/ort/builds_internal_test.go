package ort

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"edgecam/infer"
)

// Two cards of one kind start together: one builds, the other takes what it built,
// also where nothing is kept.
func TestCardsShareABuild(t *testing.T) {
	for name, dir := range map[string]string{"kept": t.TempDir(), "not kept": ""} {
		t.Run(name, func(t *testing.T) {
			first, second := tensorRTRig(t), tensorRTRig(t)
			first.opts.StateDir, second.opts.StateDir, second.opts.Model = dir, dir, first.opts.Model
			first.blockBuild(1)
			a := first.start()
			first.awaitBuild()
			b := second.start()
			key := awaitWanted(t, 2)
			first.blockBuild(0)
			for i, info := range []infer.Info{first.settle(a), second.settle(b)} {
				if info.Provider != "tensorrt" {
					t.Errorf("card %d: %+v", i, info)
				}
			}
			if n, m := strings.Count(first.notes(), "build\n"), strings.Count(second.notes(), "build\n"); n != 1 || m != 0 {
				t.Errorf("%d builds on the first card, %d on the second", n, m)
			}
			theBuilds.mu.Lock()
			defer theBuilds.mu.Unlock()
			if _, ok := theBuilds.under[key]; ok {
				t.Error("the engine is remembered although nobody wants it")
			}
		})
	}
}

// awaitWanted waits until so many cards want one engine.
func awaitWanted(t *testing.T, n int) (key string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		theBuilds.mu.Lock()
		for k, b := range theBuilds.under {
			if b.wanted == n {
				key = k
			}
		}
		theBuilds.mu.Unlock()
		if key != "" {
			return key
		}
	}
	t.Fatalf("no engine is wanted by %d cards", n)
	return ""
}

// A card that waits for another one's build can be closed, or lost.
func TestWaitForABuildEnds(t *testing.T) {
	s := &builds{under: map[string]*building{}}
	b := s.join(testKey('a'))
	if s.join(testKey('a')) != b || s.join(testKey('b')) == b {
		t.Fatal("keys do not tell builds apart")
	}
	if err := b.enter(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.enter(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("closed: %v", err)
	}
	lost := make(chan struct{})
	close(lost)
	if err := b.enter(t.Context(), lost); err == nil {
		t.Error("a lost card builds")
	}
	b.exit()
	if err := b.enter(t.Context(), nil); err != nil {
		t.Errorf("after the other left: %v", err)
	}
}
