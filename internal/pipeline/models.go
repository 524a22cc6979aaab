package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"edgecam/infer"
	spec "edgecam/infer/model"
	"edgecam/internal/config"
)

// ModelSource looks into model files and loads them.
type ModelSource interface {
	// Inspect says what a model is; the report comes beside an error where the file
	// can be read and not be used.
	Inspect(m config.Model) (*spec.Report, error)
	// Load loads a model for the processor, or for the card of beside.
	Load(ctx context.Context, m config.Model, of *spec.Report, beside *GPU) (Loaded, error)
}

// Loaded is a model that can work: on the processor, or on a card.
type Loaded struct {
	Engine     infer.Engine
	ZeroStreak func() uint64 // see Options
	GPU        *GPU
}

func (l *Loaded) close() error {
	if l.GPU != nil {
		l.GPU.closeModel()
		return nil
	}
	return l.Engine.Close()
}

// modelEntry is a model of the configuration by its name. It does not change.
type modelEntry struct {
	name    string
	cfg     config.Model
	report  *spec.Report // nil where nothing is known of the file
	key     string       // of its stations; models that are the same share them
	refused string       // why it has none; "" = it has
}

// rejection is a model that was to take the place of one that works, and did not.
type rejection struct {
	cfg    config.Model
	reason string
	at     time.Time
}

// modelKey tells models apart that need engines of their own: by file, content
// and all that is said of it. What scores count is the cameras' business.
func modelKey(m config.Model, r *spec.Report) string {
	m.ScoreThreshold = 0
	digest := ""
	if r != nil {
		// The labels may come from a file of their own, and so may the weights.
		beside := sha256.Sum256([]byte(r.Weights + "\x00" + strings.Join(r.Spec.Labels, "\x00")))
		digest = fmt.Sprintf("%s %x", r.SHA256, beside[:8])
	}
	return fmt.Sprintf("%+v %s", m, digest)
}

// inspect makes the entry of a model.
func (p *Pipeline) inspect(name string, m config.Model) (*modelEntry, error) {
	e := &modelEntry{name: name, cfg: m}
	var err error
	if p.source != nil {
		e.report, err = p.source.Inspect(m)
	}
	e.key = modelKey(m, e.report)
	return e, err
}

// makeModels makes the table of models, with the one that works already. Others
// are loaded by openModels.
func (p *Pipeline) makeModels(o Options) {
	p.models, p.rejected = map[string]*modelEntry{}, map[string]rejection{}
	for name, m := range o.Config.Inference.Named() {
		e, err := p.inspect(name, m)
		if err != nil {
			e.refused = err.Error()
		}
		p.models[name] = e
	}
	main := p.models[config.DefaultModel]
	if main.refused = ""; len(o.GPUs) == 0 && o.Engine == nil {
		main.refused = o.EngineProblem
	}
}

// OpenModels loads the models besides that of inference.model, once each for
// every device. One that cannot be used is refused: New leaves its cameras out,
// with the reason. It is called before New.
func (o *Options) OpenModels(ctx context.Context) error {
	if o.Models == nil || len(o.GPUs) == 0 && o.Engine == nil {
		return nil
	}
	named := o.Config.Inference.Named()
	o.more, o.refused = map[string][]Loaded{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		report, err := o.Models.Inspect(named[name])
		key := modelKey(named[name], report)
		if _, open := o.more[key]; open || name == config.DefaultModel || err != nil {
			continue
		}
		if main, _ := o.Models.Inspect(named[config.DefaultModel]); modelKey(named[config.DefaultModel], main) == key { //nolint:errcheck // it is loaded
			continue
		}
		loaded, err := o.openEverywhere(ctx, named[name], report)
		if ctx.Err() != nil {
			o.closeMore()
			return ctx.Err()
		}
		if err != nil {
			o.Logger.Error("model refused: its cameras are left out", "model", name, "file", named[name].File, "err", err)
			o.refused[key] = err.Error()
			continue
		}
		o.more[key] = loaded
	}
	return nil
}

func (o *Options) openEverywhere(ctx context.Context, m config.Model, r *spec.Report) (loaded []Loaded, err error) {
	on := o.GPUs
	if len(on) == 0 {
		on = []*GPU{nil}
	}
	for _, gpu := range on {
		l, err := o.Models.Load(ctx, m, r, gpu)
		if err != nil {
			for _, l := range loaded {
				err = errors.Join(err, l.close())
			}
			return nil, err
		}
		loaded = append(loaded, l)
	}
	return loaded, nil
}

