package pipeline

import (
	"cmp"

	"edgecam/internal/metrics"
)

// Metrics is the snapshot behind /metrics.
func (p *Pipeline) Metrics() metrics.Snapshot {
	m := p.memory()
	s := metrics.Snapshot{
		Inference: p.engineStats.seconds.Snapshot(), Batch: p.engineStats.images.Snapshot(),
		PoolBytes: m.PoolBytes, PinnedBytes: m.PinnedBytes, LimitBytes: m.LimitBytes,
	}
	g := p.governors()
	s.AskedFPS, s.AllowedFPS = g.AskedFPS, g.AllowedFPS
	for _, card := range p.gpus() {
		if card.State == gpuUnused {
			continue
		}
		s.GPUs = append(s.GPUs, metrics.GPU{
			Index: card.Index, UUID: card.UUID, Name: card.Name, Up: card.State == gpuOK, Cameras: card.Cameras, Utilisation: card.Utilisation,
		})
	}
	s.Models = p.modelMetrics()
	for _, c := range p.sorted() {
		s.Cameras = append(s.Cameras, c.metrics())
	}
	return s
}

func (c *camera) metrics() metrics.Camera {
	st := c.captureStatus()
	m := metrics.Camera{
		ID: c.id, State: string(st.State), Frames: st.Frames, Inferred: c.total.Load(),
		Sessions: st.Attempts, Dropped: st.Dropped,
		Ages: map[string]metrics.Counts{
			"decoded": c.ages.decoded.Histogram(), "batched": c.ages.batched.Histogram(),
			"inferred": c.ages.inferred.Histogram(), "published": c.ages.published.Histogram(),
		},
	}
	if pool, ok := c.pool(); ok {
		m.Pool = &metrics.Pool{Slots: pool.Slots, InUse: pool.InUse, HighWater: pool.HighWater, Exhausted: pool.Exhausted}
	}
	return m
}

// modelMetrics are those of every model, by its name. Names of one engine show the same
// counts.
func (p *Pipeline) modelMetrics() []metrics.Model {
	models := p.Models()
	out := make([]metrics.Model, 0, len(models))
	for i := range models {
		m := metrics.Model{Name: models[i].ID, State: models[i].State, Cameras: len(models[i].Cameras)}
		for _, s := range p.stationsOf(m.Name) {
			m.Runs += s.runs.Load()
			m.Pictures += s.pictures.Load()
			_, bads := s.health.state()
			m.Bad += bads
			m.Reason = cmp.Or(m.Reason, s.whySick())
		}
		if m.State == modelRefused {
			m.Reason = modelRefused
		}
		out = append(out, m)
	}
	return out
}

// stationsOf are those of one model, by its name: one for each device.
func (p *Pipeline) stationsOf(model string) (all []*station) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.models[model]
	if e == nil {
		return nil
	}
	for _, b := range p.bays {
		if s := b.stations[e.key]; s != nil {
			all = append(all, s)
		}
	}
	return all
}

// whySick is the kind of what is wrong with a model, "" where nothing is.
func (s *station) whySick() string {
	switch {
	case s.lost() != nil:
		return "card lost"
	case s.health.kindOf() != "":
		return s.health.kindOf()
	case s.sick() != "":
		return "all scores are 0"
	}
	return ""
}
