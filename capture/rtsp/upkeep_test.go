//go:build cgo

package rtsp_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/framepool"
)

// alarm closes a connection, or whatever it is told, when it was not fed.
type alarm struct {
	timer *time.Timer
	limit time.Duration
}

func newAlarm(t *testing.T, limit time.Duration, do func()) *alarm {
	a := &alarm{timer: time.AfterFunc(limit, do), limit: limit}
	t.Cleanup(func() { a.timer.Stop() })
	return a
}

func (a *alarm) feed() { a.timer.Reset(a.limit) }

// Cameras that want signs of life get them, whatever they answer.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	const limit = 5 * time.Second  // the camera's session timeout
	views := map[string]*viewing{} // all wait together
	for _, tt := range []struct {
		name   string
		public string
		counts string // the one method that keeps the session; "" = any request
		answer func(c *scriptConn, req scriptRequest)
	}{
		{name: "as they should be"},
		{name: "answered 400 with another number", answer: func(c *scriptConn, req scriptRequest) {
			n, _ := strconv.Atoi(req.header.Get("CSeq"))
			req.header.Set("CSeq", strconv.Itoa(n-1))
			c.reply(req, 400, "", "")
		}},
		{name: "never answered", answer: func(*scriptConn, scriptRequest) {}},
		{name: "answered 454", answer: func(c *scriptConn, req scriptRequest) { c.reply(req, 454, "", "") }},
		{name: "without GET_PARAMETER", public: "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN", counts: "OPTIONS"},
		{name: "GET_PARAMETER alone counts", counts: "GET_PARAMETER"},
		{name: "GET_PARAMETER is announced and refused", counts: "OPTIONS", answer: func(c *scriptConn, req scriptRequest) {
			if req.method == "OPTIONS" {
				c.reply(req, 200, "", "")
			} else {
				c.reply(req, 501, "", "")
			}
		}},
	} {
		camera := &fieldCamera{t: t, sdp: goodSDP, public: tt.public, session: "77;timeout=5"}
		camera.film = func(string) (film, uint8) { return all.h264, 96 }
		var mu sync.Mutex
		alarms := map[*scriptConn]*alarm{}
		camera.change = func(c *scriptConn, req scriptRequest) bool {
			mu.Lock()
			defer mu.Unlock()
			a := alarms[c]
			if a == nil {
				if req.method == "PLAY" {
					alarms[c] = newAlarm(t, limit, func() { c.Close() })
				}
				return false
			}
			if tt.counts == "" || tt.counts == req.method {
				a.feed()
			}
			if tt.answer == nil || req.method == "TEARDOWN" {
				return false
			}
			tt.answer(c, req)
			return true
		}
		camera.start()
		views[tt.name] = view(t, rtsp.Options{URL: camera.url()}, nil)
	}
	for _, v := range views {
		v.await(t, capture.Live)
	}
	<-time.After(2*limit + time.Second)
	for name, v := range views {
		if st := v.Status(); st.State != capture.Live || st.Attempts != 1 {
			t.Errorf("%s: the camera is %s after %d sessions: %s", name, st.State, st.Attempts, st.Reason)
		}
	}
}

// Cameras that stop when they hear no receiver report get one in time, over
// either transport, and it tells the truth.
func TestReceiverReports(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	const limit = 5 * time.Second
	type listener struct {
		view                       *viewing
		reports, named, withSource atomic.Int64
		camera                     *fieldCamera
	}
	var listeners []*listener // all wait together
	for _, transport := range []rtsp.Transport{rtsp.TCP, rtsp.UDP} {
		l := &listener{}
		l.camera = &fieldCamera{t: t, sdp: goodSDP, film: func(string) (film, uint8) { return all.h264, 96 }}
		quiet := newAlarm(t, 2*limit, func() { l.camera.paused.Store(true) }) // until the first one
		l.camera.control = func(packet []byte) {
			packets, err := rtcp.Unmarshal(packet)
			if err != nil {
				t.Errorf("RTCP %x: %v", packet, err)
			}
			for _, p := range packets {
				switch p := p.(type) {
				case *rtcp.ReceiverReport:
					l.reports.Add(1)
					quiet.timer.Reset(limit)
					for _, r := range p.Reports {
						l.withSource.Add(1)
						if r.TotalLost != 0 || r.FractionLost != 0 || r.LastSequenceNumber == 0 {
							t.Errorf("report is %+v", r)
						}
					}
				case *rtcp.SourceDescription:
					l.named.Add(1)
				}
			}
		}
		l.camera.start()
		l.view = view(t, rtsp.Options{URL: l.camera.url(), Transport: transport}, nil)
		listeners = append(listeners, l)
	}
	for _, l := range listeners {
		l.view.await(t, capture.Live)
	}
	<-time.After(2*limit + time.Second)
	for _, l := range listeners {
		st := l.view.Status()
		if l.camera.paused.Load() {
			t.Errorf("%s: the camera heard no report in time", st.Transport)
		}
		if st.State != capture.Live || st.Attempts != 1 {
			t.Errorf("%s: the camera is %s after %d sessions: %s", st.Transport, st.State, st.Attempts, st.Reason)
		}
		if l.reports.Load() < 4 || l.named.Load() < 4 || l.withSource.Load() < 4 {
			t.Errorf("%s: %d reports, %d of a source, %d with a name", st.Transport, l.reports.Load(), l.withSource.Load(), l.named.Load())
		}
	}
}

