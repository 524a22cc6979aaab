package rtsp_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

// secret is the password of all tests here; no output may hold it in any form.
const secret = `Sw%rd/f@sh ä?#`

// mustNotLeak fails if text holds the password in a form that something on the
// way would have given it.
func mustNotLeak(t *testing.T, text string) {
	t.Helper()
	forms := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("u", secret).String()[2:],
		"rd/f@sh", "rd%2Ff", "f%40sh", "Sw%25rd", `Sw%rd`,
	}
	for _, user := range []string{"admin", "viewer", ""} {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(user+":"+secret)))
	}
	for _, form := range forms {
		if strings.Contains(text, form) {
			t.Errorf("the password stands in the output as %q:\n%s", form, text)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		sim       sim.Options
		transport rtsp.Transport
		user      string
		read      time.Duration
		want      string // error text; ADDR is the camera's address
		reason    string
		temporary bool
	}{
		{
			name: "closed port", sim: sim.Options{Fault: "refuse"},
			want:   "dial ADDR: connection refused",
			reason: "Connection to ADDR refused: check the port, and that RTSP is switched on in the camera", temporary: true,
		},
		{
			name: "silent", sim: sim.Options{Fault: "silent"}, read: 200 * time.Millisecond,
			want:      "talk to ADDR: no RTSP answer within 200ms",
			reason:    "ADDR accepts connections and does not answer within 200ms: restart the camera, or check that this is its RTSP port",
			temporary: true,
		},
		{
			name: "wrong password", sim: sim.Options{Cameras: []sim.Camera{{User: "admin", Password: "other"}}}, user: "admin",
			want:   `DESCRIBE refused: the camera did not accept the login of user "admin"`,
			reason: `The camera did not accept the login of user "admin": check username and password`,
		},
		{
			name: "wrong password with basic", sim: sim.Options{Auth: "basic", Cameras: []sim.Camera{{User: "admin", Password: "other"}}}, user: "admin",
			want:   `DESCRIBE refused: the camera did not accept the login of user "admin"`,
			reason: `The camera did not accept the login of user "admin": check username and password`,
		},
		{
			name: "login refused whatever it is", sim: sim.Options{Fault: "auth"}, user: "viewer",
			want:   `DESCRIBE refused: the camera did not accept the login of user "viewer"`,
			reason: `The camera did not accept the login of user "viewer": check username and password`,
		},
		{
			name: "no login", sim: sim.Options{Fault: "auth"},
			want:   "DESCRIBE refused: the camera wants a login and none is configured",
			reason: "The camera asks for a login: set username and password",
		},
		{
			name: "wrong path", sim: sim.Options{Fault: "notfound"}, user: "admin",
			want:   "DESCRIBE answered 404 Not Found",
			reason: "The camera has no stream at this path (404): check the path of the URL", temporary: true,
		},
		{
			name: "audio alone", sim: sim.Options{Fault: "novideo"}, user: "admin",
			want:      "no video track: the camera offers audio (PCMA)",
			reason:    "No video track: the camera offers audio (PCMA); check the path of the URL and the camera's stream settings",
			temporary: true,
		},
		{
			name: "codec", sim: sim.Options{Fault: "codec"}, user: "admin",
			want:   "unsupported codec MPEG-4 part 2: set the camera's stream to H.264, H.265 or MJPEG",
			reason: "Unsupported codec MPEG-4 part 2: set the camera's stream to H.264, H.265 or MJPEG",
		},
		{
			name: "tcp to a camera that has udp alone", sim: sim.Options{Fault: "udponly"}, transport: rtsp.TCP, user: "admin",
			want:   "SETUP answered 461 Unsupported Transport",
			reason: "The camera does not send video over TCP (461): set transport to auto or udp", temporary: true,
		},
		{
			name: "udp to a camera that has tcp alone", sim: sim.Options{Fault: "tcponly"}, transport: rtsp.UDP, user: "admin",
			want:   "SETUP answered 461 Unsupported Transport",
			reason: "The camera does not send video over UDP (461): set transport to auto or tcp", temporary: true,
		},
		{
			name: "closed after three frames", sim: sim.Options{Fault: "close:3"}, user: "admin",
			want:   "the camera closed the session",
			reason: "The camera closed the session", temporary: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSim(t, tt.sim)
			log := &testkit.Journal{}
			o := rtsp.Options{
				URL: s.URL(0), Transport: tt.transport, ReadTimeout: tt.read,
				Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			}
			if tt.user != "" {
				o.Username, o.Password = tt.user, secret
			}
			_, err := attempt(t, o, 1000)
			var failure capture.Failure
			if !errors.As(err, &failure) {
				t.Fatalf("%v is no capture.Failure", err)
			}
			fill := strings.NewReplacer("ADDR", s.Addr().String())
			if got := failure.Error(); got != fill.Replace(tt.want) {
				t.Errorf("error is %q,\nwant        %q", got, fill.Replace(tt.want))
			}
			if got := failure.Reason(); got != fill.Replace(tt.reason) {
				t.Errorf("reason is %q,\nwant         %q", got, fill.Replace(tt.reason))
			}
			if failure.Temporary() != tt.temporary {
				t.Errorf("Temporary is %v", failure.Temporary())
			}
			mustNotLeak(t, err.Error()+failure.Reason()+log.String())
			if !strings.Contains(log.String(), "method=OPTIONS") && tt.name != "closed port" {
				t.Errorf("the debug log tells nothing of the session: %s", log)
			}
		})
	}
}

