package pipeline

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/internal/pipeline/schedule"
	"edgecam/web"
)

const (
	// governEvery is how often a station looks at its load.
	governEvery = time.Second
	// logStep and logEvery keep the log to what an operator wants to know: a step of
	// the governor is told when what it allows has moved by a quarter since the last
	// line, and no more than every ten seconds.
	logStep  = 0.25
	logEvery = 10 * time.Second
	// lateFor is how many looks in a row decoders must be late, or in time again, to be
	// told of: those that start catch up.
	lateFor = 20
)

// governing is a station's governor at work.
type governing struct {
	last   time.Time       // of the window before
	choice schedule.Choice // since then

	mu          sync.Mutex
	governor    *schedule.Governor // guarded by mu, like all below
	utilisation float64
	told        float64 // what the last line of the log said is allowed; 0 = all
	toldAt      time.Time
	late        lateness
}

// lateness says when decoders begin and cease to give pictures that are old already.
type lateness struct {
	late bool
	n    int // looks in a row that say the opposite
}

// look takes in whether they are late now, and reports whether that is news.
func (l *lateness) look(late bool) (news bool) {
	if late == l.late {
		l.n = 0
		return false
	}
	if l.n++; l.n < lateFor {
		return false
	}
	l.late, l.n = late, 0
	return true
}

func (g *governing) init(now time.Time) { g.last, g.governor = now, schedule.NewGovernor() }

// state gives what the governor does, and which part of the last second the
// engine was at work.
func (g *governing) state() (schedule.GovernorState, float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.governor.State(), g.utilisation
}

// govern looks at the station's load until ctx ends, and limits its cameras.
func (s *station) govern(ctx context.Context, cameras func() []*camera) {
	var claims []schedule.Claim
	every(ctx, governEvery, func() { claims = s.governOnce(cameras(), claims[:0]) })
}

// every calls f at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// governOnce takes in the time since it was called before, and shares out.
func (s *station) governOnce(cameras []*camera, claims []schedule.Claim) []schedule.Claim {
	g := &s.governor
	now := s.now()
	length := now.Sub(g.last)
	if length <= 0 {
		return claims
	}
	g.last = now
	for _, c := range cameras {
		claims = append(claims, c.claim())
	}
	window, utilisation := s.load.take(length, s.times.PerPicture(), len(s.workers))
	g.mu.Lock()
	defer g.mu.Unlock()
	window.Chosen = s.times.Chosen(g.choice, g.governor.State(), window, s.beside)
	g.utilisation = utilisation
	g.governor.Step(now, window, claims)
	state, level := g.governor.State(), g.governor.Level()
	g.choice = s.times.Choice(state, window, s.beside)
	s.sched.choose(g.choice)
	for i, c := range cameras {
		c.limit.set(claims[i].Limit(level), state.Reason)
	}
	s.tellLocked(now, state)
	s.tellLateLocked(window)
	return claims
}

// tellLocked logs what the governor does, where that is news.
func (s *station) tellLocked(now time.Time, state schedule.GovernorState) {
	g := &s.governor
	switch {
	case !state.Reducing && g.told == 0:
		return
	case !state.Reducing:
		g.told = 0
		s.logger.Info("analysis is back at the rates asked for", "fps", math.Round(state.Asked))
	case g.told == 0, math.Abs(state.Allowed-g.told) > logStep*g.told && now.Sub(g.toldAt) >= logEvery:
		g.told = state.Allowed
		s.logger.Warn("analysis is reduced", "because", state.Reason,
			"asked_fps", math.Round(state.Asked), "allowed_fps", math.Round(state.Allowed))
	default:
		return
	}
	g.toldAt = now
}

// tellLateLocked logs that pictures are old before the engine gets them: that is no
// matter of the governor's.
func (s *station) tellLateLocked(w schedule.Window) {
	g := &s.governor
	if w.Ages == 0 || !g.late.look(w.Decoded > s.sched.budget) {
		return
	}
	if !g.late.late {
		s.logger.Info("decoders are in time again", "p95", w.Decoded.Round(time.Millisecond))
		return
	}
	try := "fewer cameras, smaller streams, or a lower detect.fps"
	if w.Apart {
		try = "fewer cameras or smaller streams: a lower detect.fps helps little"
	}
	s.logger.Warn("pictures are old when they leave their decoders: decoding is at its limit",
		"p95", w.Decoded.Round(time.Millisecond), "engine_load", math.Round(100*w.Use)/100, "try", try)
}

// claim is what the camera asks of its station. A decoder that catches up gives
// more pictures than the stream has, and not for long.
func (c *camera) claim() schedule.Claim {
	s := c.supervisor.Status()
	wish := c.streamFPS(&s)
	if all := c.rates().All; all > 0 {
		wish = min(wish, all)
	}
	if asked := c.cfg.Detect.FPS; asked > 0 {
		wish = min(wish, asked)
	}
	return schedule.Claim{Wish: wish, Weight: float64(c.cfg.Detect.Priority), Idle: c.activity.idle()}
}

// Claims are what each camera that is analysed asks of the governor where it is.
func (p *Pipeline) Claims() map[string]schedule.Claim {
	all := map[string]schedule.Claim{}
	for _, c := range p.sorted() {
		if c.lane() != nil {
			all[c.id] = c.claim()
		}
	}
	return all
}

// limit is the rate that the governor leaves a camera.
type limit struct {
	fps atomic.Uint64 // bits of a float64; 0 = no limit

	mu      sync.Mutex
	because string // guarded by mu; "" without a limit
}

func (l *limit) set(fps float64, because string) {
	l.fps.Store(math.Float64bits(fps))
	if fps == 0 {
		because = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.because = because
}

// of gives the rate to analyse at where asked is what the camera is set to; in
// both 0 means every picture.
func (l *limit) of(asked float64) float64 {
	fps := math.Float64frombits(l.fps.Load())
	if fps == 0 || asked > 0 && asked < fps {
		return asked
	}
	return fps
}

func (l *limit) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.because
}

// analysed is what the API says of the camera's rate of analysis.
func (c *camera) analysed(streamFPS float64) *web.Analysed {
	if c.lane() == nil {
		return nil
	}
	asked := c.cfg.Detect.FPS
	if asked == 0 {
		asked = streamFPS
	}
	return &web.Analysed{
		FPS: c.inferred.perSecond(c.p.now()), AskedFPS: asked, Weight: c.cfg.Detect.Priority, ReducedBecause: c.limit.reason(),
	}
}

// governors sums up for the API what the governors of all stations do.
func (p *Pipeline) governors() web.Governor {
	var g web.Governor
	for _, s := range p.stations() {
		state, _ := s.governor.state()
		g.AskedFPS += state.Asked
		g.AllowedFPS += state.Allowed
		if !state.Reducing {
			continue
		}
		since := state.Since.UTC()
		if g.Since == nil || since.Before(*g.Since) {
			g.Since = &since
		}
		g.Reducing, g.Reason = true, state.Reason
	}
	for _, c := range p.sorted() {
		if c.limit.reason() != "" {
			g.Cameras++
		}
	}
	return g
}
