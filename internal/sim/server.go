package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/auth"
)

// Camera is one simulated camera.
type Camera struct {
	Path     string // "" = cam1, cam2, …
	Clip     string // MP4 file; "" = the built-in clip
	User     string // "" = no login is asked for
	Password string
}

// Options says what a Server plays.
type Options struct {
	Listen  string   // host:port. It defaults to 127.0.0.1:0, any free port.
	Apart   bool     // each camera has a loopback address of its own, from 127.0.0.1 on. Without faults, and over TCP
	Cameras []Camera // It defaults to one camera with the built-in clip.
	Fault   string   // of cameras, see ParseFaults
	Faults  []string // more of the same
	Seed    uint64   // of what faults leave to chance
	Auth    string   // "basic", "digest" or "sha256" (digest with SHA-256); "" = basic and digest
	Logger  *slog.Logger
}

// Server is a set of simulated cameras.
type Server struct {
	log     *slog.Logger
	methods []auth.VerifyMethod
	paths   []string              // of all cameras, in order
	cameras []*camera             // the healthy ones
	odd     map[string]*oddCamera // those with faults, by path with its slash
	spare   spareClips
	pacer   *pacer
	addr    net.Addr
	apart   bool

	mu       sync.Mutex
	listener net.Listener // until Run takes it, or Close
	closed   bool
}