// closeMore gives back what OpenModels opened, where New does not take it.
func (o *Options) closeMore() {
	for _, loaded := range o.more {
		for _, l := range loaded {
			if err := l.close(); err != nil {
				o.Logger.Warn("close model", "err", err)
			}
		}
	}
	o.more = nil
}

// addModels puts the models that OpenModels opened on their devices.
func (p *Pipeline) addModels(o Options) {
	for key, loaded := range o.more {
		for i, l := range loaded {
			p.bays[i].stations[key] = p.newStation(key, l, true)
		}
	}
	for _, e := range p.models {
		if why, ok := o.refused[e.key]; ok {
			e.refused = why
		}
	}
}

// modelOf gives a camera's model, or why it has none that works.
func (p *Pipeline) modelOf(id string, cfg config.Camera) (*modelEntry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.models[cfg.ModelName()]
	switch {
	case e == nil:
		return nil, fmt.Errorf("camera %s: model: there is no %q under inference.models", id, cfg.ModelName())
	case e.refused != "":
		return nil, fmt.Errorf("camera %s: model %s: %s", id, e.name, e.refused)
	}
	return e, nil
}

// checkModel says why a camera cannot be analysed as its settings want it.
func (p *Pipeline) checkModel(id string, cfg config.Camera) error {
	e, err := p.modelOf(id, cfg)
	if err != nil {
		return err
	}
	p.mu.Lock()
	labels := p.labelsLocked(e.key)
	p.mu.Unlock()
	if _, err := thresholds(labels, cfg.Detect, e.cfg.ScoreThreshold); err != nil {
		return fmt.Errorf("camera %s: %w", id, err)
	}
	return nil
}

func (p *Pipeline) labelsLocked(key string) []string {
	for _, b := range p.bays {
		if s := b.stations[key]; s != nil {
			return s.model.Info().Labels
		}
	}
	return nil
}

// settleCamera gives a camera its station, and its place there.
func (p *Pipeline) settleCamera(c *camera, cfg config.Camera) error {
	if len(p.bays) == 0 {
		return nil
	}
	var e *modelEntry
	key := ""
	if cfg.Detect.Enabled {
		var err error
		if e, err = p.modelOf(c.id, cfg); err != nil {
			return err
		}
		key = e.key
	}
	a, err := newAnalysis(c, p.place(c.id, key), cfg.Detect, e)
	if err != nil {
		return err
	}
	a.join()
	c.at.Store(a)
	return nil
}

// all gives those of a bay, that of inference.model first.
func (b *bay) all() []*station {
	out := []*station{b.st}
	for _, key := range slices.Sorted(maps.Keys(b.stations)) {
		if s := b.stations[key]; s != b.st {
			out = append(out, s)
		}
	}
	return out
}

// utilisation is the part of the last second that the bay's engines were at work.
func (b *bay) utilisation() float64 {
	sum := 0.0
	for _, s := range b.all() {
		_, use := s.governor.state()
		sum += use
	}
	return min(sum, 1)
}

// on gives the bay's station for a model, that of inference.model for "".
func (b *bay) on(key string) *station {
	if s := b.stations[key]; s != nil {
		return s
	}
	return b.st
}

// openBeside loads all models but inference.model's on a card that was opened
// anew.
func (p *Pipeline) openBeside(ctx context.Context, gpu *GPU, main string) (map[string]Loaded, error) {
	p.mu.Lock()
	missing := map[string]*modelEntry{}
	for _, e := range p.models {
		if e.refused == "" && e.key != main {
			missing[e.key] = e
		}
	}
	p.mu.Unlock()
	out := map[string]Loaded{}
	for key, e := range missing {
		l, err := p.source.Load(ctx, e.cfg, e.report, gpu)
		if err != nil {
			closeAll(out)
			return nil, fmt.Errorf("model %s: %w", e.name, err)
		}
		out[key] = l
	}
	return out, nil
}

// Close unloads the models that the pipeline has opened, once nothing uses them.
// It may be called twice, and is done at the end of Run.
func (p *Pipeline) Close() {
	for _, b := range p.bays {
		for _, s := range b.all() {
			if s.own {
				p.unload(s)
			}
		}
	}
}

func (p *Pipeline) unload(s *station) {
	if err := s.loaded.close(); err != nil {
		p.logger.Warn("close model", "err", err)
	}
}