// A wrong password costs two requests with a login question at most: cameras
// lock accounts that see more.
func TestWrongPasswordIsTriedOnce(t *testing.T) {
	t.Parallel()
	requests := 0
	addr := startScript(t, func(c *scriptConn) {
		for {
			req, ok := c.read()
			if !ok {
				return
			}
			if req.method == "DESCRIBE" {
				requests++
			}
			if req.method == "OPTIONS" {
				c.reply(req, 200, "Public: DESCRIBE, SETUP, PLAY, TEARDOWN", "")
				continue
			}
			c.reply(req, 401, `WWW-Authenticate: Digest realm="cam", nonce="abc"`, "")
		}
	})
	_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Username: "admin", Password: secret}, 1)
	var auth *capture.AuthError
	if !errors.As(err, &auth) || auth.User != "admin" {
		t.Errorf("error is %v, want an AuthError of admin", err)
	}
	if requests != 2 {
		t.Errorf("%d DESCRIBE requests, want 2: one to be asked, one to answer", requests)
	}
}

func TestNameThatDoesNotResolve(t *testing.T) {
	t.Parallel()
	// RFC 6761 keeps .invalid from ever resolving.
	_, err := attempt(t, rtsp.Options{URL: "rtsp://camera.invalid/x", Username: "admin", Password: secret}, 1)
	var unreachable *capture.UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Obstacle != capture.ObstacleName {
		t.Fatalf("error is %#v, want an UnreachableError for the name", err)
	}
	if want := "The name in camera.invalid:554 does not resolve: check the host of the URL and the name server of this machine"; unreachable.Reason() != want {
		t.Errorf("reason is %q", unreachable.Reason())
	}
	mustNotLeak(t, err.Error())
}

// Whatever the session waits for, it ends soon after its context.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault string
		until func(*recorder) bool // when to end it
	}{
		{name: "while connecting to a silent host", fault: "silent", until: func(*recorder) bool { return true }},
		{name: "while playing", fault: "", until: func(r *recorder) bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.units) > 0 }},
		{name: "while stalled", fault: "stall:3", until: func(r *recorder) bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.units) > 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startSim(t, sim.Options{Fault: tt.fault})
			src, err := rtsp.New(rtsp.Options{URL: s.URL(0)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			r := &recorder{}
			done := make(chan error, 1)
			go func() { done <- src.Run(ctx, r) }()
			for limit := time.Now().Add(patience); !tt.until(r); {
				if time.Now().After(limit) {
					t.Fatal("nothing came")
				}
				waitTick()
			}
			cancel()
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("Run gives %v", err)
				}
			case <-time.After(2 * time.Second): // the contract's limit
				t.Error("Run did not end within 2s of its context")
				<-done
			}
		})
	}
}

// The session must be torn down on every way out, or the camera keeps it.
func TestTeardownOnEveryWayOut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sink capture.Sink
	}{
		{"the sink refuses the stream", refusingSink{}},
		{"the context ends", &recorder{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			methods := make(chan string, 100)
			addr := startScript(t, func(c *scriptConn) { c.playForever(methods) })
			src, err := rtsp.New(rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- src.Run(ctx, tt.sink) }()
			for m := range methods {
				if m == "PLAY" {
					cancel()
				}
				if m == "TEARDOWN" {
					break
				}
				if m == "gone" {
					t.Fatal("the connection ended without TEARDOWN")
				}
			}
			cancel()
			<-done
		})
	}
}

type refusingSink struct{}

func (refusingSink) Stream(capture.StreamInfo) error {
	return &capture.UnsupportedError{What: "size 1x1"}
}
func (refusingSink) AccessUnit(*capture.AccessUnit) {}

// waitTick lets other goroutines work while a test polls.
func waitTick() { <-time.After(5 * time.Millisecond) }
