package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"edgecam/web"
)

var script = strings.Repeat("console.log('edgecam');\n", 200)

// builtDashboard is what the dashboard's build leaves.
func builtDashboard() fstest.MapFS {
	return fstest.MapFS{
		"index.html":               {Data: []byte("<!doctype html><title>edgecam</title>")},
		"favicon.svg":              {Data: []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")},
		"assets/index-BxW3kq_9.js": {Data: []byte(script)},
		"assets/logo.png":          {Data: []byte("\x89PNG\r\n\x1a\n")},
		".secret":                  {Data: []byte("not for anyone")},
	}
}

func TestDashboardFiles(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend(), UI: builtDashboard()}, web.Timing{})
	const page, forever = "<!doctype html><title>edgecam</title>", "private, max-age=31536000, immutable"
	cases := []struct {
		path, contentType, cache, body string
	}{
		{"/", "text/html; charset=utf-8", "no-cache", page},
		{"/index.html", "text/html; charset=utf-8", "no-cache", page},
		{"/cameras/gate", "text/html; charset=utf-8", "no-cache", page},
		{"/system", "text/html; charset=utf-8", "no-cache", page},
		{"/cameras/K%C3%BCche", "text/html; charset=utf-8", "no-cache", page},
		{"/favicon.svg", "image/svg+xml", "no-cache", "<svg xmlns='http://www.w3.org/2000/svg'/>"},
		{"/assets/index-BxW3kq_9.js", "text/javascript; charset=utf-8", forever, script},
		{"/assets/logo.png", "image/png", "no-cache", "\x89PNG\r\n\x1a\n"},
	}
	for _, tc := range cases {
		t.Run(tc.path, func(t *testing.T) {
			resp, body := s.get(tc.path)
			if resp.StatusCode != http.StatusOK || body != tc.body || resp.Header.Get("Content-Type") != tc.contentType || resp.Header.Get("Cache-Control") != tc.cache {
				t.Errorf("%s %q %q %q", resp.Status, resp.Header.Get("Content-Type"), resp.Header.Get("Cache-Control"), body)
			}
			etag := resp.Header.Get("ETag")
			if resp, body := s.get(tc.path, "If-None-Match", etag); resp.StatusCode != http.StatusNotModified || body != "" {
				t.Errorf("with its ETag %s: %s", etag, resp.Status)
			}
		})
	}
}

func TestDashboardHasNoOtherFiles(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend(), UI: builtDashboard()}, web.Timing{})
	for _, path := range []string{
		"/.secret", "/assets", "/assets/", "/assets/missing.js", "/assets/missing", "/missing.css", "/../go.mod", "/%2e%2e/go.mod", "/..%2fgo.mod",
		"/assets/..%2f..%2fgo.mod", "/assets/../index.html", "/%5c..%5cgo.mod", "/assets//index-BxW3kq_9.js", "/ASSETS/index-BxW3kq_9.js", "/index.html/", "/x%00.html", "/api", "/LOGIN", "/logout/",
	} {
		t.Run(path, func(t *testing.T) {
			resp, body := s.get(path)
			if got := errorCode(t, resp, body); resp.StatusCode != http.StatusNotFound || got != "not_found" {
				t.Errorf("%s, code %q, want 404, not_found", resp.Status, got)
			}
		})
	}
}

func TestDashboardInGzip(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend(), UI: builtDashboard()}, web.Timing{})
	plain, _ := s.get("/assets/index-BxW3kq_9.js", "Accept-Encoding", "identity")
	r := s.request(http.MethodGet, "/assets/index-BxW3kq_9.js", nil, "Accept-Encoding", "br;q=1, gzip")
	resp, body := s.do(r)
	if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("Content-Encoding %q, Vary %q, %q", resp.Header.Get("Content-Encoding"), resp.Header.Get("Vary"), plain.Header.Get("Vary"))
	}
	if resp.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Error("both forms have one ETag")
	}
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != script {
		t.Errorf("%d bytes, %v, want the script", len(got), err)
	}
	if len(body) >= len(script) {
		t.Errorf("%d bytes in gzip, %d without", len(body), len(script))
	}
}

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip; q=0.000": false, "gzip;q=0.001": true,
		"gzip;q=1": true, "xgzip": false, "identity": false, "br;q=0,gzip;q=0.5": true,
	} {
		if got := web.AcceptsGzip(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

func TestDashboardThatWasNotBuilt(t *testing.T) {
	for name, ui := range map[string]fstest.MapFS{"empty": {}, "placeholder": {".keep": {}}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, web.Options{Backend: newBackend(), UI: ui}, web.Timing{})
			resp, body := s.get("/")
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, "<code>make build</code>") {
				t.Errorf("%s: %s", resp.Status, body)
			}
		})
	}
}
