package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// Options of a Server.
type Options struct {
	Listen     string       // host:port; port 0 takes a free one; required
	Auth       *Auth        // required unless Listen is a loopback address
	Backend    Backend      // required
	UI         fs.FS        // the built dashboard; it defaults to the one in the binary
	Metrics    http.Handler // answers /metrics; nil answers 404
	Version    string       // shown where the backend's System has none
	MaxViewers int          // open streams of each kind (pictures, detections); it defaults to 32
	Logger     *slog.Logger // it defaults to discarding
}

// timing is how patient the server is. Tests shorten it.
type timing struct {
	stall     time.Duration // a stream's client takes no byte for this long: cut off
	heartbeat time.Duration // silence on the detections after which a comment is sent
	snapshot  time.Duration // wait for a camera's first picture
	body      time.Duration // to send the whole body of a request
	grace     time.Duration // for requests that run when Run's context ends
}

func defaultTiming() timing {
	return timing{
		// More than half a minute: a laptop that was closed, or a phone that
		// changed networks, resumes where a shorter limit would cut.
		stall:     45 * time.Second,
		heartbeat: 10 * time.Second,
		snapshot:  5 * time.Second,
		body:      10 * time.Second,
		grace:     time.Second,
	}
}

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	writeTimeout      = 30 * time.Second // streams set their own, piece by piece
	maxHeaderBytes    = 16 << 10
	maxBodyBytes      = 64 << 10
	defaultMaxViewers = 32
)

// Server is the product's HTTP server. See Run.
type Server struct {
	backend   Backend
	version   string
	metrics   http.Handler
	log       *slog.Logger
	timing    timing
	listener  net.Listener
	host      string // as configured, for checkHost
	login     *login // nil: no login
	origin    *http.CrossOriginProtection
	dashboard *dashboard
	router    *echo.Echo
	http      *http.Server

	pictures, detections viewers

	streams *streamGroup       // all of them
	endAll  context.CancelFunc // ends the context of every request
	closing sync.Once

	mu       sync.Mutex
	stopped  bool // no handler starts any more
	inflight sync.WaitGroup
}

// New checks the options and opens the listener, so that a wrong address or a
// port in use is known before anything else is started: a *ListenError. The
// caller runs the server with Run, or closes it.
func New(o Options) (*Server, error) { return newServer(o, defaultTiming()) }

func newServer(o Options, t timing) (*Server, error) {
	if o.Backend == nil {
		return nil, errors.New("new web server: no Backend")
	}
	s := &Server{
		backend: o.Backend, version: o.Version, metrics: o.Metrics, log: o.Logger, timing: t,
		origin: http.NewCrossOriginProtection(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	most := int64(o.MaxViewers)
	if most <= 0 {
		most = defaultMaxViewers
	}
	s.pictures.most, s.detections.most = most, most
	if err := s.prepare(o); err != nil {
		return nil, err
	}
	s.streams = newStreamGroup()
	requests, endAll := context.WithCancel(context.Background())
	s.endAll = endAll
	s.router = s.newRouter()
	s.http = &http.Server{
		Handler:           s.router,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	return s, nil
}

// prepare makes what can fail; the listener comes last, so that nothing has to
// be undone.
func (s *Server) prepare(o Options) error {
	var err error
	if o.Auth != nil {
		if s.login, err = newLogin(*o.Auth, time.Now); err != nil {
			return fmt.Errorf("new web server: %w", err)
		}
	}
	ui := o.UI
	if ui == nil {
		ui = builtUI()
	}
	if s.dashboard, err = newDashboard(ui); err != nil {
		return fmt.Errorf("new web server: %w", err)
	}
	s.listener, s.host, err = listen(o.Listen, o.Auth != nil)
	return err
}

// Addr returns the address that is listened on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Viewers returns how many streams of pictures and of detections are open.
func (s *Server) Viewers() (pictures, detections int) {
	return int(s.pictures.open.Load()), int(s.detections.open.Load())
}

// Run serves until ctx ends and returns when every handler has returned. Then
// streams end at once and other requests have a second to finish. It is called
// once.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		s.shut()
		if errors.Is(err, http.ErrServerClosed) {
			return nil // Close was called
		}
		return fmt.Errorf("serve http %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	s.streams.end()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timing.grace)
	defer cancel()
	if err := s.http.Shutdown(grace); err != nil {
		// Not worth telling anyone: the rest is closed below.
		s.log.Debug("requests did not finish in time", "err", err)
	}
	s.shut()
	<-served
	return nil
}

// Close gives the listener back where Run was not called, and ends Run where it
// was. It may be called twice.
func (s *Server) Close() error {
	s.shut()
	return nil
}

// shut closes everything and waits for the handlers.
func (s *Server) shut() {
	s.closing.Do(func() {
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.streams.end()
		s.endAll()
		// Errors of closing sockets that nobody will use again say nothing.
		_ = s.http.Close()
		_ = s.listener.Close()
		if s.login != nil {
			s.login.sessions.endAll()
		}
	})
	s.inflight.Wait()
}

// newRouter builds the routes behind the guard.
func (s *Server) newRouter() *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.writeError
	// Pre-middleware runs before routing, so that what is closed is closed for
	// paths that the router does not know, too.
	e.Pre(s.track, s.catchPanics, s.guard, s.orDashboard)
	for _, r := range s.routes() {
		for _, m := range r.methods {
			e.Add(m, r.path, r.handler)
		}
	}
	return e
}

// track counts the handler for shut.
func (s *Server) track(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			return context.Canceled
		}
		s.inflight.Add(1)
		s.mu.Unlock()
		defer s.inflight.Done()
		return next(c)
	}
}

// isAPI says whether a path belongs to programs rather than to people.
func isAPI(path string) bool {
	p := strings.ToLower(path)
	for _, prefix := range []string{"/api", "/metrics", "/healthz", "/readyz"} {
		if p == prefix || strings.HasPrefix(p, prefix+"/") {
			return true
		}
	}
	return false
}
