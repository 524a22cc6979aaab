package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"

	"edgecam/web"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestCameraJSON(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	_, body := s.get("/api/v1/cameras/gate")
	want := `{"id":"gate","name":"Küche / \u003cb\u003eTor\u003c/b\u003e","state":"live","reason":"","since":"2026-03-01T08:00:00Z","codec":"h264",` +
		`"width":768,"height":576,"fps":10,"decoder":"h264","decoder_note":"","pixel_format":"yuv420p","memory":"pinned","transport":"tcp","tls":"verified","track":{"index":1,"of":2,"codec":"h264","control":"trackID=0"},"attempts":1,` +
		`"last_error":{"at":"2026-03-01T08:00:00Z","reason":"The camera closed the session"},"damaged":3,"detecting":true,"inferred_fps":9.5,"analysed":{"fps":9.5,"asked_fps":10,"weight":2,"reduced_because":"the engine cannot keep up"},"frames":120,"inferred":100,"dropped":{"replaced":20},` +
		`"age_ms":{"p50":41,"p95":80,"p99":120},"stages_ms":{"decoded":{"p50":3,"p95":4,"p99":5},"batched":null,"inferred":null,"published":null},` +
		`"pool":{"slots":12,"in_use":5,"high_water":7,"exhausted":0,"bytes":4096,"pinned":true,"huge_pages":false}}` + "\n"
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestCamerasOfNoCamera(t *testing.T) {
	b := newBackend()
	b.cameras = nil
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	if _, body := s.get("/api/v1/cameras"); body != "[]\n" {
		t.Errorf("body = %q, want an empty list", body)
	}
}

func TestSystemSaysWhetherThereIsALogin(t *testing.T) {
	for name, o := range map[string]web.Options{"open": {}, "login": {Auth: auth(t)}} {
		t.Run(name, func(t *testing.T) {
			o.Backend = newBackend()
			s := serve(t, o, web.Timing{})
			r := s.request(http.MethodGet, "/api/v1/system", nil)
			r.SetBasicAuth(theUser, thePassword)
			_, body := s.do(r)
			var got web.System
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			if got.Login != (o.Auth != nil) {
				t.Errorf("login = %v", got.Login)
			}
		})
	}
}

// What the backend holds is not changed by answering.
func TestAnsweringChangesNothing(t *testing.T) {
	b := newBackend()
	b.cameras[0].AgeMS.P50 = nan
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	s.get("/api/v1/cameras")
	if b.cameras[0].AgeMS == nil || b.cameras[1].Dropped != nil {
		t.Error("the backend's cameras were changed")
	}
}

func TestReadyz(t *testing.T) {
	b := newBackend()
	s := serve(t, web.Options{Backend: b}, web.Timing{})
	if resp, body := s.get("/readyz"); resp.StatusCode != http.StatusOK || body != "{\"status\":\"ok\"}\n" {
		t.Errorf("%s %s", resp.Status, body)
	}
	b.mu.Lock()
	b.notReady = "no camera is live"
	b.mu.Unlock()
	resp, body := s.get("/readyz")
	if want := `{"error":{"code":"not_ready","message":"no camera is live"}}` + "\n"; resp.StatusCode != http.StatusServiceUnavailable || body != want {
		t.Errorf("%s %s, want 503 %s", resp.Status, body, want)
	}
	if resp, _ := s.get("/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("healthz: %s, want 200: the process is alive", resp.Status)
	}
}

func TestMetricsRoute(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "edgecam_up 1\n")
	})
	s := serve(t, web.Options{Backend: newBackend(), Metrics: h}, web.Timing{})
	if resp, body := s.get("/metrics"); body != "edgecam_up 1\n" || resp.Header.Get("Content-Type") != "text/plain; version=0.0.4" {
		t.Errorf("%s %s %q", resp.Status, resp.Header.Get("Content-Type"), body)
	}
	without := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	resp, body := without.get("/metrics")
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusNotFound || got != "not_found" {
		t.Errorf("without metrics: %s %s", resp.Status, got)
	}
}

