package rtsp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture"
)

// The limits that Options default to.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultReadTimeout    = 10 * time.Second

	// udpFirstPacket is how long auto waits for the first packet over UDP
	// before it tries TCP.
	udpFirstPacket = 3 * time.Second
)

// Options says how to reach a camera.
type Options struct {
	URL      string // may hold a login; Username and Password win
	Username string
	Password string

	Transport Transport        // It defaults to Auto.
	Memory    *TransportMemory // what worked last time; nil = nothing is remembered

	// VideoTrack is which of the camera's video tracks plays, counted from 1 in
	// the order of its description. It defaults to the first that edgecam decodes.
	VideoTrack int

	ConnectTimeout time.Duration // for the TCP connection. It defaults to 10s.
	ReadTimeout    time.Duration // for an answer, and for silence while playing. It defaults to 10s.

	settle time.Duration // see settleWithin

	UserAgent string       // It defaults to "edgecam".
	Logger    *slog.Logger // It defaults to none; only debug lines are written.
}

// Source is one session with a camera.
type Source struct {
	o      Options
	target Target
}

var _ capture.Source = (*Source)(nil)

// New checks the options. It opens nothing. Errors never hold the password.
func New(o Options) (*Source, error) {
	target, err := ParseURL(o.URL, o.Username, o.Password)
	if err != nil {
		return nil, err
	}
	if o.Transport, err = ParseTransport(string(o.Transport)); err != nil {
		return nil, err
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = DefaultReadTimeout
	}
	if o.settle <= 0 {
		o.settle = settleWithin
	}
	if o.UserAgent == "" {
		o.UserAgent = "edgecam"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{o: o, target: target}, nil
}

// Run implements capture.Source.
func (s *Source) Run(ctx context.Context, sink capture.Sink) error {
	order := s.o.Memory.order(s.o.Transport)
	var err error
	for i, transport := range order {
		err = s.session(ctx, sink, transport, i+1 < len(order))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !otherTransport(err) {
			return err
		}
		s.o.Logger.Debug("rtsp transport not taken", "transport", string(transport), "err", err)
	}
	return err // no transport worked: the last one tells
}

// session runs one session, and another one at once where the camera forgot
// it before it played.
func (s *Source) session(ctx context.Context, sink capture.Sink, transport Transport, fallback bool) error {
	for again := false; ; again = true {
		one := newSession(s.o, s.target, transport)
		one.fallback = fallback
		err := one.run(ctx, sink)
		s.o.Memory.keepsSessions(one.upkeep.timeout)
		var status *capture.StatusError
		if again || ctx.Err() != nil || !errors.As(err, &status) || status.Code != int(base.StatusSessionNotFound) {
			return err
		}
		s.o.Logger.Debug("rtsp session forgotten by the camera", "err", err)
	}
}
