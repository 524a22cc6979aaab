package pipeline

import (
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/metrics"
	"edgecam/web"
)

// status is the camera as the API shows it.
func (c *camera) status() web.Camera {
	s := c.captureStatus()
	s.FPS = c.streamFPS(&s)
	out := web.Camera{
		ID: c.id, Name: c.cfg.Name, State: string(s.State), Reason: s.Reason, Since: s.Since,
		Codec: string(s.Codec), Width: s.Width, Height: s.Height, FPS: s.FPS,
		Decoder: s.Decoder.Name, DecoderNote: s.Decoder.Note, PixelFormat: s.Decoder.PixelFormat, Memory: s.Decoder.Memory,
		Transport: s.Transport, TLS: s.TLS, Track: trackOf(s.Track), Attempts: s.Attempts, Damaged: s.Damaged,
		Detecting: c.lane() != nil, InferredFPS: c.inferred.perSecond(c.p.now()),
		Analysed: c.analysed(s.FPS), Frames: s.Frames, Inferred: c.total.Load(), Dropped: s.Dropped,
		AgeMS: percentiles(c.ages.published),
		StagesMS: web.Stages{
			Decoded: percentiles(c.ages.decoded), Batched: percentiles(c.ages.batched),
			Inferred: percentiles(c.ages.inferred), Published: percentiles(c.ages.published),
		},
	}
	if out.Name == "" {
		out.Name = c.id
	}
	if g := c.gpu(); g != nil {
		out.GPU = g.card.UUID
	}
	if !s.RetryAt.IsZero() {
		at := s.RetryAt
		out.NextAttemptAt = &at
	}
	if e := s.LastError; !e.At.IsZero() {
		out.LastError = &web.LastError{At: e.At, Reason: e.Reason}
	}
	if pool, ok := c.pool(); ok {
		out.Pool = &web.Pool{
			Slots: pool.Slots, InUse: pool.InUse, HighWater: pool.HighWater, Exhausted: pool.Exhausted,
			Bytes: pool.Bytes, Pinned: pool.Pinned, HugePages: pool.HugePages,
		}
	}
	return out
}

func trackOf(t capture.TrackInfo) *web.Track {
	if t.Index == 0 {
		return nil
	}
	return &web.Track{Index: t.Index, Of: t.Of, Codec: string(t.Codec), Control: t.Control}
}

// captureStatus is the supervisor's status with the drops of all stages.
func (c *camera) captureStatus() capture.Status {
	s := capture.Status{State: capture.Disabled, Reason: c.disabled, Since: c.p.startedAt, Dropped: map[string]uint64{}}
	if c.supervisor != nil {
		s = c.supervisor.Status()
		// The decoder tells the same drops apart by what was wrong.
		delete(s.Dropped, capture.DropDamaged)
	}
	c.mu.Lock()
	for reason, n := range c.lost {
		s.Dropped[reason] += n
	}
	if c.decoder != nil {
		for reason, n := range c.decoder.Stats().Dropped {
			s.Dropped[reason] += n
		}
	}
	c.mu.Unlock()
	s.Damaged = s.Dropped[decode.DropDamaged]
	c.drops.into(s.Dropped)
	if n := c.raw.late.Load() + c.annotated.late.Load(); n > 0 {
		s.Dropped[dropWords[dropViewTooOld]] += n
	}
	return s
}

// pool gives the memory of the camera's decoder, if it has any now: the pool in
// use, with what earlier ones still hold added to its bytes.
func (c *camera) pool() (framepool.Stats, bool) {
	c.mu.Lock()
	d := c.decoder
	c.mu.Unlock()
	if d == nil {
		return framepool.Stats{}, false
	}
	pools := d.Stats().Pools
	if len(pools) == 0 {
		return framepool.Stats{}, false
	}
	s := pools[0]
	for _, old := range pools[1:] {
		s.Bytes += old.Bytes
		s.InUse += old.InUse
	}
	return s, true
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
