package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"edgecam/web"
)

// huge returns a picture that no socket buffer holds.
func huge(camera string, seq uint64) web.Picture {
	p := picture(camera, seq)
	p.JPEG = make([]byte, 16<<20)
	return p
}

// slowClient asks for a stream on a socket with a small receive buffer.
type slowClient struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dialSlow(t *testing.T, addr, path string) *slowClient {
	t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096) }), err)
	}}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// HTTP/1.0: no chunks, so that what arrives is what the handler wrote.
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &slowClient{t: t, conn: conn, r: bufio.NewReaderSize(conn, 1024)}
}

// readHeader reads the answer's status and header.
func (c *slowClient) readHeader() {
	c.t.Helper()
	r := textproto.NewReader(c.r)
	status, err := r.ReadLine()
	if err != nil || !strings.HasSuffix(status, "200 OK") {
		c.t.Fatalf("status %q, %v", status, err)
	}
	if _, err := r.ReadMIMEHeader(); err != nil {
		c.t.Fatal(err)
	}
}

// takePartHeader returns once the first picture's header arrived: the handler
// is then in the middle of the picture, where it stays until the client reads.
func (c *slowClient) takePartHeader() *multipart.Part {
	c.t.Helper()
	p, err := multipart.NewReader(c.r, "edgecam-next-picture").NextRawPart()
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// parts reads a stream of pictures.
func parts(t *testing.T, resp openStream, media string) *multipart.Reader {
	t.Helper()
	got, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || got != media || params["boundary"] == "" {
		t.Fatalf("Content-Type = %q, want %s with a boundary", resp.Header.Get("Content-Type"), media)
	}
	return multipart.NewReader(resp.Body, params["boundary"])
}

// nextPart reads one picture and returns "camera:seq".
func nextPart(t *testing.T, r *multipart.Reader) (string, []byte) {
	t.Helper()
	p, err := r.NextRawPart()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p.Header.Get("Content-Length"))
	if err != nil || p.Header.Get("Content-Type") != "image/jpeg" {
		t.Fatalf("part header %v", p.Header)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(p, b); err != nil {
		t.Fatal(err)
	}
	return p.Header.Get("X-Camera") + ":" + p.Header.Get("X-Seq"), b
}

func TestSnapshot(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{Snapshot: 10 * time.Millisecond})
	waits := func(ctx context.Context, _ string, _ bool) (web.Picture, error) {
		<-ctx.Done()
		return web.Picture{}, ctx.Err()
	}
	fails := func(err error) func(context.Context, string, bool) (web.Picture, error) {
		return func(context.Context, string, bool) (web.Picture, error) { return web.Picture{}, err }
	}
	works := b.snapshot
	cases := []struct {
		name, path string
		snapshot   func(context.Context, string, bool) (web.Picture, error)
		status     int
		want       string // the body, or the error's code
	}{
		{"plain", "/api/v1/cameras/gate/snapshot.jpg", works, 200, string(noJPEG)},
		{"plain, asked for", "/api/v1/cameras/gate/snapshot.jpg?annotated=0", works, 200, string(noJPEG)},
		{"annotated", "/api/v1/cameras/gate/snapshot.jpg?annotated=1", works, 200, string(noJPEG) + "with boxes"},
		{"annotated how", "/api/v1/cameras/gate/snapshot.jpg?annotated=yes", works, 400, "invalid_parameter"},
		{"annotated twice", "/api/v1/cameras/gate/snapshot.jpg?annotated=1&annotated=0", works, 400, "invalid_parameter"},
		{"broken query", "/api/v1/cameras/gate/snapshot.jpg?annotated=%zz", works, 400, "invalid_parameter"},
		{"unknown camera", "/api/v1/cameras/nobody/snapshot.jpg", works, 404, "camera_not_found"},
		{"no camera's id", "/api/v1/cameras/GATE/snapshot.jpg", works, 404, "camera_not_found"},
		{"removed meanwhile", "/api/v1/cameras/gate/snapshot.jpg", fails(fmt.Errorf("snapshot gate: %w", web.ErrUnknownCamera)), 404, "camera_not_found"},
		{"no picture", "/api/v1/cameras/gate/snapshot.jpg", fails(fmt.Errorf("%w: the camera is not connected", web.ErrNoPicture)), 503, "no_picture"},
		{"no picture in time", "/api/v1/cameras/gate/snapshot.jpg", waits, 503, "no_picture"},
		{"busy", "/api/v1/cameras/gate/snapshot.jpg", fails(web.ErrBusy), 503, "too_many_viewers"},
		{"broken", "/api/v1/cameras/gate/snapshot.jpg", fails(errors.New("encoder: rtsp://user:secret@host")), 500, "internal"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			b.snapshot = tc.snapshot
			resp, body := s.get(tc.path)
			if resp.StatusCode != tc.status {
				t.Fatalf("%s: %s", resp.Status, body)
			}
			if tc.status != 200 {
				if got := errorCode(t, resp, body); got != tc.want {
					t.Errorf("code %q, want %q", got, tc.want)
				}
				if strings.Contains(body, "secret") {
					t.Errorf("the answer shows the internal error: %s", body)
				}
				return
			}
			if body != tc.want {
				t.Errorf("body %q, want %q", body, tc.want)
			}
			for name, want := range map[string]string{
				"Content-Type": "image/jpeg", "Cache-Control": "no-store", "X-Camera": "gate", "X-Seq": "9",
				"X-Captured-At": "2026-03-01T08:30:15.123456789Z", "Content-Disposition": `inline; filename="gate-20260301T083015Z.jpg"`,
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestMJPEG(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	r := parts(t, s.open("/api/v1/cameras/gate/stream.mjpeg?annotated=1"), "multipart/x-mixed-replace")
	st := receive(t, b.opened, "the stream")
	if len(st.cameras) != 1 || st.cameras[0] != "gate" || !st.annotated {
		t.Errorf("stream of %v, annotated %v, want gate, annotated", st.cameras, st.annotated)
	}
	for seq := uint64(1); seq <= 3; seq++ {
		b.show(picture("yard", seq)) // another camera's
		b.show(picture("gate", seq))
		got, jpeg := nextPart(t, r)
		if want := fmt.Sprintf("gate:%d", seq); got != want || string(jpeg) != string(noJPEG) {
			t.Errorf("part %s of %d bytes, want %s of %d", got, len(jpeg), want, len(noJPEG))
		}
	}
}

// The end of a picture must arrive with it: browsers show it only then.
func TestPictureEndsAtOnce(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	resp := s.open("/api/v1/cameras/gate/stream.mjpeg")
	receive(t, b.opened, "the stream")
	b.show(picture("gate", 1))
	want := "--edgecam-next-picture\r\nContent-Type: image/jpeg\r\nContent-Length: " + strconv.Itoa(len(noJPEG)) +
		"\r\nX-Camera: gate\r\nX-Seq: 1\r\nX-Captured-At: 2026-03-01T08:30:15.123456789Z\r\nX-Width: 768\r\nX-Height: 576\r\n\r\n" +
		string(noJPEG) + "\r\n--edgecam-next-picture\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLive(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	cases := []struct {
		name, query string
		want        []string
	}{
		{"all", "", []string{"gate:1", "yard:1"}},
		{"one", "?camera=yard", []string{"yard:1"}},
		{"two", "?camera=yard&camera=gate&camera=yard", []string{"gate:1", "yard:1"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := parts(t, s.open("/api/v1/live"+tc.query), "multipart/mixed")
			receive(t, b.opened, "the stream")
			b.show(picture("gate", 1))
			b.show(picture("yard", 1))
			for _, want := range tc.want {
				if got, _ := nextPart(t, r); got != want {
					t.Errorf("part %s, want %s", got, want)
				}
			}
		})
	}
}

// A viewer that does not read costs the others nothing, and when it reads
// again it gets the newest picture, not those in between.
func TestSlowViewerGetsNewestAndSlowsNobody(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{Stall: time.Hour})
	slow := dialSlow(t, s.Addr().String(), "/api/v1/cameras/gate/stream.mjpeg")
	slow.readHeader()
	slowStream := receive(t, b.opened, "the slow stream")
	slowParts := multipart.NewReader(slow.r, "edgecam-next-picture")

	b.show(huge("gate", 1))
	part, err := slowParts.NextRawPart() // only its header: the handler is now in the middle of the picture
	if err != nil || part.Header.Get("X-Seq") != "1" {
		t.Fatalf("first part: %v, %v", part, err)
	}

	fast := parts(t, s.open("/api/v1/cameras/gate/stream.mjpeg"), "multipart/x-mixed-replace")
	receive(t, b.opened, "the fast stream")
	const last = 50
	for seq := uint64(2); seq <= last; seq++ {
		b.show(picture("gate", seq))
		if got, _ := nextPart(t, fast); got != fmt.Sprintf("gate:%d", seq) {
			t.Fatalf("the fast viewer got %s, want gate:%d", got, seq)
		}
	}
	if got := slowStream.waiting(); got != 1 {
		t.Fatalf("%d pictures wait for the slow viewer, want the newest alone", got)
	}

	if n, err := io.Copy(io.Discard, io.LimitReader(part, 16<<20)); err != nil || n != 16<<20 {
		t.Fatalf("rest of the first picture: %d bytes, %v", n, err)
	}
	if got, _ := nextPart(t, slowParts); got != fmt.Sprintf("gate:%d", last) {
		t.Errorf("the slow viewer's next picture is %s, want gate:%d", got, last)
	}
}

// A viewer that takes nothing is cut off and its place is free again.
func TestDeadViewerIsDropped(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b, MaxViewers: 1}, web.Timing{Stall: 20 * time.Millisecond})
	dead := dialSlow(t, s.Addr().String(), "/api/v1/live")
	dead.readHeader()
	st := receive(t, b.opened, "the stream")

	resp, body := s.get("/api/v1/cameras/gate/stream.mjpeg")
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusServiceUnavailable || got != "too_many_viewers" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("second viewer: %s, code %q, Retry-After %q", resp.Status, got, resp.Header.Get("Retry-After"))
	}

	b.show(huge("gate", 1))
	if got := receive(t, b.closed, "the dead viewer to be dropped"); got != st {
		t.Error("another stream was closed")
	}
	s.waitForViewers(0, 0) // the place is given back right after the stream is closed
	r := parts(t, s.open("/api/v1/cameras/gate/stream.mjpeg"), "multipart/x-mixed-replace")
	receive(t, b.opened, "the next stream")
	b.show(picture("gate", 2))
	if got, _ := nextPart(t, r); got != "gate:2" {
		t.Errorf("the next viewer got %s, want gate:2", got)
	}
}

