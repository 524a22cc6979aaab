package rtsp

import (
	"context"
	"log/slog"
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
	order := s.o.Memory.order(s.o.Transport)
	var err error
	for i, transport := range order {
		one := newSession(s.o, s.target, transport)
		one.fallback = i+1 < len(order)
		err = one.run(ctx, sink)
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
