package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"edgecam/internal/config"
)

// liveLimit bounds the trial of a new model on a live picture.
const liveLimit = 20 * time.Second

// swap is what a reload does to the models: first everything that can fail, beside
// the models that work, then commit.
type swap struct {
	p      *Pipeline
	models map[string]*modelEntry
	fresh  []placedStation
	moves  []move
}

// placedStation is a station that a bay has, or shall have.
type placedStation struct {
	bay *bay
	st  *station
}

// move is a camera that is to be analysed elsewhere, or otherwise.
type move struct {
	cam *camera
	to  *analysis
}

// loadModels loads what cfg asks for and is not there, has it prove itself, and
// starts it. After an error nothing is left of it. p.reload is held.
func (p *Pipeline) loadModels(ctx context.Context, cfg *config.Config) (*swap, error) {
	s := &swap{p: p, models: map[string]*modelEntry{}}
	p.mu.Lock()
	old := p.models
	p.mu.Unlock()
	if p.source == nil || len(p.bays) == 0 {
		s.models = old
		return s, nil
	}
	named := cfg.Inference.Named()
	defer p.showLoading(nil)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		e, err := p.inspect(name, named[name])
		if err == nil && !s.has(e.key) {
			p.showLoading(map[string]config.Model{name: e.cfg})
			err = s.load(ctx, e)
		}
		if err != nil {
			s.drop()
			p.reject(e, err)
			return nil, fmt.Errorf("model %s: %w", name, err)
		}
		s.models[name] = e
	}
	return s, nil
}

// has says whether every device that works has the model, or will.
func (s *swap) has(key string) bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for _, b := range s.p.bays {
		fresh := slices.ContainsFunc(s.fresh, func(f placedStation) bool { return f.bay == b && f.st.key.model == key })
		if b.usableLocked() && b.stations[key] == nil && !fresh {
			return false
		}
	}
	return true
}

// load brings a model to every device that works.
func (s *swap) load(ctx context.Context, e *modelEntry) error {
	p := s.p
	p.mu.Lock()
	var bays []*bay
	for _, b := range p.bays {
		if b.usableLocked() && b.stations[e.key] == nil {
			bays = append(bays, b)
		}
	}
	p.mu.Unlock()
	for _, b := range bays {
		began := p.now()
		l, err := p.source.Load(ctx, e.cfg, e.report, b.st.gpu)
		if err != nil {
			return err
		}
		st := p.newStation(e.key, l, true)
		s.fresh = append(s.fresh, placedStation{bay: b, st: st})
		p.mu.Lock()
		p.startStationLocked(st)
		p.mu.Unlock()
		if err := p.proveLive(ctx, st); err != nil {
			return fmt.Errorf("on a live picture: %w", err)
		}
		p.logger.Info("model loaded beside the others", "model", e.name, "file", e.cfg.File, "device", st.key.device, "took", p.now().Sub(began).Round(time.Millisecond))
	}
	return nil
}

// proveLive tries a model on a picture of a camera on its device. Without a camera
// that is live the model's own test at loading has to do.
func (p *Pipeline) proveLive(ctx context.Context, st *station) error {
	c := p.liveOn(st)
	if c == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	p.watchedNow(c.id) // a picture now, not at the next key frame
	f, _, err := st.tryLive(limited, c, float32(p.cfg.Inference.ScoreThreshold))
	switch {
	case err == nil:
		f.Release()
	case errors.Is(err, context.DeadlineExceeded) && st.late.Load() > 0:
		return fmt.Errorf("it is too slow to analyse a picture within %s", maxFrameAge)
	case errors.Is(err, errNoFrame), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !st.stuck(p.now()):
		return nil // the camera has gone silent
	default:
		return err
	}
	if st.zeros != nil && st.zeros() > 0 {
		return errors.New("every score is exactly 0, which a network at work does not give")
	}
	return nil
}

// drop takes back what load did.
func (s *swap) drop() {
	for _, f := range s.fresh {
		s.p.retire(f.st)
	}
	s.fresh = nil
}