func TestErrors(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	cases := []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/api", 404, "not_found"},
		{"GET", "/api/", 404, "not_found"},
		{"GET", "/api/v1", 404, "not_found"},
		{"GET", "/api/v2/system", 404, "not_found"},
		{"POST", "/api/v1/nothing", 404, "not_found"},
		{"DELETE", "/nothing/at/all", 404, "not_found"},
		{"GET", "/api/v1/system/", 404, "not_found"},
		{"GET", "/api/v1//system", 404, "not_found"},
		{"GET", "//api/v1/system", 404, "not_found"},
		{"GET", "/api/v1/./system", 404, "not_found"},
		{"GET", "/api/v1/x/../system", 404, "not_found"},
		{"GET", "/api/v1/%73ystem", 404, "not_found"},
		{"GET", "/API/v1/system", 404, "not_found"},
		{"GET", "/Api/V1/System", 404, "not_found"},
		{"GET", "/Metrics", 404, "not_found"},
		{"GET", "/api/v1/cameras/", 404, "not_found"},
		{"GET", "/api/v1/cameras/%2e%2e/system", 404, "not_found"},
		{"GET", "/api/v1/cameras/..%2fsystem", 404, "not_found"},
		{"GET", "/api/v1/cameras/Gate", 404, "camera_not_found"},
		{"GET", "/api/v1/cameras/" + strings.Repeat("a", 65), 404, "camera_not_found"},
		{"GET", "/api/v1/cameras/gate/", 404, "not_found"},
		{"GET", "/api/v1/cameras/gate/snapshot.JPG", 404, "not_found"},
		{"POST", "/api/v1/system", 405, "method_not_allowed"},
		{"DELETE", "/api/v1/cameras/gate", 405, "method_not_allowed"},
		{"GET", "/api/v1/cameras/gate/whep", 405, "method_not_allowed"},
		{"PUT", "/", 405, "method_not_allowed"},
		{"BREW", "/healthz", 405, "method_not_allowed"},
		{"GET", "/logout", 405, "method_not_allowed"},
	}
	for _, tc := range cases {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			resp, body := s.do(s.request(tc.method, tc.path, nil))
			if got := errorCode(t, resp, body); resp.StatusCode != tc.status || got != tc.code {
				t.Errorf("%s, code %q, want %d, %q", resp.Status, got, tc.status, tc.code)
			}
			if got := resp.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control = %q", got)
			}
			if allow := resp.Header.Get("Allow"); (tc.status == 405) != (allow != "") {
				t.Errorf("Allow = %q", allow)
			}
		})
	}
}

func TestHEAD(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend(), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
	})}, web.Timing{})
	for path, want := range map[string]string{
		"/":                                 "text/html; charset=utf-8",
		"/healthz":                          "application/json",
		"/readyz":                           "application/json",
		"/metrics":                          "text/plain",
		"/login.css":                        "text/css; charset=utf-8",
		"/api/v1/system":                    "application/json",
		"/api/v1/cameras":                   "application/json",
		"/api/v1/cameras/gate":              "application/json",
		"/api/v1/cameras/gate/snapshot.jpg": "image/jpeg",
		"/api/v1/cameras/gate/stream.mjpeg": "multipart/x-mixed-replace; boundary=edgecam-next-picture",
		"/api/v1/live":                      "multipart/mixed; boundary=edgecam-next-picture",
		"/api/v1/detections":                "text/event-stream",
		"/api/v1/openapi.yaml":              "application/yaml",
	} {
		t.Run(path, func(t *testing.T) {
			resp, body := s.do(s.request(http.MethodHead, path, nil))
			if resp.StatusCode != http.StatusOK || body != "" || resp.Header.Get("Content-Type") != want {
				t.Errorf("%s, %q, %q, want 200, %q, no body", resp.Status, resp.Header.Get("Content-Type"), body, want)
			}
		})
	}
}

func TestPanicBecomesAnError(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, web.Options{
		Backend: newBackend(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the cause") }),
	}, web.Timing{})
	resp, body := s.get("/metrics")
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusInternalServerError || got != "internal" {
		t.Errorf("%s, code %q", resp.Status, got)
	}
	if strings.Contains(body, "the cause") {
		t.Errorf("the answer shows the panic: %s", body)
	}
	if resp, _ := s.get("/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("after the panic: %s", resp.Status)
	}
	s.halt()
	if got := log.String(); strings.Count(got, "the cause") != 1 || !strings.Contains(got, "TestPanicBecomesAnError") {
		t.Errorf("log = %s, want the cause once, with its stack", got)
	}
}

// A panic in the middle of an answer must not look like its end.
func TestPanicInAStreamCutsIt(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend(), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("the cause")
	})}, web.Timing{})
	resp := s.open("/metrics")
	if b, err := io.ReadAll(resp.Body); string(b) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream gave %q and ended with %v, want half and unexpected EOF", b, err)
	}
}
