package pipeline

import "edgecam/internal/metrics"

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
