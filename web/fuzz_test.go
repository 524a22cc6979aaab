package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"edgecam/web"
)

func FuzzSafeNext(f *testing.F) {
	for _, s := range []string{
		"", "/", "/cameras/gate", "//evil.example", `/\evil.example`, "https://evil.example", "/x?y=//z", "javascript:alert(1)", "/login", "/%2f/evil.example",
		"/\t/evil.example", "/./x", "/api/v1/system", "/x#y", "/a?next=%2F%2Fevil",
	} {
		f.Add(s)
	}
	base, err := url.Parse("http://cams.example/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		got := web.SafeNext(next)
		u, err := base.Parse(got)
		if err != nil || u.Scheme != "http" || u.Host != "cams.example" {
			t.Errorf("%q leads to %v, %v", next, u, err)
		}
		if strings.ContainsAny(got, "\r\n\t\\ ") || strings.HasPrefix(got, "//") {
			t.Errorf("%q becomes %q, which browsers may read otherwise", next, got)
		}
		if web.SafeNext(got) != got {
			t.Errorf("%q is not safe twice", got)
		}
	})
}

func FuzzParseLogin(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	for _, s := range [][2]string{
		{form, "user=a&password=b&next=/x"},
		{form + "; charset=utf-8", "user=%C3%BC&password=+"},
		{"application/json", "{}"},
		{form, "user=a&user=b&password=c"},
		{form, "a;b"},
		{form, "%"},
		{"", ""},
		{form, "user=a&password=b&next=//evil.example"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, contentType, body string) {
		user, password, next, err := web.ParseLogin(contentType, body)
		if err != nil {
			if user+password+next != "" || strings.Contains(err.Error(), "%!") {
				t.Errorf("refused with %q, %q, %q: %v", user, password, next, err)
			}
			return
		}
		if user == "" || password == "" || len(user) > 256 || len(password) > 1024 || next != web.SafeNext(next) {
			t.Errorf("accepted %q, %q, %q", user, password, next)
		}
	})
}

func FuzzCameraFilter(f *testing.F) {
	for _, s := range []string{"", "camera=gate", "camera=a&camera=b&camera=a", "camera=", "camera=A", "annotated=1", "annotated=01&camera=-", "camera=%00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		if _, err := web.Annotated(q); err == nil && len(q["annotated"]) > 0 && q.Get("annotated") != "0" && q.Get("annotated") != "1" {
			t.Errorf("annotated=%q is taken", q["annotated"])
		}
		ids, err := web.CameraFilter(q)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, id := range ids {
			if !web.ValidID(id) || seen[id] {
				t.Errorf("filter %q holds %q", ids, id)
			}
			seen[id] = true
		}
		if len(ids) > web.MaxFilters || (len(ids) == 0) != (len(q["camera"]) == 0) {
			t.Errorf("%d ids of %d", len(ids), len(q["camera"]))
		}
	})
}

// Whatever the path, it never shows more to a stranger than the named list,
// never fails, and never escapes the headers.
func FuzzPath(f *testing.F) {
	for _, s := range []string{
		"/", "/healthz", "/login", "//healthz", "/healthz/", "/healthz/..", "/%68ealthz", "/api/v1/cameras/gate", "/api/v1/../../x", "/index.html", "/\\x", "/x\x00", "*", "/login?next=//x",
	} {
		f.Add("GET", s)
	}
	f.Add("POST", "/login")
	s, err := web.New(web.Options{Listen: "127.0.0.1:0", Backend: newBackend(), Auth: auth(f), UI: builtDashboard()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(method, " \r\n") || method == "" {
			return
		}
		r := &http.Request{
			Method: method, URL: u, RequestURI: target, Host: "localhost", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, RemoteAddr: "192.0.2.9:1234",
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r.WithContext(t.Context()))
		public := u.Path == "/healthz" || u.Path == "/login" || u.Path == "/login.css"
		if w.Code != http.StatusUnauthorized && !public {
			t.Errorf("%s %q: %d without a login", method, target, w.Code)
		}
		if w.Code >= 500 || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s %q: %d, policy %q", method, target, w.Code, w.Header().Get("Content-Security-Policy"))
		}
	})
}