// A viewer that leaves is noticed although nothing is being sent.
func TestViewerLeaves(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	resp := s.open("/api/v1/live")
	st := receive(t, b.opened, "the stream")
	resp.Body.Close()
	if got := receive(t, b.closed, "the stream to be closed"); got != st {
		t.Error("another stream was closed")
	}
}

func TestStreamsRefuse(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	many := strings.Repeat("camera=gate&", 3)
	for i := range web.MaxFilters + 1 {
		many += fmt.Sprintf("camera=c%d&", i)
	}
	cases := []struct {
		path, code string
		status     int
	}{
		{"/api/v1/cameras/nobody/stream.mjpeg", "camera_not_found", 404},
		{"/api/v1/cameras/No%20Body/stream.mjpeg", "camera_not_found", 404},
		{"/api/v1/cameras/gate/stream.mjpeg?annotated=2", "invalid_parameter", 400},
		{"/api/v1/live?camera=nobody", "camera_not_found", 404},
		{"/api/v1/live?camera=", "invalid_parameter", 400},
		{"/api/v1/live?camera=../gate", "invalid_parameter", 400},
		{"/api/v1/live?camera=gate;camera=yard", "invalid_parameter", 400},
		{"/api/v1/live?" + many, "invalid_parameter", 400},
		{"/api/v1/live?annotated=", "invalid_parameter", 400},
		{"/api/v1/detections?camera=gate&camera=nobody", "camera_not_found", 404},
		{"/api/v1/detections?camera=Gate", "invalid_parameter", 400},
	}
	for _, tc := range cases {
		t.Run(tc.path[:min(len(tc.path), 60)], func(t *testing.T) {
			resp, body := s.get(tc.path)
			if got := errorCode(t, resp, body); resp.StatusCode != tc.status || got != tc.code {
				t.Errorf("%s, code %q, want %d, %q", resp.Status, got, tc.status, tc.code)
			}
		})
	}
	if p, d := s.Viewers(); p != 0 || d != 0 {
		t.Errorf("refused streams are counted: %d, %d", p, d)
	}
}
