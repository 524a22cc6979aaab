package pipeline

import (
	"context"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/internal/pipeline/schedule"
)

const (
	// spareEvery is how often it is looked at which pictures need not be decoded.
	spareEvery = time.Second
	// sparedFor is how long the rate of decoded pictures still tells of those that
	// were left out: longer than capture measures it over.
	sparedFor = 5 * time.Second
)

// spared remembers when pictures were left out. The zero value says never.
type spared struct{ last time.Time }

// fps is a stream's rate, of the rate of its decoded pictures and that of all.
func (s *spared) fps(now time.Time, leaving bool, decoded, all float64) float64 {
	if leaving {
		s.last = now
	}
	if s.last.IsZero() || now.Sub(s.last) > sparedFor {
		return decoded
	}
	return max(decoded, all)
}

// spare leaves pictures undecoded that nobody wants, until ctx ends.
func (p *Pipeline) spare(ctx context.Context) {
	every(ctx, spareEvery, func() {
		for _, c := range p.sorted() {
			c.spare()
		}
	})
}

// watchedNow has a camera decode everything at once: somebody has begun to watch.
func (p *Pipeline) watchedNow(id string) {
	if c, ok := p.camera(id); ok {
		c.skip(schedule.SkipNothing)
	}
}

// spare decides what the camera's decoder leaves out. A camera that nobody watches
// needs the pictures that are analysed, and no others.
func (c *camera) spare() {
	if c.lane() == nil {
		return
	}
	level := schedule.SkipNothing
	if !c.raw.watched() && !c.annotated.watched() {
		level = schedule.SkipFor(c.wanted(), c.rates())
	}
	c.skip(level)
	if level != schedule.SkipNothing && (c.raw.watched() || c.annotated.watched()) {
		c.skip(schedule.SkipNothing) // it began in between
	}
}

// wanted is how many pictures a second the engine has a use for, 0 = all. One that
// chooses among them has it for those too that it does not take: the governor's limit
// says only how many that are.
func (c *camera) wanted() float64 {
	if s := c.station(); s != nil && s.sched.choosing.Load() {
		return c.cfg.Detect.FPS
	}
	return c.limit.of(c.cfg.Detect.FPS)
}

// skip tells the decoder of the session, if there is one.
func (c *camera) skip(level schedule.Skip) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipping = level
	if c.decoder == nil {
		return
	}
	switch level {
	case schedule.SkipNonKey:
		c.decoder.SetSkip(decode.SkipNonKey)
	case schedule.SkipNonReference:
		c.decoder.SetSkip(decode.SkipNonReference)
	case schedule.SkipNothing:
		c.decoder.SetSkip(decode.SkipNothing)
	}
}

// rates are those of the camera's stream, whether its pictures are decoded or not.
func (c *camera) rates() schedule.Rates {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decoder == nil {
		return schedule.Rates{}
	}
	return schedule.Rates(c.decoder.Rates())
}

// streamFPS is the rate of the camera's stream: that of the pictures decoded, or,
// where some are or were just left out, what is known of the stream.
func (c *camera) streamFPS(s *capture.Status) float64 {
	if s.State != capture.Live {
		return s.FPS
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decoder == nil {
		return s.FPS
	}
	leaving := c.skipping != schedule.SkipNothing || c.decoder.Sparse()
	return c.spared.fps(c.p.now(), leaving, s.FPS, c.decoder.Rates().All)
}
