package rtsp

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// hangUpAfter is how long a session that must end may take over TEARDOWN
// before its connection is cut.
const hangUpAfter = time.Second

// session is one try with one transport. Fields without a note are set before
// the client starts, or touched on its goroutine while a request of ours waits
// for it.
type session struct {
	o         Options
	target    Target
	transport Transport
	fallback  bool // another transport may be tried after this one
	log       *slog.Logger
	client    *gortsplib.Client
	dialer    dialer

	login    login
	exchange exchange

	moved        string // where the camera redirects; "" = it does not
	optionsMoved string // the same of OPTIONS, which DESCRIBE may know better

	believe     bool // take UDP from where the camera says that it sends, and not from who answers
	otherSource bool // the two differ

	track    *track
	trackErr error
	playing  time.Time

	// reader goroutine of the client
	depacketize depacketizer
	assembler   assembler
	media       *description.Media

	lost    atomic.Bool // packets went missing before the one that comes
	packets atomic.Uint64
	missing atomic.Uint64
	damaged atomic.Uint64
}

func newSession(o Options, target Target, transport Transport, stranger string) *session {
	return &session{
		o: o, target: target, transport: transport,
		log:    o.Logger.With("transport", string(transport)),
		dialer: dialer{target: target, limit: o.ConnectTimeout, resolver: o.Resolver, tls: o.TLS},
		login:  login{user: target.username, password: target.password, configured: target.login, stranger: stranger},
	}
}

// run plays until ctx ends or the session does.
func (s *session) run(ctx context.Context, sink capture.Sink) error {
	u, err := s.target.request()
	if err != nil {
		return err
	}
	s.client = s.newClient()
	s.client.Scheme, s.client.Host = "rtsp", u.Host // the dialer encrypts
	if err := s.client.Start2(); err != nil {
		return s.failure(err)
	}
	defer s.closeOn(ctx)()

	var description *description.Session
	err = s.ask(func() (err error) {
		description, _, err = s.client.Describe(u)
		return err
	})
	if s.trackErr != nil {
		return s.trackErr
	}
	if err != nil {
		return s.failure(err)
	}
	if s.track == nil || len(description.Medias) != 1 {
		return &capture.ProtocolError{Op: "DESCRIBE", Detail: "the answer describes no track"}
	}
	s.media = description.Medias[0]
	if err := s.mayUse(s.media.Secure); err != nil {
		return err
	}
	s.client.Scheme = s.target.scheme // allows encrypted media where the camera has it
	err = s.ask(func() error {
		_, err := s.client.Setup(description.BaseURL, s.media, 0, 0)
		return err
	})
	if err != nil {
		return s.failure(err)
	}
	if err := s.prepare(sink); err != nil {
		return err
	}
	s.playing = time.Now()
	err = s.ask(func() error {
		_, err := s.client.Play(nil)
		return err
	})
	if err != nil {
		return s.failure(err)
	}
	s.log.Debug("rtsp playing", "track", s.track.words)
	return s.wait(ctx)
}

// wait lets the session play to its end, and remembers the transport.
func (s *session) wait(ctx context.Context) error {
	err := s.client.Wait()
	if s.packets.Load() == 0 && time.Since(s.playing) >= udpFirstPacket {
		s.o.Memory.failed(s.transport)
	}
	s.log.Debug("rtsp session ended", "packets", s.packets.Load(), "lost", s.missing.Load(),
		"damaged", s.damaged.Load(), "too_large", s.assembler.drops)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.failure(err)
}

// closeOn closes the session when ctx ends, or when the function that it gives
// is called; that one returns when nothing is left running.
func (s *session) closeOn(ctx context.Context) func() {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.close()
	})
	return func() {
		if !stop() {
			<-ended
		}
		s.close()
	}
}

// close tears the session down; it may be called twice, and from anywhere.
// The client cannot end while it waits in a system call of the connection, so
// that is cut after a moment.
func (s *session) close() {
	cut := time.AfterFunc(hangUpAfter, s.dialer.hangUp)
	defer cut.Stop()
	s.client.Close()
}

func (s *session) newClient() *gortsplib.Client {
	firstPacket := udpFirstPacket
	if !s.fallback {
		// Nothing else to try: the supervisor knows how long a first picture
		// may take.
		firstPacket = time.Hour
	}
	return &gortsplib.Client{
		ReadTimeout:           s.o.ReadTimeout,
		WriteTimeout:          s.o.ReadTimeout,
		Transport:             s.transport.library(),
		InitialUDPReadTimeout: firstPacket,
		AnyPortEnable:         true,
		UserAgent:             s.o.UserAgent,
		DialContext:           s.dialer.dial,
		OnRequest:             s.onRequest,
		OnResponse:            s.onResponse,
		OnTransportSwitch:     func(error) {}, // never: the transport is fixed
		OnPacketsLost: func(n uint64) {
			s.missing.Add(n)
			s.lost.Store(true)
		},
		OnDecodeError: s.onDecodeError,
	}
}

// prepare tells the sink what comes, before the first packet can.
func (s *session) prepare(sink capture.Sink) error {
	var err error
	if s.depacketize, err = newDepacketizer(s.track); err != nil {
		return err
	}
	s.assembler = assembler{codec: s.track.codec, emit: sink.AccessUnit}
	s.client.OnPacketRTP(s.media, s.media.Formats[0], s.onPacket)
	return sink.Stream(capture.StreamInfo{
		Codec:         s.track.codec,
		ParameterSets: s.track.sets,
		ClockRate:     clockRate,
		Transport:     string(s.transport),
		TLS:           s.tlsWords(),
		Track:         s.track.words,
	})
}

// onDecodeError hears of packets that gortsplib could not read. One of another
// payload type, such as metadata in the video's channel, takes nothing from
// the video.
func (s *session) onDecodeError(err error) {
	var other liberrors.ErrClientRTPPacketUnknownPayloadType
	if errors.As(err, &other) {
		return
	}
	s.damaged.Add(1)
	s.lost.Store(true)
}

func (s *session) onPacket(pkt *rtp.Packet) {
	now := time.Now()
	if s.packets.Add(1) == 1 {
		s.o.Memory.worked(s.transport)
	}
	lost := s.lost.Swap(false)
	nalus, err := s.depacketize(pkt)
	if err != nil && !errors.Is(err, errIncomplete) {
		s.damaged.Add(1)
		lost = true
	}
	at := arrival{rtpTime: pkt.Timestamp, marker: pkt.Marker, received: now, capturedAt: s.capturedAt(pkt, now)}
	switch {
	case s.track.codec != capture.MJPEG:
		s.assembler.packet(at, nalus, lost)
	case len(nalus) == 1:
		s.assembler.whole(at, nalus[0], lost)
	case lost:
		s.assembler.lossNext = true
	}
}

// The camera's clock is believed within these bounds around ours.
const (
	maxCameraLag  = 10 * time.Second
	maxCameraLead = time.Second
)

// capturedAt is the camera's time of the picture where its sender reports give
// a sane one, else ours.
func (s *session) capturedAt(pkt *rtp.Packet, now time.Time) time.Time {
	ntp, ok := s.client.PacketNTP(s.media, pkt)
	if !ok || ntp.Before(now.Add(-maxCameraLag)) || ntp.After(now.Add(maxCameraLead)) {
		return now.Round(0) // wall clock alone
	}
	return ntp
}

func (s *session) tlsWords() string {
	if !s.target.encrypted() {
		return ""
	}
	return s.o.TLS.words()
}
