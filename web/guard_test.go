package web_test

import (
	"net/http"
	"strings"
	"testing"

	"edgecam/web"
)

// Without a login only the machine's own names are served, so that a page of
// another site cannot reach the server by pointing its name to 127.0.0.1.
func TestHostCheck(t *testing.T) {
	open := serve(t, web.Options{Backend: newBackend(), Listen: "localhost:0"}, web.Timing{})
	named := secure(t, newBackend(), web.Timing{})
	cases := map[string]bool{
		"localhost": true, "localhost:8080": true, "LocalHost.": true, "127.0.0.1": true, "127.0.0.1:9999": true, "127.1.2.3": true, "[::1]": true, "[::1]:80": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "192.168.1.5": false,
		"0.0.0.0": false, "[fe80::1]": false, "localhost@evil.example": false, "evil.example#localhost": false, "evil.localhost": false,
	}
	for host, ok := range cases {
		t.Run(host, func(t *testing.T) {
			for _, path := range []string{"/", "/api/v1/cameras", "/healthz", "/nothing.x"} {
				resp, body := open.get(path, "Host", host)
				if ok != (resp.StatusCode != http.StatusMisdirectedRequest) && resp.StatusCode != http.StatusBadRequest {
					t.Errorf("%s: %s, want served: %v", path, resp.Status, ok)
				}
				if resp.StatusCode == http.StatusMisdirectedRequest && errorCode(t, resp, body) != "unknown_host" {
					t.Errorf("%s: %s", path, body)
				}
			}
			if resp, _ := named.get("/healthz", "Host", host); resp.StatusCode == http.StatusMisdirectedRequest {
				t.Errorf("with a login: %s, want any name served", resp.Status)
			}
		})
	}
}

func TestOriginCheck(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	cookie := s.session()
	own := strings.TrimPrefix(s.base, "http://")
	cases := []struct {
		name, method, path string
		headers            []string
		refused            bool
	}{
		{"no browser", "POST", "/logout", nil, false},
		{"own page", "POST", "/api/v1/cameras/gate/whep", []string{"Sec-Fetch-Site", "same-origin", "Origin", s.base}, false},
		{"own page, plain HTTP", "POST", "/api/v1/cameras/gate/whep", []string{"Origin", s.base}, false},
		{"other site posts", "POST", "/logout", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, true},
		{"other site posts, plain HTTP", "POST", "/logout", []string{"Origin", "http://evil.example"}, true},
		{"other port posts", "POST", "/logout", []string{"Origin", "http://127.0.0.1:1"}, true},
		{"no origin's page posts", "POST", "/logout", []string{"Origin", "null"}, true},
		{"other site logs in", "POST", "/login", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, true},
		{"same site, other origin", "DELETE", "/api/v1/system", []string{"Sec-Fetch-Site", "same-site"}, true},
		{"other site embeds a picture", "GET", "/api/v1/cameras/gate/snapshot.jpg", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, true},
		{"other site reads", "GET", "/api/v1/cameras", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, true},
		{"other site frames", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, true},
		{"link to the dashboard", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
		{"link to the API", "GET", "/api/v1/system", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
		{"typed address", "GET", "/api/v1/system", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
		{"own picture", "GET", "/api/v1/cameras/gate/snapshot.jpg", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "no-cors", "Host", own}, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			resp, body := s.do(s.request(tc.method, tc.path, nil, append([]string{"Cookie", cookie}, tc.headers...)...))
			if (resp.StatusCode == http.StatusForbidden) != tc.refused {
				t.Fatalf("%s, want refused: %v", resp.Status, tc.refused)
			}
			if tc.refused && errorCode(t, resp, body) != "cross_origin" {
				t.Errorf("body %s", body)
			}
		})
		if tc.name == "no browser" {
			cookie = s.session() // it was a logout
		}
	}
}

// Every answer carries the headers, whatever it is.
func TestSecurityHeaders(t *testing.T) {
	open := serve(t, web.Options{Backend: newBackend(), UI: builtDashboard()}, web.Timing{})
	locked := secure(t, newBackend(), web.Timing{})
	for _, s := range []*server{open, locked} {
		for _, path := range []string{"/", "/login", "/assets/index-BxW3kq_9.js", "/api/v1/system", "/api/v1/nothing", "/nothing.x", "//", "/healthz", "/api/v1/cameras/gate/snapshot.jpg"} {
			resp, _ := s.get(path)
			csp := resp.Header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
				if !strings.Contains(csp, want) {
					t.Errorf("%s: policy %q lacks %q", path, csp, want)
				}
			}
			if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
				t.Errorf("%s: policy %q is weak", path, csp)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
				"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %s = %q, want %q", path, name, got, want)
				}
			}
			if got := resp.Header.Get("Cache-Control"); got == "" {
				t.Errorf("%s: no Cache-Control", path)
			}
		}
	}
}
