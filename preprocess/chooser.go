package preprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/platform/cuda"
)

// What auto measures: so many rounds of each candidate in turn after a warm-up,
// some tens of milliseconds for one geometry.
const (
	warmUpRounds = 5
	choiceRounds = 25
)

// ChooserOptions say what is chosen from and where choices are kept.
type ChooserOptions struct {
	Rules  Rules
	Spec   infer.InputSpec
	Half   bool
	Driver string // version, part of what a choice is remembered by
	Path   string // of the file with choices; "" = nothing is kept
	Logger *slog.Logger
}

// Measured is the median time of a strategy, from the first command to the
// tensor.
type Measured struct {
	Strategy Strategy
	Took     time.Duration
}

// Choice is the strategy for pictures of one geometry that lie in host memory.
type Choice struct {
	Strategy   Strategy
	Measured   []Measured // the fastest first; none where there was one candidate
	Remembered bool       // from a run before this one
}

// Chooser picks the fastest strategy for each geometry and remembers it by GPU,
// driver, geometry and input. It is safe for concurrent use.
type Chooser struct {
	dev   *cuda.Device
	o     ChooserOptions
	store *choiceStore

	mu    sync.Mutex
	known map[choiceKey]Choice // guarded by mu
}

// NewChooser reads what earlier runs have found. A file that cannot be read is
// logged and written anew.
func NewChooser(dev *cuda.Device, o ChooserOptions) (*Chooser, error) {
	if len(o.Rules.Candidates) == 0 {
		return nil, errors.New("new chooser: no strategy to choose from")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := openChoices(o.Path)
	if err != nil {
		o.Logger.Warn("memory strategies of earlier runs cannot be read: they are measured again", "path", o.Path, "err", err)
	}
	return &Chooser{dev: dev, o: o, store: store, known: map[choiceKey]Choice{}}, nil
}

// Choose gives the strategy for a geometry: at once where it is known, after
// measuring it on the device where not.
func (ch *Chooser) Choose(ctx context.Context, format framepool.PixelFormat, width, height int) (Choice, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	key := ch.key(format, width, height)
	if c, ok := ch.known[key]; ok {
		return c, nil
	}
	c, err := ch.find(ctx, key, TrialOptions{Format: format, Width: width, Height: height, GPU: GPUOptions{Half: ch.o.Half}})
	if err != nil {
		return Choice{}, fmt.Errorf("choose memory strategy for %s %dx%d: %w", format, width, height, err)
	}
	ch.known[key] = c
	return c, nil
}

func (ch *Chooser) key(format framepool.PixelFormat, width, height int) choiceKey {
	return choiceKey{
		GPU: ch.dev.GPU().UUID, Driver: ch.o.Driver, Format: format.String(), Width: width, Height: height,
		Input: fmt.Sprintf("%dx%d", ch.o.Spec.Width, ch.o.Spec.Height), Half: ch.o.Half,
	}
}

func (ch *Chooser) find(ctx context.Context, key choiceKey, o TrialOptions) (Choice, error) {
	if len(ch.o.Rules.Candidates) == 1 {
		return Choice{Strategy: ch.o.Rules.Candidates[0]}, nil
	}
	if c, ok := ch.store.find(key, ch.o.Rules.Candidates); ok {
		return c, nil
	}
	var found []Measured
	err := ch.dev.Do(ctx, "measure memory strategies", func(c *cuda.Context) (err error) {
		found, err = Compare(c, ch.o.Spec, o, ch.o.Rules.Candidates, choiceRounds)
		return err
	})
	if err != nil {
		return Choice{}, err
	}
	c := Choice{Strategy: found[0].Strategy, Measured: found}
	ch.o.Logger.Info("measured memory strategies", "format", key.Format, "width", key.Width, "height", key.Height,
		"strategy", string(c.Strategy), "us", micros(found))
	if err := ch.store.add(key, c); err != nil {
		// The choice holds for this run all the same.
		ch.o.Logger.Warn("memory strategy cannot be kept: it will be measured again", "path", ch.o.Path, "err", err)
	}
	return c, nil
}

// Compare measures strategies on one geometry, in turn, so that what disturbs
// one disturbs all, and gives the medians, the fastest first.
func Compare(c *cuda.Context, spec infer.InputSpec, o TrialOptions, strategies []Strategy, rounds int) (found []Measured, err error) {
	t, err := NewTrial(c, spec, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close(c)) }()
	times := make([][]time.Duration, len(strategies))
	for round := range warmUpRounds + rounds {
		for i, s := range strategies {
			took, err := t.Run(c, s)
			if err != nil {
				return nil, err
			}
			if round >= warmUpRounds {
				times[i] = append(times[i], took)
			}
		}
	}
	for i, s := range strategies {
		slices.Sort(times[i])
		found = append(found, Measured{Strategy: s, Took: times[i][len(times[i])/2]})
	}
	slices.SortStableFunc(found, func(a, b Measured) int { return int(a.Took - b.Took) })
	return found, nil
}

func micros(found []Measured) map[string]float64 {
	m := make(map[string]float64, len(found))
	for _, f := range found {
		m[string(f.Strategy)] = float64(f.Took.Nanoseconds()) / 1000
	}
	return m
}
