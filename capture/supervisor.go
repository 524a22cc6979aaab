package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"edgecam/framepool"
)

// Options says how to capture one camera.
type Options struct {
	Camera string // its id, for the log

	Host   string  // host:port that sessions go to; "" = not known
	Hosts  *Hosts  // spreads attempts at the same Host, shared by all cameras; nil = no limit
	Prober *Prober // finds out that hosts answer again, shared by all cameras; nil = one of its own

	// Open makes the source for one session; attempt counts from 1. It must
	// not block: connecting is the source's Run.
	Open func(attempt int) (Source, error)
	// Admit waits until the camera may be called, so that hundreds do not start at
	// once; no limit counts meanwhile. nil = at once. An error is ctx's. started is
	// called at the session's first picture and at its end.
	Admit func(ctx context.Context) (started func(), err error)
	// NewDecoder makes the decoder for a stream; an *UnsupportedError ends
	// the session. The supervisor closes the decoder.
	NewDecoder func(StreamInfo) (Decoder, error)
	// Emit consumes each frame. It must not block.
	Emit func(*framepool.Frame)

	ConnectTimeout    time.Duration // from the start to the stream's description. It defaults to 15s.
	FirstFrameTimeout time.Duration // from there to the first decoded picture. It defaults to 30s.
	StallTimeout      time.Duration // between decoded pictures; 0 = derived from frame rate and key frames

	OnChange func(Status) // called at each change of state, from Run's goroutines; nil = none. It must not block.
	Logger   *slog.Logger // one line at each change of state; nil = none

	jitter func() float64   // 0..1
	wall   func() time.Time // the wall clock; only what is shown follows it
}

// Supervisor captures one camera for ever.
type Supervisor struct {
	o   Options
	log *slog.Logger

	attempts, frames atomic.Uint64
	drops            drops
	rate             rate

	mu      sync.Mutex
	status  Status // state, reason and what is known of the stream
	journal journal

	// owned by Run
	probed time.Time // when a camera that was away answered again
	seen   uint64    // frames at that time

	patience time.Duration // see watchdog
}

// NewSupervisor checks the options. It starts nothing.
func NewSupervisor(o Options) (*Supervisor, error) {
	switch {
	case o.Open == nil:
		return nil, errors.New("new supervisor: Open is not set")
	case o.NewDecoder == nil:
		return nil, errors.New("new supervisor: NewDecoder is not set")
	case o.Emit == nil:
		return nil, errors.New("new supervisor: Emit is not set")
	case o.ConnectTimeout < 0, o.FirstFrameTimeout < 0, o.StallTimeout < 0:
		return nil, errors.New("new supervisor: a timeout is negative")
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.FirstFrameTimeout == 0 {
		o.FirstFrameTimeout = DefaultFirstFrameTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Prober == nil {
		o.Prober = NewProber()
	}
	if o.wall == nil {
		o.wall = time.Now
	}
	if o.jitter == nil {
		o.jitter = rand.Float64
	}
	return &Supervisor{
		o:      o,
		log:    o.Logger.With("camera", o.Camera),
		status: Status{State: Connecting, Reason: "Starting", Since: time.Now()},
	}, nil
}

// waits are the back-offs of one Run, by what failed.
type waits struct{ network, auth, unsupported backoff }

func (s *Supervisor) newWaits() *waits {
	return &waits{
		network:     backoff{min: retryMin, max: retryMax, jitter: s.o.jitter},
		auth:        backoff{min: authRetryMin, max: authRetryMax, jitter: s.o.jitter},
		unsupported: backoff{min: unsupportedRetryMin, max: unsupportedRetryMax, jitter: s.o.jitter},
	}
}

func (w *waits) reset() {
	w.network.reset()
	w.auth.reset()
	w.unsupported.reset()
}

// Run captures until ctx ends; it then returns nil, with nothing left running.
// It is called once.
func (s *Supervisor) Run(ctx context.Context) error {
	defer s.enter(Disabled, "Stopped", nil, time.Time{})
	w := s.newWaits()
	reason := "Connecting"
	for attempt := 1; ctx.Err() == nil; attempt++ {
		started, err := s.admit(ctx)
		if err != nil {
			return nil //nolint:nilerr // it is the end of ctx
		}
		s.attempts.Add(1)
		s.enter(Connecting, reason, nil, time.Time{})
		stable, err := s.attempt(ctx, attempt, reason, started)
		started()
		s.rate.reset()
		if ctx.Err() != nil {
			return nil
		}
		if stable {
			w.reset()
		}
		why := s.pause(ctx, w, err)
		reason = fmt.Sprintf("Connecting again (attempt %d). Before: %s", s.attempts.Load()+1, why)
	}
	return nil
}

func (s *Supervisor) admit(ctx context.Context) (started func(), err error) {
	if s.o.Admit == nil {
		return func() {}, nil
	}
	return s.o.Admit(ctx)
}

// attempt is runSession when it is this camera's turn at its host.
func (s *Supervisor) attempt(ctx context.Context, attempt int, reason string, started func()) (stable bool, err error) {
	opened, err := s.o.Hosts.enter(ctx, s.o.Host, func() {
		s.say("Waiting its turn: other cameras at " + s.o.Host + " are connecting")
	})
	if err != nil {
		return false, err
	}
	defer opened(false)
	s.say(reason)
	return s.runSession(ctx, attempt, func() { opened(true) }, started)
}

// pause waits after a failure and gives it in words. While a host is silent, a
// look at it stands for an attempt.
func (s *Supervisor) pause(ctx context.Context, w *waits, err error) (why string) {
	for {
		state, why, wait := w.after(err)
		s.enter(state, why, err, time.Now().Add(wait))
		if again := s.rest(ctx, wait, err, w); !again || ctx.Err() != nil {
			return why
		}
		s.attempts.Add(1)
	}
}

// after says what a failure means: the state, its reason, and how long to wait.
func (w *waits) after(err error) (State, string, time.Duration) {
	reason := "The session ended: " + err.Error()
	temporary := true
	var failure Failure
	if errors.As(err, &failure) {
		reason, temporary = failure.Reason(), failure.Temporary()
	}
	var auth *AuthError
	var stalled *StalledError
	var status *StatusError
	switch {
	case errors.As(err, &auth):
		return AuthFailed, reason, w.auth.next()
	case !temporary:
		return Unsupported, reason, w.unsupported.next()
	case errors.As(err, &stalled) && stalled.Phase != PhaseConnect:
		return Stalled, reason, w.network.next()
	case errors.As(err, &status) && status.Code == statusNotEnoughBandwidth:
		return Backoff, reason, max(busyRetryMin, status.RetryAfter) + w.network.next()
	case errors.As(err, &status):
		return Backoff, reason, max(status.RetryAfter, w.network.next())
	default:
		return Backoff, reason, w.network.next()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