// What cameras ask of us is answered, and does not end the session; a good-bye
// leads to one new session.
func TestRequestsOfTheCamera(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	for _, tt := range []struct {
		request  string
		sessions uint64
	}{
		{"OPTIONS * RTSP/1.0\r\nCSeq: 901\r\n\r\n", 1},
		{"OPTIONS rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\n\r\n", 1},
		{"SET_PARAMETER rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\nContent-Length: 7\r\n\r\na: b\r\n\r", 1},
		{"GET_PARAMETER rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\n\r\n", 1},
		{"ANNOUNCE rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\nContent-Type: application/sdp\r\nContent-Length: " +
			strconv.Itoa(len(goodSDP)) + "\r\n\r\n" + goodSDP, 1},
		{"SET_PARAMETER /s RTSP/1.0\r\nCSeq: 901\r\n\r\n", 1},
		{"PLAY_NOTIFY rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\n\r\n", 1},
		{"REDIRECT rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\nLocation: rtsp://127.0.0.1:1/s\r\n\r\n", 2},
		{"TEARDOWN rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 901\r\n\r\n", 2},
	} {
		method, _, _ := strings.Cut(tt.request, " ")
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			answered := make(chan string, 100)
			camera := &fieldCamera{t: t, sdp: goodSDP, film: func(string) (film, uint8) { return all.h264, 96 }}
			camera.change = func(_ *scriptConn, req scriptRequest) bool {
				if strings.HasPrefix(req.method, "answer") {
					answered <- req.method + " to " + req.header.Get("CSeq")
				}
				return false
			}
			camera.start()
			v := view(t, rtsp.Options{URL: camera.url()}, nil)
			v.await(t, capture.Live)
			camera.say(tt.request)
			select {
			case got := <-answered:
				if got != "answer 200 to 901" {
					t.Errorf("got %q", got)
				}
			case <-time.After(patience):
				t.Error("no answer")
			}
			if tt.sessions > 1 {
				if st := v.await(t, capture.Backoff); !strings.HasPrefix(st.Reason, "The camera closed the session (it ") {
					t.Errorf("reason is %q", st.Reason)
				}
				v.await(t, capture.Live)
			}
			v.pictures(t, 20)
			if st := v.Status(); st.State != capture.Live || st.Attempts != tt.sessions {
				t.Errorf("the camera is %s after %d sessions", st.State, st.Attempts)
			}
			if open := camera.open.Load(); open != 1 {
				t.Errorf("%d sessions are open", open)
			}
		})
	}
}

