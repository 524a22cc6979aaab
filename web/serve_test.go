package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"edgecam/web"
)

// patience bounds how long a test waits for what must happen; nothing is
// concluded from it but failure.
const patience = 20 * time.Second

// server is a running server and a client of it.
type server struct {
	*web.Server
	t       *testing.T
	base    string
	client  *http.Client
	stop    context.CancelFunc
	stopped chan error
}

// serve runs a server on a free port until the test ends.
func serve(t *testing.T, o web.Options, timing web.Timing) *server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	ws, err := web.NewWithTiming(o, timing)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tr := &http.Transport{}
	s := &server{
		Server: ws, t: t, base: "http://" + ws.Addr().String(), stop: cancel, stopped: make(chan error, 1),
		client: &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	go func() { s.stopped <- ws.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		tr.CloseIdleConnections()
		select {
		case err := <-s.stopped:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run did not return")
		}
		tr.CloseIdleConnections()
	})
	return s
}

// halt stops the server and waits for Run.
func (s *server) halt() {
	s.t.Helper()
	s.stop()
	select {
	case err := <-s.stopped:
		s.stopped <- err
	case <-time.After(patience):
		s.t.Fatal("Run did not return")
	}
}

// request makes a request; headers are pairs.
func (s *server) request(method, path string, body io.Reader, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// answer is a response whose body was read.
type answer struct {
	Status     string
	StatusCode int
	Header     http.Header
	cookies    []*http.Cookie
}

func (a answer) Cookies() []*http.Cookie { return a.cookies }

// do sends a request and returns the answer and its body.
func (s *server) do(r *http.Request) (answer, string) {
	s.t.Helper()
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp.Status, resp.StatusCode, resp.Header, resp.Cookies()}, string(b)
}

func (s *server) get(path string, headers ...string) (answer, string) {
	s.t.Helper()
	return s.do(s.request(http.MethodGet, path, nil, headers...))
}

// openStream is an answer that has no end; the test's end closes it.
type openStream struct {
	Header http.Header
	Body   io.ReadCloser
}

// open sends a GET and returns the answer while it streams.
func (s *server) open(path string, headers ...string) openStream {
	s.t.Helper()
	resp, err := s.client.Do(s.request(http.MethodGet, path, nil, headers...))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("GET %s: %s: %s", path, resp.Status, b)
	}
	return openStream{resp.Header, resp.Body}
}

// errorCode returns the code of an error answer, after checking its form.
func errorCode(t *testing.T, resp answer, body string) string {
	t.Helper()
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type = %q, want application/json; body %s", got, body)
	}
	var e struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil || e.Error == nil || e.Error.Code == "" || e.Error.Message == "" {
		t.Errorf(`body = %s, want {"error":{"code","message"}}`, body)
		return ""
	}
	return e.Error.Code
}

