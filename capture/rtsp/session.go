package rtsp

import (
	"context"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
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

	method     string   // of the request under way
	asked      *url.URL // of the request under way, without login
	addr       string   // host:port that asked goes to
	redirects  int
	foreign    bool // redirected to another host
	challenged bool // a 401 came on this connection
	staleNonce bool
	track      *track
	trackErr   error
	playing    time.Time

	media  *description.Media
	rx     receiver
	giveUp context.CancelCauseFunc // ends the session for what the stream turned out to be

	packets atomic.Uint64
}

func newSession(o Options, target Target, transport Transport) *session {
	return &session{
		o: o, target: target, transport: transport, addr: target.Addr(),
		log: o.Logger.With("transport", string(transport)), dialer: dialer{limit: o.ConnectTimeout},
	}
}

// run plays until ctx ends or the session does.
func (s *session) run(ctx context.Context, sink capture.Sink) error {
	u, err := s.target.request()
	if err != nil {
		return err
	}
	s.client = s.newClient()
	s.client.Scheme, s.client.Host = u.Scheme, u.Host
	if err := s.client.Start2(); err != nil {
		return s.failure(err)
	}
	defer s.rx.stop()
	ctx, s.giveUp = context.WithCancelCause(ctx)
	defer s.giveUp(nil)
	defer s.closeOn(ctx)()

	description, _, err := s.client.Describe(u)
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
	s.media.Formats[0] = &tap{Format: s.media.Formats[0], packet: s.onPacket}
	if _, err := s.client.Setup(description.BaseURL, s.media, 0, 0); err != nil {
		return s.failure(err)
	}
	if err := s.prepare(sink); err != nil {
		return err
	}
	s.playing = time.Now()
	if _, err := s.client.Play(nil); err != nil {
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
	s.rx.summary(s.log.With("packets", s.packets.Load()))
	if ctx.Err() != nil {
		return context.Cause(ctx)
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
		UserAgent:             s.o.UserAgent,
		DialContext:           s.dialer.dial,
		ListenPacket:          listenUDP,
		OnRequest:             s.onRequest,
		OnResponse:            s.onResponse,
		OnTransportSwitch:     func(error) {},  // never: the transport is fixed
		OnPacketsLost:         func(uint64) {}, // the receiver counts for itself
		OnDecodeError:         func(error) {},  // what is missing then shows in the sequence numbers
	}
}

// prepare tells the sink what comes, before the first packet can.
func (s *session) prepare(sink capture.Sink) error {
	s.rx.start(s.track, s.transport, sink.AccessUnit, s.giveUp)
	s.client.OnPacketRTCP(s.media, s.rx.report)
	return sink.Stream(capture.StreamInfo{
		Codec:         s.track.codec,
		ParameterSets: s.track.sets,
		ClockRate:     clockRate,
		Transport:     string(s.transport),
		Track:         s.track.words,
	})
}

// onPacket takes each packet of the track.
func (s *session) onPacket(pkt *rtp.Packet) {
	if s.packets.Add(1) == 1 {
		s.o.Memory.worked(s.transport)
	}
	s.rx.packet(pkt)
}

func canonicalAddr(u *url.URL) string {
	port := 0
	t := Target{scheme: u.Scheme, host: u.Hostname()}
	for _, r := range u.Port() {
		port = port*10 + int(r-'0')
	}
	if t.port = port; port == 0 {
		t.port = defaultPort(u.Scheme)
	}
	return t.Addr()
}
