package rtsp

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// hangUpAfter is how long a session that must end may take over TEARDOWN
// before its connection is cut.
const hangUpAfter = time.Second

// settleWithin is how long it may wait before, for the answer to SETUP.
const settleWithin = 800 * time.Millisecond

// never is the library's limit for silence while video plays. It would compare
// times of the wall clock, which may be set, and knows nothing of streams with a
// picture every ten seconds: our own limits judge.
const never = time.Duration(math.MaxInt64)

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

	firstPacket time.Duration // how long to wait for one; 0 = as long as the sink does

	track    *track
	trackErr error
	playing  time.Time
	upkeep   upkeep

	setupCode base.StatusCode
	setupErr  error // why the session that SETUP opened is of no use
	reporting bool  // there is somewhere to send receiver reports to

	end       context.CancelCauseFunc // ends the session with a reason
	settingUp chan struct{}           // holds an element while SETUP is under way
	settle    sync.Once

	media     *description.Media
	rx        receiver
	reception reception

	packets  atomic.Uint64
	reported atomic.Bool // the camera has sent a report
}

func newSession(o Options, target Target, transport Transport, fallback bool) *session {
	return &session{
		o: o, target: target, transport: transport, fallback: fallback,
		log:       o.Logger.With("transport", string(transport)),
		dialer:    dialer{target: target, limit: o.ConnectTimeout, resolver: o.Resolver, tls: o.TLS},
		login:     login{user: target.username, password: target.password, configured: target.login},
		settingUp: make(chan struct{}, 1),
	}
}

// run plays until ctx ends or the session does.
func (s *session) run(ctx context.Context, sink capture.Sink) error {
	ctx, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	err := s.play(ctx, sink)
	if cause := context.Cause(ctx); cause != nil {
		return cause // what followed from it is of no interest
	}
	return err
}

func (s *session) play(ctx context.Context, sink capture.Sink) error {
	u, err := s.target.request()
	if err != nil {
		return err
	}
	s.client = s.newClient()
	s.client.Scheme, s.client.Host = "rtsp", u.Host // the dialer encrypts
	if err := s.client.Start2(); err != nil {
		return s.failure(err)
	}
	defer s.rx.stop()
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
	s.media.Formats[0] = &tap{Format: s.media.Formats[0], packet: s.onPacket}
	if err := s.setUp(ctx, description); err != nil {
		return err
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
	s.log.Debug("rtsp playing", "track", s.track.info.String())
	return s.wait(ctx)
}

// wait lets the session play to its end, and remembers the transport.
func (s *session) wait(ctx context.Context) error {
	stop := s.startReports(ctx)
	defer s.watchSilence()()
	err := s.client.Wait()
	stop()
	if s.packets.Load() == 0 && time.Since(s.playing) >= udpFirstPacket {
		s.o.Memory.failed(s.transport)
	}
	s.rx.summary(s.log.With("packets", s.packets.Load()))
	return s.failure(err)
}

// watchSilence ends a session to which nothing at all comes, where another
// transport or sender may do better. It gives what ends the watch.
func (s *session) watchSilence() (stop func()) {
	limit := s.firstPacket
	if limit == 0 {
		return func() {}
	}
	timer := time.AfterFunc(limit, func() {
		if s.packets.Load() == 0 && !s.reported.Load() {
			s.end(&capture.StalledError{Phase: capture.PhaseFirstFrame, Limit: limit, Transport: string(s.transport)})
		}
	})
	return func() { timer.Stop() }
}

// startReports starts to send receiver reports, and gives what ends that.
func (s *session) startReports(ctx context.Context) (stop func()) {
	if !s.reporting {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.reports(ctx, s.media) })
	return func() {
		cancel()
		wg.Wait()
	}
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
// While SETUP is under way nobody knows the session that the camera opens, so
// its answer is waited for, for a moment. The client cannot end while it waits
// in a system call of the connection, so that is cut after another.
func (s *session) close() {
	s.settle.Do(func() {
		limit := time.NewTimer(s.o.settle)
		defer limit.Stop()
		select {
		case s.settingUp <- struct{}{}: // and no SETUP begins any more
		case <-limit.C:
		}
	})
	cut := time.AfterFunc(hangUpAfter, s.dialer.hangUp)
	defer cut.Stop()
	s.client.Close()
}

func (s *session) newClient() *gortsplib.Client {
	if s.fallback {
		// With nothing else to try, the supervisor knows how long a first picture
		// may take.
		s.firstPacket = s.o.ReadTimeout
		if s.transport == UDP {
			s.firstPacket = udpFirstPacket
		}
	}
	return &gortsplib.Client{
		ReadTimeout:           s.o.ReadTimeout,
		WriteTimeout:          s.o.ReadTimeout,
		Transport:             s.transport.library(),
		InitialUDPReadTimeout: never,
		AnyPortEnable:         true,
		UserAgent:             s.o.UserAgent,
		DialContext:           s.dialer.dial,
		ListenPacket:          listenUDP,
		OnRequest:             s.onRequest,
		OnResponse:            s.onResponse,
		OnServerRequest:       s.onServerRequest,
		OnServerResponse:      s.onServerResponse,
		OnTransportSwitch:     func(error) {},  // never: the transport is fixed
		OnPacketsLost:         func(uint64) {}, // the receiver counts for itself
		OnDecodeError:         func(error) {},  // what is missing then shows in the sequence numbers
	}
}

// prepare tells the sink what comes, before the first packet can.
func (s *session) prepare(sink capture.Sink) error {
	keeper := newSetKeeper(s.track.codec, s.track.sets)
	s.rx.start(s.track, s.transport, func(au *capture.AccessUnit) {
		keeper.fill(au)
		sink.AccessUnit(au)
	}, s.end)
	s.client.OnPacketRTCP(s.media, s.onReport)
	s.reception.local = s.client.Stats().Session.Medias[s.media].Formats[s.media.Formats[0]].LocalSSRC
	return sink.Stream(capture.StreamInfo{
		Codec:         s.track.codec,
		ParameterSets: keeper.described(),
		ClockRate:     clockRate,
		Transport:     string(s.transport),
		TLS:           s.tlsWords(),
		Track:         s.track.info,
	})
}

// onPacket takes each packet of the track.
func (s *session) onPacket(pkt *rtp.Packet) {
	if s.packets.Add(1) == 1 {
		s.o.Memory.worked(s.transport)
	}
	s.reception.packet(pkt, time.Now())
	s.rx.packet(pkt)
}

func (s *session) onReport(pkt rtcp.Packet) {
	s.reported.Store(true)
	if report, ok := pkt.(*rtcp.SenderReport); ok {
		s.reception.sender(report, time.Now())
	}
	s.rx.report(pkt)
}

func (s *session) tlsWords() string {
	if !s.target.encrypted() {
		return ""
	}
	return s.o.TLS.words()
}