// receive waits for a value of a channel.
func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// waitForViewers returns when so many streams are open.
func (s *server) waitForViewers(pictures, detections int) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		p, d := s.Viewers()
		if p == pictures && d == detections {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d viewers of pictures and %d of detections, want %d and %d", p, d, pictures, detections)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	taken := serve(t, web.Options{Backend: newBackend()}, web.Timing{}).Addr().String()
	cases := []struct {
		name string
		opts web.Options
		want string
	}{
		{"no backend", web.Options{Listen: "127.0.0.1:0"}, "new web server: no Backend"},
		{
			"port in use",
			web.Options{Listen: taken, Backend: newBackend()},
			"listen on " + taken + ": address already in use; another program, perhaps another edgecam, has this port: stop it or set server.listen to a free one",
		},
		{
			"no port",
			web.Options{Listen: "127.0.0.1", Backend: newBackend()},
			"listen on 127.0.0.1: missing port in address; write server.listen as host:port, for example 127.0.0.1:8080",
		},
		{
			"every address without login",
			web.Options{Listen: ":0", Backend: newBackend()},
			"listen on :0: other machines reach this address and no login is configured; set server.auth (user, and password_hash from `edgecam hash-password`), or listen on 127.0.0.1",
		},
		{
			"IPv6 wildcard without login",
			web.Options{Listen: "[::]:0", Backend: newBackend()},
			"listen on [::]:0: other machines reach this address and no login is configured; set server.auth (user, and password_hash from `edgecam hash-password`), or listen on 127.0.0.1",
		},
		{
			"network address without login",
			web.Options{Listen: "192.0.2.1:8080", Backend: newBackend()},
			"listen on 192.0.2.1:8080: other machines reach this address and no login is configured; set server.auth (user, and password_hash from `edgecam hash-password`), or listen on 127.0.0.1",
		},
		{
			"address of another machine",
			web.Options{Listen: "192.0.2.1:0", Backend: newBackend(), Auth: auth(t)},
			"listen on 192.0.2.1:0: cannot assign requested address; this machine does not have the address: set server.listen to one of its own",
		},
		{
			"no user",
			web.Options{Listen: "127.0.0.1:0", Backend: newBackend(), Auth: &web.Auth{Hash: auth(t).Hash}},
			"new web server: server.auth.user: it must have 1 to 256 bytes",
		},
		{
			"user with a colon",
			web.Options{Listen: "127.0.0.1:0", Backend: newBackend(), Auth: &web.Auth{User: "a:b", Hash: auth(t).Hash}},
			"new web server: server.auth.user: it must hold no colon and no control characters",
		},
		{
			"password in place of its hash",
			web.Options{Listen: "127.0.0.1:0", Backend: newBackend(), Auth: &web.Auth{User: "me", Hash: "hunter2"}},
			"new web server: server.auth.password_hash: not an argon2id hash: make one with `edgecam hash-password`",
		},
		{
			"hash that takes 2 GiB",
			web.Options{Listen: "127.0.0.1:0", Backend: newBackend(), Auth: &web.Auth{
				User: "me", Hash: "$argon2id$v=19$m=2097152,t=1,p=1$c2FsdHNhbHRzYWx0$a2V5a2V5a2V5a2V5a2V5a2V5",
			}},
			"new web server: server.auth.password_hash: its cost is outside of 8 MiB to 1 GiB and 1 to 64 passes: make one with `edgecam hash-password`",
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s, err := web.New(tc.opts)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if err.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestListenErrorIsTyped(t *testing.T) {
	_, err := web.New(web.Options{Listen: ":0", Backend: newBackend()})
	var le *web.ListenError
	if !errors.As(err, &le) || !errors.Is(err, web.ErrAuthRequired) || le.Address != ":0" || le.Hint == "" {
		t.Errorf("err = %#v, want a *ListenError for ErrAuthRequired", err)
	}
}

func TestCloseWithoutRunGivesThePortBack(t *testing.T) {
	s, err := web.New(web.Options{Listen: "127.0.0.1:0", Backend: newBackend()})
	if err != nil {
		t.Fatal(err)
	}
	addr := s.Addr().String()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	s, err = web.New(web.Options{Listen: addr, Backend: newBackend()})
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	s.Close()
}

func TestCloseEndsRun(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	if resp, _ := s.get("/healthz"); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	s.Close()
	if err := receive(t, s.stopped, "Run to return"); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	s.stopped <- nil
}

// Streams of every kind, one of them to a client that does not read, do not
// hold the server up.
func TestStopWithStreamsOpen(t *testing.T) {
	b := newBackend()
	// The patience with clients is far beyond the test's own.
	s := serve(t, web.Options{Backend: b}, web.Timing{Stall: time.Hour, Heartbeat: time.Hour, Grace: time.Hour})
	bodies := []io.Reader{}
	for _, path := range []string{"/api/v1/cameras/gate/stream.mjpeg", "/api/v1/live", "/api/v1/detections"} {
		bodies = append(bodies, s.open(path).Body)
	}
	stuck := dialSlow(t, s.Addr().String(), "/api/v1/cameras/gate/stream.mjpeg")
	stuck.readHeader()
	receive(t, b.opened, "stream 1")
	receive(t, b.opened, "stream 2")
	slow := receive(t, b.opened, "the slow stream")
	slow.put(huge("gate", 1))
	slow.put(huge("gate", 2))
	stuck.takePartHeader()

	s.halt()
	for i, body := range bodies {
		if _, err := io.Copy(io.Discard, body); err == nil {
			// A clean end is as good as a cut one: both tell the client.
			continue
		} else if !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("stream %d ended with %v", i, err)
		}
	}
	for range 3 {
		receive(t, b.closed, "the backend's streams to be closed")
	}
	if p, d := s.Viewers(); p != 0 || d != 0 {
		t.Errorf("viewers after the end: %d of pictures, %d of detections", p, d)
	}
}

// A request that runs when the server stops gets the grace time, and a new one
// is not taken.
func TestStopFinishesRequests(t *testing.T) {
	b := newBackend()
	asked, release := make(chan struct{}), make(chan struct{})
	b.snapshot = func(context.Context, string, bool) (web.Picture, error) {
		close(asked)
		<-release
		return picture("gate", 3), nil
	}
	s := serve(t, web.Options{Backend: b}, web.Timing{Grace: time.Hour})
	status := make(chan int)
	go func() {
		resp, err := s.client.Do(s.request(http.MethodGet, "/api/v1/cameras/gate/snapshot.jpg", nil))
		if err != nil {
			t.Errorf("snapshot: %v", err)
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	receive(t, asked, "the snapshot to be asked for")
	s.stop()
	close(release)
	if got := receive(t, status, "the snapshot"); got != http.StatusOK {
		t.Errorf("status %d, want 200", got)
	}
}
