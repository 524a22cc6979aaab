package web_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"edgecam/web"
)

// secure runs a server that wants a login, on every address of the machine.
func secure(t *testing.T, b *backend, timing web.Timing) *server {
	t.Helper()
	s := serve(t, web.Options{Listen: "0.0.0.0:0", Backend: b, Auth: auth(t), UI: builtDashboard(), Metrics: http.NotFoundHandler()}, timing)
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.base = "http://127.0.0.1:" + port
	return s
}

// logIn sends the form and returns the answer.
func (s *server) logIn(user, password, next string, headers ...string) (answer, string) {
	s.t.Helper()
	form := url.Values{"user": {user}, "password": {password}, "next": {next}}.Encode()
	return s.do(s.request(http.MethodPost, "/login", strings.NewReader(form),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...))
}

// session logs in and returns the Cookie header.
func (s *server) session() string {
	s.t.Helper()
	resp, body := s.logIn(theUser, thePassword, "/")
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		s.t.Fatalf("login: %s %s", resp.Status, body)
	}
	return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
}

// Nothing but the named list is answered without a login, however it is spelt
// and asked for; with one, everything that is a route is.
func TestEveryRouteNeedsALogin(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	public := map[string]bool{
		"GET /healthz": true, "HEAD /healthz": true, "GET /login": true, "HEAD /login": true, "POST /login": true,
		"GET /login.css": true, "HEAD /login.css": true,
	}
	paths := map[string]bool{"/index.html": true, "/assets/index-BxW3kq_9.js": true, "/cameras/gate": true, "/nothing": true, "/api/v9/x": true}
	for _, r := range s.RouteList() {
		_, path, _ := strings.Cut(r, " ")
		paths[strings.ReplaceAll(path, "{id}", "gate")] = true
	}
	spellings := map[string]func(string) string{
		"as it is":       func(p string) string { return p },
		"trailing slash": func(p string) string { return p + "/" },
		"double slash":   func(p string) string { return "/" + p },
		"upper case":     strings.ToUpper,
		"escaped": func(p string) string {
			return p[:1] + fmt.Sprintf("%%%02x", append([]byte(p), '/')[1]) + p[min(2, len(p)):]
		},
		"dotted":        func(p string) string { return "/." + p },
		"climbing":      func(p string) string { return "/healthz/.." + p },
		"climbing, hid": func(p string) string { return "/healthz/%2e%2e" + p },
		"query":         func(p string) string { return p + "?/healthz" },
		"login's name":  func(p string) string { return p + ";/login" },
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"}
	calls := 0
	for path := range paths {
		for name, spell := range spellings {
			for _, method := range methods {
				calls++
				resp, _ := s.do(s.request(method, spell(path), nil))
				exact := name == "as it is" || name == "query"
				if exact && (public[method+" "+path] || path == "/login" || path == "/login.css" || path == "/healthz") {
					if resp.StatusCode == http.StatusUnauthorized {
						t.Errorf("%s %s (%s): %s, want it public", method, spell(path), name, resp.Status)
					}
					continue
				}
				if resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s %s (%s): %s, want 401", method, spell(path), name, resp.Status)
				}
			}
		}
	}
	if calls < 1000 {
		t.Errorf("only %d calls were made", calls)
	}
}

func TestEveryRouteAnswersWithALogin(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	cookie := s.session()
	for _, r := range s.RouteList() {
		method, path, _ := strings.Cut(r, " ")
		if path == "/logout" {
			continue // it would end the session
		}
		resp, err := s.client.Do(s.request(method, strings.ReplaceAll(path, "{id}", "gate"), nil, "Cookie", cookie))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			t.Errorf("%s: %s", r, resp.Status)
		}
	}
}

func TestLogin(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	resp, body := s.logIn(theUser, thePassword, "/cameras/gate")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/cameras/gate" {
		t.Fatalf("%s to %q: %s", resp.Status, resp.Header.Get("Location"), body)
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.Domain != "" || c.MaxAge <= 0 || len(c.Value) < 43 {
		t.Errorf("cookie %s", resp.Header.Get("Set-Cookie"))
	}
	cookie := c.Name + "=" + c.Value
	if resp, _ := s.get("/api/v1/system", "Cookie", cookie); resp.StatusCode != http.StatusOK {
		t.Errorf("with the session: %s", resp.Status)
	}
	if resp, _ := s.get("/login?next=/x", "Cookie", cookie); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/x" {
		t.Errorf("login page with a session: %s to %q", resp.Status, resp.Header.Get("Location"))
	}
	other := s.session()
	if other == cookie {
		t.Error("two sessions have one token")
	}

	resp, _ = s.do(s.request(http.MethodPost, "/logout", nil, "Cookie", cookie))
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/login" || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("logout: %s to %q, cookie %q", resp.Status, resp.Header.Get("Location"), resp.Header.Get("Set-Cookie"))
	}
	if resp, _ := s.get("/api/v1/system", "Cookie", cookie); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %s, want 401", resp.Status)
	}
	if resp, _ := s.get("/api/v1/system", "Cookie", other); resp.StatusCode != http.StatusOK {
		t.Errorf("the other session after the logout: %s, want 200", resp.Status)
	}
}

