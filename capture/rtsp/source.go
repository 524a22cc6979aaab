package rtsp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

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

	ConnectTimeout time.Duration // for the TCP connection. It defaults to 10s.
	ReadTimeout    time.Duration // for an answer, and for silence while playing. It defaults to 10s.

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
		errs = append(errs, err)
		s.o.Logger.Debug("rtsp transport not taken", "transport", string(transport), "err", err)
	}
	return refusedAll(errs)
}

// try plays over one transport, over UDP from both addresses that may send.
func (s *Source) try(ctx context.Context, target Target, transport Transport, fallback bool, sink capture.Sink) error {
	stranger := ""
	if target.Addr() != s.target.Addr() {
		stranger = target.Addr()
	}
	one := newSession(s.o, target, transport, stranger)
	one.fallback = fallback
	err := one.run(ctx, sink)
	if ctx.Err() != nil || !one.otherSource || !noPackets(err) {
		return err
	}
	two := newSession(s.o, target, transport, stranger)
	two.fallback, two.believe = fallback, true
	return two.run(ctx, sink)
}
