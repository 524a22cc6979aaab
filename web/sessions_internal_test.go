package web

import (
	"net/http"
	"testing"
	"time"
)

func withCookies(values ...string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	for _, v := range values {
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: v})
	}
	return r
}

func TestSessionsEnd(t *testing.T) {
	cases := []struct {
		name  string
		every time.Duration // between requests
		n     int
		want  bool
	}{
		{"used daily", sessionIdle - time.Second, 5, true},
		{"left alone", sessionIdle, 1, false},
		{"at the end of its life", sessionLife / 8, 8, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := &hand{time.Unix(1000, 0)}
			s := newSessions(h.now)
			defer s.endAll()
			r := withCookies(s.begin())
			streams, ok := s.find(r)
			if !ok || streams.over {
				t.Fatal("no session right after its begin")
			}
			for range tc.n {
				h.t = h.t.Add(tc.every)
				_, ok = s.find(r)
			}
			if ok != tc.want {
				t.Errorf("there is a session: %v, want %v", ok, tc.want)
			}
			if !tc.want && !streams.over {
				t.Error("what hangs on the session goes on")
			}
			if !tc.want && len(s.byID) != 0 {
				t.Error("the session is still kept")
			}
		})
	}
}

func TestSessionsAreBounded(t *testing.T) {
	h := &hand{time.Unix(1000, 0)}
	s := newSessions(h.now)
	defer s.endAll()
	var tokens []string
	for range maxSessions + 1 {
		h.t = h.t.Add(time.Second)
		tokens = append(tokens, s.begin())
		s.find(withCookies(tokens[0])) // the first is in use all the time
	}
	if len(s.byID) != maxSessions {
		t.Errorf("%d sessions, want %d", len(s.byID), maxSessions)
	}
	for i, want := range map[int]bool{0: true, 1: false, 2: true, maxSessions: true} {
		if _, ok := s.find(withCookies(tokens[i])); ok != want {
			t.Errorf("session %d is there: %v, want %v", i, ok, want)
		}
	}
}

func TestSessionAmongOtherCookies(t *testing.T) {
	s := newSessions(time.Now)
	defer s.endAll()
	token := s.begin()
	other := newSessions(time.Now) // another port of the same host
	defer other.endAll()
	if _, ok := s.find(withCookies("", "short", other.begin(), token)); !ok {
		t.Error("the session is not found beside others")
	}
	if _, ok := s.find(withCookies(other.begin())); ok {
		t.Error("another server's session is taken")
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = other.begin()
	}
	if got := len(ids(withCookies(many...))); got > 4 {
		t.Errorf("%d cookies are looked at", got)
	}
}

func TestHashPassword(t *testing.T) {
	for _, bad := range []string{"", string(make([]byte, maxPasswordBytes+1))} {
		if _, err := HashPassword(bad); err == nil {
			t.Errorf("a password of %d bytes is taken", len(bad))
		}
	}
	h, err := HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLogin(Auth{User: "me", Hash: h}, time.Now)
	if err != nil {
		t.Fatalf("the hash is not taken: %v", err)
	}
	if res := l.verify(t.Context(), clientAddr(&http.Request{}), "me", "correct horse"); !res.ok {
		t.Error("the password does not match its hash")
	}
}

// Credentials that passed are remembered, others never are.
func TestBasicIsRememberedOnlyWhenRight(t *testing.T) {
	h, err := HashPassword("right")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLogin(Auth{User: "me", Hash: h}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	from := clientAddr(&http.Request{RemoteAddr: "192.0.2.1:5"})
	if l.basic(t.Context(), from, "me", "wrong").ok || l.known.Load() != nil {
		t.Fatal("wrong credentials pass or are remembered")
	}
	if !l.basic(t.Context(), from, "me", "right").ok || l.known.Load() == nil {
		t.Fatal("right credentials do not pass or are not remembered")
	}
	l.busy <- struct{}{} // no more hashing: whatever passes now is remembered
	if !l.basic(t.Context(), from, "me", "right").ok {
		t.Error("remembered credentials are hashed again")
	}
}
