package pipeline

import (
	"time"

	"edgecam/capture"
	"edgecam/framepool"
	"edgecam/internal/metrics"
	"edgecam/web"
)

// status is the camera as the API shows it.
func (c *camera) status() web.Camera {
	s := c.captureStatus()
	out := web.Camera{
		ID: c.id, Name: c.cfg.Name, State: string(s.State), Reason: s.Reason, Since: s.Since,
		Codec: string(s.Codec), Width: s.Width, Height: s.Height, FPS: s.FPS,
		Decoder: s.Decoder.Name, PixelFormat: s.Decoder.PixelFormat, Memory: s.Decoder.Memory,
		Transport: s.Transport, Track: s.Track, Attempts: s.Attempts,
		Detecting: c.lane != nil, InferredFPS: c.inferred.perSecond(c.p.now()),
		Frames: s.Frames, Inferred: c.total.Load(), Dropped: s.Dropped,
		AgeMS: percentiles(c.ages.published),
		StagesMS: web.Stages{
			Decoded: percentiles(c.ages.decoded), Batched: percentiles(c.ages.batched),
			Inferred: percentiles(c.ages.inferred), Published: percentiles(c.ages.published),
		},
	}
	if out.Name == "" {
		out.Name = c.id
	}
	if !s.RetryAt.IsZero() {
		at := s.RetryAt
		out.RetryAt = &at
	}
	if pool, ok := c.pool(); ok {
		out.Pool = &web.Pool{
			Slots: pool.Slots, InUse: pool.InUse, HighWater: pool.HighWater, Exhausted: pool.Exhausted,
			Bytes: pool.Bytes, Pinned: pool.Pinned, HugePages: pool.HugePages,
		}
	}
	return out
}

// captureStatus is the supervisor's status with the pipeline's own drops added.
func (c *camera) captureStatus() capture.Status {
	s := capture.Status{State: capture.Disabled, Reason: "disabled in the configuration", Since: c.p.startedAt}
	if c.supervisor != nil {
		s = c.supervisor.Status()
	}
	if s.Dropped == nil {
		s.Dropped = map[string]uint64{}
	}
	c.drops.into(s.Dropped)
	return s
}

// pool gives the memory of the camera's decoder, if it has any now.
func (c *camera) pool() (framepool.Stats, bool) {
	d := c.decoder.Load()
	if d == nil {
		return framepool.Stats{}, false
	}
	s := d.Stats().Pool
	return s, s.Slots > 0
}

func percentiles(a *metrics.Ages) *web.Percentiles {
	p, ok := a.Percentiles()
	if !ok {
		return nil
	}
	return &web.Percentiles{P50: ms(p.P50), P95: ms(p.P95), P99: ms(p.P99)}
}

// ms gives d in milliseconds to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