// A camera with room for one session gets each of them back.
func TestTeardownWhateverEndsTheSession(t *testing.T) {
	t.Parallel()
	all := makeFilms(t)
	reply := func(method string, code int, header string) func(*fieldCamera) {
		return func(camera *fieldCamera) {
			camera.change = func(c *scriptConn, req scriptRequest) bool {
				if req.method != method {
					return false
				}
				if method == "SETUP" {
					camera.open.Add(1)
				}
				c.reply(req, code, header, "")
				return true
			}
		}
	}
	unsupported := &capture.UnsupportedError{What: "size"}
	for _, tt := range []struct {
		name    string
		camera  func(*fieldCamera)
		options func(*capture.Options)
		act     func(*fieldCamera)
	}{
		{name: "the program ends"},
		{name: "video stalls", options: func(o *capture.Options) { o.StallTimeout = time.Second }, act: func(c *fieldCamera) { c.paused.Store(true) }},
		{name: "no decoder", options: func(o *capture.Options) {
			o.NewDecoder = func(capture.StreamInfo) (capture.Decoder, error) { return nil, unsupported }
		}},
		{name: "the decoder gives up", options: func(o *capture.Options) {
			o.NewDecoder = func(capture.StreamInfo) (capture.Decoder, error) { return failing{unsupported}, nil }
		}},
		{name: "the camera redirects", act: func(c *fieldCamera) {
			c.say("REDIRECT rtsp://127.0.0.1/s RTSP/1.0\r\nCSeq: 1\r\n\r\n")
		}},
		{name: "PLAY is refused", camera: reply("PLAY", 455, "")},
		{name: "SETUP gives UDP for TCP", camera: reply("SETUP", 200, "Session: 5\r\nTransport: RTP/AVP;unicast;server_port=6000-6001")},
		{name: "SETUP gives no transport", camera: reply("SETUP", 200, "Session: 5")},
		{name: "SETUP gives nonsense", camera: reply("SETUP", 200, "Session: 5\r\nTransport: RTP/AVP/TCP;unicast;interleaved=x")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			camera := &fieldCamera{t: t, sdp: goodSDP, film: func(string) (film, uint8) { return all.h264, 96 }}
			if tt.camera != nil {
				tt.camera(camera)
			}
			opened := make(chan struct{}, 100)
			change := camera.change
			camera.change = func(c *scriptConn, req scriptRequest) bool {
				done := change != nil && change(c, req)
				switch req.method {
				case "TEARDOWN":
					if done = true; camera.open.Load() > 0 {
						camera.open.Add(-1)
					}
					c.reply(req, 200, "", "")
				case "PLAY":
					opened <- struct{}{}
				}
				return done
			}
			camera.start()
			src, err := rtsp.New(rtsp.Options{URL: camera.url(), Transport: rtsp.TCP})
			if err != nil {
				t.Fatal(err)
			}
			o := capture.Options{
				Open:       func(int) (capture.Source, error) { return src, nil },
				NewDecoder: func(capture.StreamInfo) (capture.Decoder, error) { return frameDecoder{}, nil },
				Emit:       func(f *framepool.Frame) { f.Release() },
			}
			ended := make(chan capture.Status, 100)
			o.OnChange = func(st capture.Status) { ended <- st }
			if tt.options != nil {
				tt.options(&o)
			}
			s, err := capture.NewSupervisor(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = s.Run(ctx) }()
			live := false
			for st := range ended {
				if st.State == capture.Live && !live {
					live = true
					if tt.act == nil {
						break
					}
					tt.act(camera)
				} else if st.State != capture.Connecting && st.State != capture.Live {
					break
				}
			}
			cancel()
			<-done
			camera.settled(t)
		})
	}
}

// settled waits until the camera has no session left.
func (c *fieldCamera) settled(t *testing.T) {
	t.Helper()
	for limit := time.Now().Add(patience); c.open.Load() != 0; waitTick() {
		if time.Now().After(limit) {
			t.Fatalf("%d sessions were left at the camera", c.open.Load())
		}
	}
	if n := len(c.asked("SETUP")); n == 0 || n != len(c.asked("TEARDOWN")) {
		t.Errorf("%d SETUP, %d TEARDOWN", n, len(c.asked("TEARDOWN")))
	}
}

// failing is a decoder that cannot take what comes.
type failing struct{ err error }

func (f failing) Decode(*capture.AccessUnit, func(*framepool.Frame)) error { return f.err }
func (failing) Info() capture.DecoderInfo                                  { return capture.DecoderInfo{} }
func (failing) Close()                                                     {}

