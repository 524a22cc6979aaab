package rtsp

import (
	"context"
	"errors"
	"log/slog"
	"net"
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

	TLS      TLS           // how a camera behind rtsps:// is known
	Resolver *net.Resolver // of its name, asked for every session. It defaults to the system's.

	Transport Transport        // It defaults to Auto.
	Memory    *TransportMemory // what worked last time; nil = nothing is remembered

	// VideoTrack is which of the camera's video tracks plays, counted from 1 in
	// the order of its description. It defaults to the first that edgecam decodes.
	VideoTrack int

	ConnectTimeout time.Duration // for the TCP connection. It defaults to 10s.
	// ReadTimeout is for an answer, and for silence after PLAY where another
	// transport may be tried. It defaults to 10s, or to a longer ConnectTimeout
	// that the user has chosen for a slow camera.
	ReadTimeout time.Duration

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
		if o.ConnectTimeout > capture.DefaultConnectTimeout {
			o.ReadTimeout = o.ConnectTimeout
		}
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
	target := s.target
	for hops := 0; ; hops++ {
		err := s.play(ctx, target, sink)
		var r *redirection
		if !errors.As(err, &r) {
			return err
		}
		if target, err = s.target.follow(r, hops); err != nil {
			return err
		}
		s.o.Logger.Debug("rtsp redirect", "to", target.String())
	}
}

// play tries the transports in turn.
func (s *Source) play(ctx context.Context, target Target, sink capture.Sink) error {
	order := s.o.Memory.order(s.o.Transport)
	var errs []error
	for i, transport := range order {
		err := s.try(ctx, target, transport, i+1 < len(order), sink)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !otherTransport(err) {
			return err
		}
		s.o.Memory.slow(transport == UDP && !noPackets(err) && len(errs) == 1 && noPackets(errs[0]))
		errs = append(errs, err)
		s.o.Logger.Debug("rtsp transport not taken", "transport", string(transport), "err", err)
	}
	return refusedAll(errs)
}

// try plays over one transport, over UDP from both addresses that may send.
func (s *Source) try(ctx context.Context, target Target, transport Transport, fallback bool, sink capture.Sink) error {
	one, err := s.session(ctx, sink, func() *session {
		return newSession(s.o, target, transport, fallback)
	})
	if ctx.Err() != nil || !one.otherSource || !noPackets(err) {
		return err
	}
	_, err = s.session(ctx, sink, func() *session {
		two := newSession(s.o, target, transport, fallback)
		two.believe = true
		return two
	})
	return err
}

// session runs one session, and another one at once where the camera forgot
// it before it played.
func (s *Source) session(ctx context.Context, sink capture.Sink, open func() *session) (*session, error) {
	for again := false; ; again = true {
		one := open()
		one.login.stranger = s.stranger(one.target)
		err := one.run(ctx, sink)
		s.o.Memory.keepsSessions(one.upkeep.timeout)
		var status *capture.StatusError
		if again || ctx.Err() != nil || !errors.As(err, &status) || status.Code != int(base.StatusSessionNotFound) {
			return one, err
		}
		s.o.Logger.Debug("rtsp session forgotten by the camera", "err", err)
	}
}

// stranger names a target that a redirect led to, and that is not the camera of
// the URL; "" for that one.
func (s *Source) stranger(target Target) string {
	if target.Addr() == s.target.Addr() {
		return ""
	}
	return target.Addr()
}