func TestLoginRefuses(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	good := url.Values{"user": {theUser}, "password": {thePassword}}.Encode()
	cases := []struct {
		name, contentType, body string
		status                  int
		code                    string // "" = the page
	}{
		{"wrong password", form, "user=viewer&password=correct+horsf", 401, ""},
		{"wrong user", form, "user=Viewer&password=correct+horse", 401, ""},
		{"longer password", form, good + "x", 401, ""},
		{"no password", form, "user=viewer", 400, "invalid_form"},
		{"empty", form, "", 400, "invalid_form"},
		{"two passwords", form, good + "&password=x", 400, "invalid_form"},
		{"huge password", form, "user=viewer&password=" + strings.Repeat("x", 1025), 400, "invalid_form"},
		{"not a form", "application/json", `{"user":"viewer"}`, 415, "unsupported_media_type"},
		{"no type", "", good, 415, "unsupported_media_type"},
		{"broken escape", form, "user=%zz&password=x", 400, "invalid_form"},
		{"body too large", form, strings.Repeat("x", web.MaxBodyBytes+1), 413, "body_too_large"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := secure(t, newBackend(), web.Timing{}) // its own, for the limit of tries
			resp, body := s.do(s.request(http.MethodPost, "/login", strings.NewReader(tc.body), "Content-Type", tc.contentType))
			if resp.StatusCode != tc.status || len(resp.Cookies()) != 0 {
				t.Errorf("%s, cookies %v, want %d and none", resp.Status, resp.Cookies(), tc.status)
			}
			if tc.code == "" {
				if !strings.Contains(body, `<p class="problem" role="alert">Wrong user or password.</p>`) {
					t.Errorf("page = %s", body)
				}
			} else if got := errorCode(t, resp, body); got != tc.code {
				t.Errorf("code %q, want %q", got, tc.code)
			}
		})
	}
}

// A body of unknown length is bounded as well.
func TestLoginBodyWithoutLength(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	body := io.MultiReader(strings.NewReader("user="), strings.NewReader(strings.Repeat("x", web.MaxBodyBytes)))
	resp, answer := s.do(s.request(http.MethodPost, "/login", body, "Content-Type", "application/x-www-form-urlencoded"))
	if got := errorCode(t, resp, answer); resp.StatusCode != http.StatusRequestEntityTooLarge || got != "body_too_large" {
		t.Errorf("%s, code %q", resp.Status, got)
	}
}

// A body that never comes ends the request.
func TestBodyThatNeverComes(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{Body: 10 * time.Millisecond})
	r, w := io.Pipe()
	defer w.Close()
	resp, body := s.do(s.request(http.MethodPost, "/login", r, "Content-Type", "application/x-www-form-urlencoded"))
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusBadRequest || got != "unreadable_body" {
		t.Errorf("%s, code %q", resp.Status, got)
	}
}

func TestGETWithBodyIsRefused(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	resp, body := s.do(s.request(http.MethodGet, "/healthz", strings.NewReader("x")))
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusBadRequest || got != "unexpected_body" {
		t.Errorf("%s, code %q", resp.Status, got)
	}
}