// New reads the clips and opens the port, so that a port in use is an error
// here. Close or Run gives it back.
func New(o Options) (*Server, error) {
	s := &Server{log: o.Logger, odd: map[string]*oddCamera{}, pacer: newPacer()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.methods, err = authMethods(o.Auth); err != nil {
		return nil, err
	}
	var specs []Spec
	for _, text := range append([]string{o.Fault}, o.Faults...) {
		spec, err := ParseFaults(text)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	if err := s.addCameras(o.Cameras, specs, o.Seed); err != nil {
		return nil, err
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if s.listener, err = s.listen(&o); err != nil {
		return nil, fmt.Errorf("start simulated cameras: %w", err)
	}
	s.addr = s.listener.Addr()
	if s.closedFor(func(c *oddCamera) bool { return c.now().has(faultRefuse) }) {
		s.shut()
	}
	return s, nil
}

func (s *Server) listen(o *Options) (net.Listener, error) {
	s.apart = o.Apart
	switch {
	case !o.Apart:
		return net.Listen("tcp", o.Listen)
	case len(s.odd) > 0:
		return nil, errors.New("cameras with faults have no addresses of their own")
	}
	return apart(o.Listen, len(s.paths))
}

func authMethods(name string) ([]auth.VerifyMethod, error) {
	switch name {
	case "":
		return []auth.VerifyMethod{auth.VerifyMethodBasic, auth.VerifyMethodDigestMD5}, nil
	case "basic":
		return []auth.VerifyMethod{auth.VerifyMethodBasic}, nil
	case "digest":
		return []auth.VerifyMethod{auth.VerifyMethodDigestMD5}, nil
	case "sha256":
		return []auth.VerifyMethod{auth.VerifyMethodDigestSHA256}, nil
	default:
		return nil, fmt.Errorf("unknown authentication %q: use basic, digest or sha256", name)
	}
}

func (s *Server) addCameras(cameras []Camera, specs []Spec, seed uint64) error {
	if len(cameras) == 0 {
		cameras = []Camera{{}}
	}
	cameras = slices.Clone(cameras)
	for i := range cameras {
		if cameras[i].Path == "" {
			cameras[i].Path = "cam" + strconv.Itoa(i+1)
		}
	}
	if pattern, found := unmatched(specs, cameras); found {
		return fmt.Errorf("fault for cameras %q: no simulated camera has such a path", pattern)
	}
	clips, packets := map[string]*ClipData{}, map[*ClipData]*packetised{}
	paths := map[string]bool{}
	for i, c := range cameras {
		if paths[c.Path] {
			return fmt.Errorf("two simulated cameras have the path %q", c.Path)
		}
		paths[c.Path] = true
		if clips[c.Clip] == nil {
			clip, err := OpenClip(c.Clip)
			if err != nil {
				return err
			}
			clips[c.Clip] = clip
		}
		s.paths = append(s.paths, c.Path)
		isOdd, err := s.addOdd(c, clips[c.Clip], specs, seed, i, len(cameras))
		if err != nil {
			return err
		}
		if isOdd {
			continue
		}
		cam, err := newCamera(c, clips[c.Clip], i, len(cameras), s.log)
		if err != nil {
			return err
		}
		if err := s.share(cam, packets, waitOf(cam.clip, i, len(cameras))); err != nil {
			return err
		}
		s.cameras = append(s.cameras, cam)
	}
	return nil
}

// share gives a camera the packets that all of its clip's cameras have in common.
func (s *Server) share(c *camera, packets map[*ClipData]*packetised, wait time.Duration) (err error) {
	if packets[c.clip] == nil {
		if packets[c.clip], err = packetise(c.clip); err != nil {
			return err
		}
	}
	c.shared, c.pacer, c.wait = packets[c.clip], s.pacer, wait
	return nil
}

// Addr is where the cameras listen, or would if they did not refuse.
func (s *Server) Addr() net.Addr { return s.addr }

// URL is the address of camera i, from 0 on, without a login.
func (s *Server) URL(i int) string {
	host, port, err := net.SplitHostPort(s.addr.String())
	if err != nil {
		panic("sim: a listener's address has no port: " + err.Error())
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if s.apart {
		host = loopback(i).String()
	}
	return "rtsp://" + net.JoinHostPort(host, port) + "/" + s.paths[i]
}

// Close gives the port back if Run has not taken it. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.shut()
}

func (s *Server) shut() {
	if l := s.takeListener(); l != nil {
		_ = l.Close() // nothing was accepted
	}
}

func (s *Server) takeListener() net.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listener
	s.listener = nil
	return l
}

// Run plays until ctx ends; it then returns nil, with nothing left running.
// It is called once.
func (s *Server) Run(ctx context.Context) error {
	if len(s.odd) > 0 {
		return s.runOdd(ctx)
	}
	listener := s.takeListener()
	if listener == nil {
		return errClosed
	}
	return s.serve(ctx, listener)
}

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	h := &handler{cameras: map[string]*camera{}}
	for _, c := range s.cameras {
		h.cameras["/"+c.Path] = c
	}
	gate := &gatedListener{Listener: listener, open: make(chan struct{})}
	open := sync.OnceFunc(func() { close(gate.open) })
	server, err := s.start(h, gate)
	if err != nil {
		_ = listener.Close() // the first error tells more
		return fmt.Errorf("run simulated cameras: %w", err)
	}
	defer server.Close()
	defer open() // or Close would wait for Accept
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, c := range s.cameras {
		if err := c.open(server); err != nil {
			return fmt.Errorf("run simulated camera %s: %w", c.Path, err)
		}
		defer c.stream.Close()
		wg.Go(func() { c.run(ctx) })
	}
	wg.Go(func() { s.pacer.run(ctx) })
	open()
	ended := make(chan error, 1)
	wg.Go(func() { ended <- server.Wait() })
	select {
	case <-ctx.Done():
		server.Close()
		return nil
	case err := <-ended:
		return fmt.Errorf("run simulated cameras: %w", err)
	}
}

var errClosed = errors.New("run simulated cameras: the server is closed")

// gatedListener lets nobody in before the streams are there: they can be made
// only once the server runs.
type gatedListener struct {
	net.Listener
	open chan struct{}
}

// Accept implements net.Listener.
func (g *gatedListener) Accept() (net.Conn, error) {
	<-g.open
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &pictureConn{Conn: conn}, nil // pictures are sent whole
}

// start finds a pair of free UDP ports, even and odd, as RTP wants them.
func (s *Server) start(h *handler, listener net.Listener) (*gortsplib.Server, error) {
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	const tries = 64
	for range tries {
		port := 20000 + 2*rand.IntN(20000)
		server := &gortsplib.Server{
			Handler:                  h,
			RTSPAddress:              listener.Addr().String(),
			UDPRTPAddress:            net.JoinHostPort(host, strconv.Itoa(port)),
			UDPRTCPAddress:           net.JoinHostPort(host, strconv.Itoa(port+1)),
			AuthMethods:              s.methods,
			DisableRTCPSenderReports: true, // the cameras send their own
			WriteQueueSize:           s.queueSize(),
			Listen:                   func(string, string) (net.Listener, error) { return listener, nil },
		}
		if err = server.Start(); err == nil {
			return server, nil
		}
	}
	return nil, err
}

// queueSize is how many packets the library holds for a viewer: two of the
// largest pictures, and a power of two, as it asks for.
func (s *Server) queueSize() int {
	size := 256
	for _, c := range s.cameras {
		for _, packets := range c.shared.samples {
			for size < 2*len(packets) {
				size *= 2
			}
		}
	}
	return size
}
