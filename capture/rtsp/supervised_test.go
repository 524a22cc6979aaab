package rtsp_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/rtsp"
	"edgecam/framepool"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

// frameDecoder gives an empty picture for each access unit: what is tested
// here is the way to it.
type frameDecoder struct{}

func (frameDecoder) Decode(au *capture.AccessUnit, emit func(*framepool.Frame)) error {
	emit(framepool.NewHeapFrame(framepool.Meta{
		Format: framepool.Gray8, Width: 1, Height: 1, Stride: [3]int{64}, Received: au.Received, CapturedAt: au.CapturedAt,
	}, [][]byte{make([]byte, 64)}))
	return nil
}
func (frameDecoder) Info() capture.DecoderInfo { return capture.DecoderInfo{Name: "none"} }
func (frameDecoder) Close()                    {}

// supervised is a supervisor on real sessions.
type supervised struct {
	*capture.Supervisor
	states chan capture.Status
	log    *testkit.Journal
}

func supervise(t *testing.T, o rtsp.Options, change func(*capture.Options)) *supervised {
	t.Helper()
	s := &supervised{states: make(chan capture.Status, 1000), log: &testkit.Journal{}}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Logger = logger
	o.Memory = &rtsp.TransportMemory{}
	c := capture.Options{
		Camera:     "gate",
		Open:       func(int) (capture.Source, error) { return rtsp.New(o) },
		NewDecoder: func(capture.StreamInfo) (capture.Decoder, error) { return frameDecoder{}, nil },
		Emit:       func(f *framepool.Frame) { f.Release() },
		OnChange:   func(st capture.Status) { s.states <- st },
		Logger:     logger,
	}
	if change != nil {
		change(&c)
	}
	var err error
	if s.Supervisor, err = capture.NewSupervisor(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		before := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took > 2*time.Second { // the contract's limit
			t.Errorf("Run took %v to end", took)
		}
		if t.Failed() {
			t.Log(s.log)
		}
	})
	return s
}

// await gives the first status in the state.
func (s *supervised) await(t *testing.T, state capture.State) capture.Status {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case st := <-s.states:
			if st.State == state {
				return st
			}
		case <-limit:
			t.Fatalf("never %s; now %+v", state, s.Status())
		}
	}
}

// A camera that goes away is told so, and found again when it comes back.
func TestReconnect(t *testing.T) {
	t.Parallel()
	camera, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url, addr := camera.URL(0), camera.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- camera.Run(ctx) }()

	s := supervise(t, rtsp.Options{URL: url}, nil)
	st := s.await(t, capture.Live)
	if st.Codec != capture.H264 || st.Transport != "tcp" || st.Track.String() != "video 1 of 1 (H.264)" {
		t.Errorf("status is %+v", st)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if st := s.await(t, capture.Backoff); st.Reason != "The camera closed the session" {
		t.Errorf("reason is %q", st.Reason)
	}
	if st := s.await(t, capture.Backoff); st.Reason != "Connection to "+addr+" refused: check the port, and that RTSP is switched on in the camera" {
		t.Errorf("reason is %q", st.Reason)
	}
	startSim(t, sim.Options{Listen: addr})
	s.await(t, capture.Live)
}

// A session that lives on without video is ended, and begun anew.
func TestStalledCamera(t *testing.T) {
	t.Parallel()
	camera := startSim(t, sim.Options{Fault: "stall:5"})
	s := supervise(t, rtsp.Options{URL: camera.URL(0)}, func(o *capture.Options) { o.StallTimeout = time.Second })
	s.await(t, capture.Live)
	if st := s.await(t, capture.Stalled); st.Reason != "No video for 1s although the session is open" {
		t.Errorf("reason is %q", st.Reason)
	}
	s.await(t, capture.Live)
}

// A camera in any trouble does not touch another one, and tells no password at
// any level of the log.
func TestTroubleOfOneCamera(t *testing.T) {
	t.Parallel()
	good := startSim(t, sim.Options{})
	fine := supervise(t, rtsp.Options{URL: good.URL(0)}, nil)
	fine.await(t, capture.Live)
	for _, tt := range []struct {
		fault  string
		state  capture.State
		reason string
	}{
		{"refuse", capture.Backoff, "Connection to ADDR refused: check the port, and that RTSP is switched on in the camera"},
		{"auth", capture.AuthFailed, `The camera did not accept the login of user "admin": check username and password`},
		{"notfound", capture.Backoff, "The camera has no stream at this path (404): check the path of the URL"},
		{"novideo", capture.Backoff, "No video track: the camera offers audio (PCMA); check the path of the URL and the camera's stream settings"},
		{"codec", capture.Unsupported, "Unsupported codec MPEG-4 part 2: set the camera's stream to H.264, H.265 or MJPEG"},
		{"silent", capture.Backoff, "ADDR accepts connections and does not answer within 500ms: restart the camera, or check that this is its RTSP port"},
		{"close:2", capture.Backoff, "The camera closed the session"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			bad := startSim(t, sim.Options{Fault: tt.fault, Cameras: []sim.Camera{{User: "admin", Password: secret}}})
			s := supervise(t, rtsp.Options{
				URL: bad.URL(0), Username: "admin", Password: secret, ReadTimeout: 500 * time.Millisecond,
			}, nil)
			st := s.await(t, tt.state)
			if want := strings.ReplaceAll(tt.reason, "ADDR", bad.Addr().String()); st.Reason != want {
				t.Errorf("reason is %q,\nwant         %q", st.Reason, want)
			}
			if st.RetryAt.Before(st.Since) {
				t.Errorf("no next attempt is announced: %+v", st)
			}
			mustNotLeak(t, s.log.String()+st.Reason)
		})
	}
	if st := fine.Status(); st.State != capture.Live || st.Attempts != 1 {
		t.Errorf("the good camera was touched: %+v", st)
	}
}