func TestLoginPage(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	resp, body := s.get("/login?next=/cameras/gate")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, `value="/cameras/gate"`) {
		t.Errorf("%s: %s", resp.Status, body)
	}
	// The page obeys the policy that it is sent with.
	for _, bad := range []string{"<script", "<style", " style=", " onclick=", "https://", "http://"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if resp, css := s.get("/login.css"); resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(css, "main {") {
		t.Errorf("style sheet: %s %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	_, body = s.get(`/login?next=/"><script>alert(1)</script>`)
	if strings.Contains(body, "<script") {
		t.Errorf("next reaches the page as markup: %s", body)
	}
	_, body = s.logIn(`"><script>alert(1)</script>`, "x", "/")
	if strings.Contains(body, "<script") || !strings.Contains(body, "&lt;script&gt;") {
		t.Errorf("the user reaches the page as markup: %s", body)
	}
}

func TestLoginWhereThereIsNone(t *testing.T) {
	s := serve(t, web.Options{Backend: newBackend()}, web.Timing{})
	for _, r := range []*http.Request{
		s.request("GET", "/login?next=//evil.example", nil),
		s.request("POST", "/login", strings.NewReader("user=a&password=b"), "Content-Type", "application/x-www-form-urlencoded"),
		s.request("POST", "/logout", nil),
	} {
		resp, _ := s.do(r)
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/" || len(resp.Cookies()) != 0 {
			t.Errorf("%s %s: %s to %q", r.Method, r.URL, resp.Status, resp.Header.Get("Location"))
		}
	}
}

func TestPeopleAreSentToTheLoginPage(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	const html = "text/html,application/xhtml+xml,*/*;q=0.8"
	const browser = "Mozilla/5.0 (X11; Linux x86_64)"
	cases := []struct {
		path, accept, agent  string
		status               int
		location, challenges string
	}{
		{"/", html, browser, 303, "/login?next=%2F", ""},
		{"/cameras/gate?x=1", html, browser, 303, "/login?next=%2Fcameras%2Fgate%3Fx%3D1", ""},
		{"//evil.example/", html, browser, 303, "/login?next=%2F", ""},
		{"/assets/x.js", "*/*", browser, 401, "", `Form realm="edgecam"`},
		{"/api/v1/system", html, browser, 401, "", `Form realm="edgecam"`},
		{"/api/v1/system", "*/*", "curl/8.5.0", 401, "", `Basic realm="edgecam", charset="UTF-8"`},
		{"/metrics", "text/plain", "Prometheus/3.0", 401, "", `Basic realm="edgecam", charset="UTF-8"`},
	}
	for _, tc := range cases {
		t.Run(tc.path+" "+tc.agent, func(t *testing.T) {
			resp, _ := s.get(tc.path, "Accept", tc.accept, "User-Agent", tc.agent)
			if resp.StatusCode != tc.status || resp.Header.Get("Location") != tc.location || resp.Header.Get("WWW-Authenticate") != tc.challenges {
				t.Errorf("%s to %q, %q, want %d to %q, %q", resp.Status, resp.Header.Get("Location"), resp.Header.Get("WWW-Authenticate"),
					tc.status, tc.location, tc.challenges)
			}
		})
	}
}

func TestBasicCredentials(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	basic := func(user, password string) int {
		r := s.request(http.MethodGet, "/api/v1/system", nil)
		r.SetBasicAuth(user, password)
		resp, _ := s.do(r)
		return resp.StatusCode
	}
	if got := basic(theUser, "wrong"); got != http.StatusUnauthorized {
		t.Errorf("wrong password: %d", got)
	}
	// Many more than tries are given: what passed once is remembered.
	for i := range 50 {
		if got := basic(theUser, thePassword); got != http.StatusOK {
			t.Fatalf("request %d: %d, want 200", i, got)
		}
	}
	for _, other := range [][2]string{{theUser, thePassword + " "}, {theUser + thePassword, ""}, {"", theUser + thePassword}, {"viewe", "r" + thePassword}} {
		if got := basic(other[0], other[1]); got != http.StatusUnauthorized {
			t.Errorf("%q: %d, want 401", other, got)
		}
	}
}

func TestTooManyTries(t *testing.T) {
	var log bytes.Buffer
	s := serve(t, web.Options{Backend: newBackend(), Auth: auth(t), Logger: slog.New(slog.NewTextHandler(&log, nil))}, web.Timing{})
	cookie := s.session()
	for i := range 5 {
		if resp, _ := s.logIn("admin-typo", "guessed-password", "/"); resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("try %d: %s", i, resp.Status)
		}
	}
	resp, body := s.logIn(theUser, thePassword, "/")
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "Too many failed logins") {
		t.Errorf("the right password after five wrong ones: %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	r := s.request(http.MethodGet, "/api/v1/system", nil)
	r.SetBasicAuth(theUser, "another")
	resp, body = s.do(r)
	if got := errorCode(t, resp, body); resp.StatusCode != http.StatusTooManyRequests || got != "too_many_tries" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("Basic: %s, code %q", resp.Status, got)
	}
	if resp, _ := s.get("/api/v1/system", "Cookie", cookie); resp.StatusCode != http.StatusOK {
		t.Errorf("a session that was there before: %s, want 200", resp.Status)
	}
	s.halt()
	if got := log.String(); strings.Count(got, "login refused") != 5 || !strings.Contains(got, "address=127.0.0.1") ||
		strings.Contains(got, "guessed-password") || strings.Contains(got, "admin-typo") {
		t.Errorf("log = %s, want five lines with the address and nothing that was typed", got)
	}
}

func TestSecureCookieBehindHTTPS(t *testing.T) {
	s := secure(t, newBackend(), web.Timing{})
	resp, _ := s.logIn(theUser, thePassword, "/", "X-Forwarded-Proto", "https", "Host", "cams.example.com", "Origin", "https://cams.example.com")
	if resp.StatusCode != http.StatusSeeOther || !resp.Cookies()[0].Secure {
		t.Errorf("%s, cookie %q, want it Secure", resp.Status, resp.Header.Get("Set-Cookie"))
	}
}

// Whoever logs out, or is logged out, sees nothing more, also in what is open.
func TestLogoutEndsStreams(t *testing.T) {
	b := newBackend()
	s := secure(t, b, web.Timing{})
	cookie, other := s.session(), s.session()
	mine := []io.Reader{s.open("/api/v1/live", "Cookie", cookie).Body, s.open("/api/v1/detections", "Cookie", cookie).Body}
	s.open("/api/v1/live", "Cookie", other)
	s.waitForViewers(2, 1)
	s.do(s.request(http.MethodPost, "/logout", nil, "Cookie", cookie))
	for _, r := range mine {
		_, _ = io.Copy(io.Discard, r) // returns: the stream ended, well or not
	}
	s.waitForViewers(1, 0)
}