// A session that is opened while the program ends is torn down, too.
func TestTeardownOfASessionInTheMaking(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	camera := &fieldCamera{t: t, sdp: goodSDP}
	camera.change = func(_ *scriptConn, req scriptRequest) bool {
		if req.method == "SETUP" {
			cancel()
			<-time.After(100 * time.Millisecond) // a slow camera
		}
		return false
	}
	camera.start()
	src, err := rtsp.New(rtsp.Options{URL: camera.url(), Transport: rtsp.TCP}.Patient(patience))
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Run(ctx, &recorder{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	camera.settled(t)
}

// A camera without room is left alone for as long as it keeps old sessions.
func TestNoRoomForASession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		session, header string
		least           time.Duration
	}{
		{"1;timeout=5", "", time.Minute},
		{"1;timeout=100", "", 100 * time.Second},
		{"1", "Retry-After: 90", 90 * time.Second},
		{"1;timeout=99999999", "", 10 * time.Minute},
	} {
		t.Run(tt.session+tt.header, func(t *testing.T) {
			t.Parallel()
			camera := &fieldCamera{t: t, sdp: goodSDP, session: tt.session}
			var setups atomic.Int64
			camera.change = func(c *scriptConn, req scriptRequest) bool {
				switch {
				case req.method == "SETUP" && setups.Add(1) > 1:
					c.reply(req, 453, tt.header, "")
					return true
				case req.method == "PLAY":
					c.Close() // without a word: the session stays open
					return true
				}
				return false
			}
			camera.start()
			s := supervise(t, rtsp.Options{URL: camera.url(), Transport: rtsp.TCP}, nil)
			for {
				st := s.await(t, capture.Backoff)
				if !strings.Contains(st.Reason, "(453)") {
					continue
				}
				if wait := st.RetryAt.Sub(st.Since); wait < tt.least-time.Second {
					t.Errorf("waits %v, want %v at least", wait, tt.least)
				}
				return
			}
		})
	}
}

// A session that the camera forgot before it played is made anew at once, and
// its id goes back without parameters.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"A;timeout=30", "A ; Timeout = 30", "A;timeout=", "A;timeout=-1", "A;timeout=30s", "A;x;y=z", "A"} {
		t.Run(session, func(t *testing.T) {
			t.Parallel()
			var plays atomic.Int64
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				switch req.method {
				case "SETUP":
					c.reply(req, 200, "Session: "+session+"\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1", "")
					return true
				case "PLAY":
					if got := req.header.Get("Session"); got != "A" {
						t.Errorf("PLAY names session %q", got)
					}
					if plays.Add(1) == 1 {
						c.reply(req, 454, "", "")
						return true
					}
				}
				return false
			}))
			receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 3)
		})
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		var plays atomic.Int64
		addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
			if req.method == "PLAY" {
				plays.Add(1)
				c.reply(req, 454, "", "")
				return true
			}
			return false
		}))
		_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 1)
		var status *capture.StatusError
		if !errors.As(err, &status) || status.Code != 454 || plays.Load() != 2 {
			t.Errorf("error is %v after %d PLAY", err, plays.Load())
		}
	})
}

// Answers with the wrong number, without one, twice, or announced by an
// interim one are taken.
func TestNumbersOfAnswers(t *testing.T) {
	t.Parallel()
	shift := func(by int) func(*scriptConn, scriptRequest) bool {
		return func(_ *scriptConn, req scriptRequest) bool {
			n, _ := strconv.Atoi(req.header.Get("CSeq"))
			req.header.Set("CSeq", strconv.Itoa(n+by))
			return false
		}
	}
	for name, change := range map[string]func(*scriptConn, scriptRequest) bool{
		"one less": shift(-1),
		"more":     shift(100),
		"always 0": func(_ *scriptConn, req scriptRequest) bool {
			req.header.Set("CSeq", fmt.Sprint(0, req.method))
			return false
		},
		"interim": func(c *scriptConn, req scriptRequest) bool {
			c.reply(req, 100, "", "")
			return false
		},
		"OPTIONS twice": func(c *scriptConn, req scriptRequest) bool {
			if req.method == "OPTIONS" {
				c.reply(req, 200, "Public: DESCRIBE", "")
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := startScript(t, obedient(change))
			receive(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 3)
		})
	}
}

// A camera that refuses to send plainly what it describes as encrypted is told
// so by that name, after both transports were tried.
func TestEncryptedMediaIsNamed(t *testing.T) {
	t.Parallel()
	camera := &fieldCamera{t: t, sdp: strings.Replace(goodSDP, "RTP/AVP", "RTP/SAVP", 1) + "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAA\r\n"}
	camera.change = func(c *scriptConn, req scriptRequest) bool {
		if req.method == "SETUP" {
			c.reply(req, 461, "", "")
		}
		return req.method == "SETUP"
	}
	camera.start()
	_, err := attempt(t, rtsp.Options{URL: camera.url()}, 1)
	want := "unsupported encrypted media (RTP/SAVP), which the camera did not set up: use rtsps:// in the URL, or switch the encryption of media (SRTP) off in the camera"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if n := len(camera.asked("SETUP")); n != 2 {
		t.Errorf("%d SETUP", n)
	}
}
