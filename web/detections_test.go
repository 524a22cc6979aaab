package web_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"edgecam/internal/event"
	"edgecam/web"
)

func detection(camera string, seq uint64) *event.Detection {
	return &event.Detection{
		Camera: camera, Seq: seq, CapturedAt: taken, AgeMS: 41.5, RTPTime: 90000, Width: 768, Height: 576,
		Objects: []event.Object{{Track: 3, Label: "person", Score: 0.5, Box: [4]float32{0, 0.25, 0.5, 1}}},
	}
}

const detectionJSON = `{"camera":"%s","seq":%d,"captured_at":"2026-03-01T08:30:15.123456789Z","age_ms":41.5,"rtp_time":90000,"width":768,"height":576,` +
	`"objects":[{"track":3,"label":"person","score":0.5,"box":[0,0.25,0.5,1]}]}`

// sse reads the blocks of an event stream, each without its blank line.
type sse struct {
	t *testing.T
	r *bufio.Reader
}

// events opens the stream and reads the first block, after which the
// subscription exists.
func (s *server) events(query string) *sse {
	s.t.Helper()
	resp := s.open("/api/v1/detections" + query)
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		s.t.Errorf("Content-Type = %q", got)
	}
	e := &sse{t: s.t, r: bufio.NewReader(resp.Body)}
	if got := e.block(); got != "retry: 2000" {
		s.t.Errorf("first block = %q, want the retry time", got)
	}
	return e
}

func (e *sse) block() string {
	e.t.Helper()
	var lines []string
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			e.t.Fatalf("read event: %v after %q", err, lines)
		}
		if line == "\n" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

func TestDetectionsAreSentAtOnceInOrder(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	e := s.events("")
	for seq := uint64(1); seq <= 200; seq++ {
		for _, camera := range []string{"gate", "yard"} {
			b.Publish(detection(camera, seq))
			want := fmt.Sprintf("id: %s:%d\ndata: "+detectionJSON, camera, seq, camera, seq)
			if got := e.block(); got != want {
				t.Fatalf("got  %q\nwant %q", got, want)
			}
		}
	}
}

func TestDetectionsFilter(t *testing.T) {
	cases := []struct{ query, want string }{
		{"", "gate:1 yard:1"},
		{"?camera=yard", "yard:1"},
		{"?camera=yard&camera=gate", "gate:1 yard:1"},
	}
	for _, tc := range cases {
		t.Run(tc.query, func(t *testing.T) {
			b := newBackend()
			s := serve(t, web.Options{Backend: b}, web.Timing{})
			e := s.events(tc.query)
			b.Publish(detection("gate", 1))
			b.Publish(detection("yard", 1))
			var got []string
			for range strings.Fields(tc.want) {
				id, _, _ := strings.Cut(e.block(), "\n")
				got = append(got, strings.TrimPrefix(id, "id: "))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestDetectionsOfNothingAreSent(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	e := s.events("")
	d := detection("gate", 1)
	d.Objects = nil
	b.Publish(d)
	if got := e.block(); !strings.HasSuffix(got, `"objects":[]}`) {
		t.Errorf("event = %q, want an empty list of objects", got)
	}
}

// Text from a model or a camera cannot end a line, an event or a script.
func TestDetectionsEscape(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	e := s.events("")
	d := detection("gate", 1)
	d.Objects[0].Label = "a\n\nid: x\r\ndata: </script>\u2028"
	b.Publish(d)
	if got := e.block(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `a\n\nid: x\r\ndata: \u003c/script\u003e\u2028`) {
		t.Errorf("event = %q", got)
	}
}

func TestDetectionsHeartbeat(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{Heartbeat: time.Millisecond})
	e := s.events("")
	for range 3 {
		if got := e.block(); got != ": nothing new" {
			t.Fatalf("got %q, want a comment", got)
		}
	}
	b.Publish(detection("gate", 1))
	for {
		if got := e.block(); got != ": nothing new" {
			if !strings.HasPrefix(got, "id: gate:1\n") {
				t.Errorf("got %q, want the event", got)
			}
			return
		}
	}
}

// A number that JSON does not have costs its own event and nothing else.
func TestDetectionsWithoutNumbers(t *testing.T) {
	var log bytes.Buffer
	b := newBackend()
	s := serve(t, web.Options{Backend: b, Logger: slog.New(slog.NewTextHandler(&log, nil))}, web.Timing{})
	e := s.events("")
	for i, v := range []float64{math.NaN(), math.Inf(1)} {
		d := detection("gate", uint64(i+1))
		if d.AgeMS = v; i == 1 {
			d.AgeMS, d.Objects[0].Score = 1, float32(v)
		}
		b.Publish(d)
		b.Publish(detection("yard", uint64(i+1)))
		if got, want := e.block(), fmt.Sprintf("id: yard:%d\n", i+1); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s.halt()
	if got := strings.Count(log.String(), "encode detection"); got != 1 {
		t.Errorf("logged %d times, want once a stream:\n%s", got, log.String())
	}
}

func TestDetectionsEndWithTheBroker(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	resp := s.open("/api/v1/detections")
	b.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream ended with %v, want a clean end", err)
	}
	s.waitForViewers(0, 0)
}

func TestDetectionsViewerLimit(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b, MaxViewers: 2}, web.Timing{})
	s.events("")
	s.events("")
	resp, body := s.get("/api/v1/detections")
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusServiceUnavailable || got != "too_many_viewers" {
		t.Errorf("%s, code %q, want 503, too_many_viewers", resp.Status, got)
	}
	s.open("/api/v1/live") // counted on its own
	s.waitForViewers(1, 2)
}
