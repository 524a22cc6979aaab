package sim

import (
	"bytes"
	"context"
	_ "embed" // the clips of other codecs and sizes
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/auth"
)

// The clips that faults play in place of the camera's own: parts of the
// built-in one.
var (
	//go:embed pets-h265-4s.mp4
	clipH265 []byte
	//go:embed pets-mjpeg-2s.mp4
	clipMJPEG []byte
	//go:embed pets-small-4s.mp4
	clipSmall []byte
)

// oddCamera is a camera with faults. It has an RTSP server of its own, written
// for what no library would do, and each of its sessions plays for itself: it
// costs more than a healthy one.
type oddCamera struct {
	Camera
	clip    *ClipData
	faults  Faults
	pos     int // where in the clip sessions begin
	seed    uint64
	methods []auth.VerifyMethod
	log     *slog.Logger
	spare   *spareClips
	files   map[string][]byte // descriptions by file

	start     time.Time // of the times of faults
	sessions  atomic.Uint64
	describes atomic.Uint64
}

// spareClips reads the clips of other codecs and sizes when the first camera
// needs them.
type spareClips struct {
	mu    sync.Mutex
	clips map[string]*ClipData
}

func (s *spareClips) get(name string) (*ClipData, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if clip := s.clips[name]; clip != nil {
		return clip, nil
	}
	data := map[string][]byte{faultH265: clipH265, faultMJPEG: clipMJPEG, faultResChange: clipSmall}[name]
	clip, err := ReadClip(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the clip of fault %s: %w", name, err)
	}
	if s.clips == nil {
		s.clips = map[string]*ClipData{}
	}
	s.clips[name] = clip
	return clip, nil
}

// readFiles reads the descriptions that faults name, so that a file that is
// not there is an error at the start.
func (c *oddCamera) readFiles() error {
	c.files = map[string][]byte{}
	for _, f := range c.faults {
		if f.name != faultBadSDP || f.text == "" {
			continue
		}
		b, err := readSome(f.text)
		if err != nil {
			return fmt.Errorf("fault %s: %w", f.name, err)
		}
		c.files[f.text] = b
	}
	return nil
}

// readSome reads a file up to what a description may have.
func readSome(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// now gives the faults that are at work.
func (c *oddCamera) now() Faults { return c.faults.at(time.Since(c.start)) }

// random gives the numbers of one session: the same for the same seed.
func (c *oddCamera) random(session uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed, session))
}

// alwaysRefuse says whether the camera's port is closed for good.
func (c *oddCamera) alwaysRefuse() bool {
	f := c.faults.find(faultRefuse)
	return f != nil && f.when == window{}
}

// headTimeout bounds the wait for the first request of a connection, by which
// it is known which camera is meant.
const headTimeout = 30 * time.Second

// router takes the connections of a server that has odd cameras: theirs it
// serves, the others go on to healthy, which is a net.Listener.
type router struct {
	odd     map[string]*oddCamera // by path, with its slash
	alone   *oddCamera            // takes what names no camera; nil where healthy ones are there
	healthy chan net.Conn
	log     *slog.Logger

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
}

func newRouter(odd map[string]*oddCamera, log *slog.Logger) *router {
	return &router{odd: odd, healthy: make(chan net.Conn), log: log, conns: map[net.Conn]struct{}{}}
}

// accept serves a listener's connections until it is closed.
func (r *router) accept(ctx context.Context, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		if !r.add(conn) {
			_ = conn.Close() // the server ends
			return nil
		}
		r.wg.Go(func() { r.route(ctx, conn) })
	}
}

// add notes a connection, so that the end of the server ends it; false when
// that has come.
func (r *router) add(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.conns[conn] = struct{}{}
	return true
}

func (r *router) forget(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// cut resets all connections of odd cameras, as a camera that loses its power
// does after it came back.
func (r *router) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		reset(conn)
	}
}

// close ends everything and waits.
func (r *router) close() {
	r.mu.Lock()
	r.closed = true
	for conn := range r.conns {
		_ = conn.Close() // ends reads and writes
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// route finds out which camera a connection is for and hands it on.
func (r *router) route(ctx context.Context, conn net.Conn) {
	camera, head := r.alone, []byte(nil)
	if camera == nil || len(r.odd) > 1 {
		_ = conn.SetReadDeadline(time.Now().Add(headTimeout)) // only a closed connection refuses
		head = readLine(conn)
		_ = conn.SetReadDeadline(time.Time{})
		if found := r.odd[pathOf(head)]; found != nil {
			camera = found
		}
	}
	whole := &rewound{Conn: conn, head: head}
	if camera == nil {
		r.forget(conn)
		select {
		case r.healthy <- whole:
		case <-ctx.Done():
			_ = conn.Close()
		}
		return
	}
	defer r.forget(conn)
	defer conn.Close() //nolint:errcheck // nobody is left to tell
	if camera.now().has(faultRefuse) {
		reset(conn)
		return
	}
	camera.serve(ctx, whole)
}

// readLine reads up to the end of the first line, a byte at a time: what comes
// behind it stays for whoever serves the connection.
func readLine(conn net.Conn) []byte {
	var line []byte
	var b [1]byte
	for len(line) < 4096 {
		if _, err := conn.Read(b[:]); err != nil {
			break
		}
		if line = append(line, b[0]); b[0] == '\n' {
			break
		}
	}
	return line
}

// pathOf is the path of a request line's URL without what names a track.
func pathOf(line []byte) string {
	fields := strings.Fields(string(line))
	if len(fields) < 2 {
		return ""
	}
	_, rest, _ := strings.Cut(fields[1], "//")
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return ""
	}
	name, _, _ := strings.Cut(rest[slash:], "?")
	name, _, _ = strings.Cut(name, "/trackID=")
	return strings.TrimRight(name, "/")
}

// rewound is a connection of which the first bytes have been read already.
type rewound struct {
	net.Conn
	head []byte
}

// Read implements net.Conn.
func (c *rewound) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// reset ends a connection with a reset.
func reset(conn net.Conn) {
	if w, ok := conn.(*rewound); ok {
		conn = w.Conn
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails on a closed connection only
	}
	_ = conn.Close()
}

// handed is the listener of the healthy cameras beside odd ones.
type handed struct {
	addr  net.Addr
	conns <-chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// Accept implements net.Listener.
func (h *handed) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handed) Addr() net.Addr { return h.addr }

// discard reads what comes until either side ends it.
func discard(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