// retire ends a station that nobody is on any more, and unloads its model.
func (p *Pipeline) retire(st *station) {
	st.stop()
	<-st.done
	p.unload(st)
}

// install makes the new models those that cameras are built for, and gives what
// takes that back.
func (s *swap) install() (undo func()) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.models
	p.models = s.models
	for _, f := range s.fresh {
		f.bay.stations[f.st.key.model] = f.st
	}
	return func() {
		p.mu.Lock()
		p.models = old
		for _, f := range s.fresh {
			delete(f.bay.stations, f.st.key.model)
		}
		p.mu.Unlock()
		s.drop()
	}
}

// plan finds the cameras that go on and are analysed otherwise from now on.
func (s *swap) plan(old, cfg *config.Config, but []string) error {
	for _, c := range s.p.sorted() {
		next, ok := cfg.Cameras[c.id]
		if !ok || c.lane() == nil || slices.Contains(but, c.id) {
			continue
		}
		e, err := s.p.modelOf(c.id, next)
		if err != nil {
			return err
		}
		was := old.Cameras[c.id]
		from := c.at.Load()
		to := s.stationFor(from.st, e.key)
		if to == from.st && from.model == e.name && maps.Equal(was.Detect.Objects, next.Detect.Objects) && s.scoreBefore(old, was) == e.cfg.ScoreThreshold {
			continue
		}
		a, err := newAnalysis(c, to, next.Detect, e)
		if err != nil {
			return err
		}
		s.moves = append(s.moves, move{cam: c, to: a})
	}
	return nil
}

// scoreBefore is the default score that a camera was built with.
func (s *swap) scoreBefore(old *config.Config, c config.Camera) float64 {
	return old.Inference.Named()[c.ModelName()].ScoreThreshold
}

// stationFor is the one for a model on the same device; from itself on a device
// that is lost.
func (s *swap) stationFor(from *station, key string) *station {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for _, b := range s.p.bays {
		if to := b.stations[key]; to != nil && slices.Contains(b.all(), from) {
			return to
		}
	}
	return from
}

// commit moves cameras to where they belong now, and unloads what nobody needs any
// more. The streams go on.
func (s *swap) commit() {
	p := s.p
	for _, m := range s.moves {
		m.cam.move(m.to)
	}
	needed := map[string]bool{}
	for _, e := range s.models {
		needed[e.key] = true
	}
	var leaving []*station
	p.mu.Lock()
	main := s.models[config.DefaultModel].key
	for _, b := range p.bays {
		if b.stations[main] == nil {
			continue // a lost card keeps its last models until it is opened again
		}
		b.st = b.stations[main]
		for key, st := range b.stations {
			if !needed[key] {
				delete(b.stations, key)
				leaving = append(leaving, st)
			}
		}
	}
	clear(p.rejected)
	p.mu.Unlock()
	for _, st := range leaving {
		p.retire(st)
		p.logger.Info("model unloaded", "file", st.model.Info().Model, "device", st.key.device)
	}
}

// reject remembers why a model did not take the place of another.
func (p *Pipeline) reject(e *modelEntry, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rejected[e.name] = rejection{cfg: e.cfg, reason: err.Error(), at: p.now().UTC()}
}

// RejectModel remembers why the model that a configuration names cannot take the place
// of the one of that name that is there.
func (p *Pipeline) RejectModel(name string, reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.models[name]; e != nil {
		p.rejected[name] = rejection{cfg: e.cfg, reason: reason.Error(), at: p.now().UTC()}
	}
}

func (p *Pipeline) showLoading(m map[string]config.Model) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loading = m
}

// movable says whether a changed camera's stream can go on, as only what is looked
// for in it has changed.
func (p *Pipeline) movable(id string, old, cfg *config.Config) bool {
	c, ok := p.camera(id)
	return ok && c.lane() != nil && config.SameStream(old.Cameras[id], cfg.Cameras[id])
}
