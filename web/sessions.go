package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

const (
	sessionCookie = "edgecam_session"
	sessionLife   = 7 * 24 * time.Hour // from login, whatever happens
	sessionIdle   = 24 * time.Hour     // from the last request
	maxSessions   = 64                 // a new one beyond ends the one that was quiet longest
	tokenBytes    = 32
)

// sessions are kept in memory: a restart logs everybody out. The map's keys
// are digests of the tokens, so that looking one up compares nothing secret
// byte by byte. Safe for concurrent use.
type sessions struct {
	now func() time.Time

	mu   sync.Mutex
	byID map[[sha256.Size]byte]*session
}

type session struct {
	began, used time.Time
	streams     *streamGroup // end with the session
	life        *time.Timer  // ends them when it is over, though no request asks
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, byID: make(map[[sha256.Size]byte]*session)}
}

// begin starts a session and returns its token.
func (s *sessions) begin() string {
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails: it ends the program where there is no randomness
	token := base64.RawURLEncoding.EncodeToString(raw[:])
	now := s.now()
	streams := newStreamGroup()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweepLocked(now)
	s.byID[sha256.Sum256([]byte(token))] = &session{
		began: now, used: now, streams: streams, life: time.AfterFunc(sessionLife, streams.end),
	}
	return token
}

// find returns the streams of the request's session.
func (s *sessions) find(r *http.Request) (*streamGroup, bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids(r) {
		if ss := s.byID[id]; ss != nil {
			if ss.over(now) {
				s.endLocked(id)
				continue
			}
			ss.used = now
			return ss.streams, true
		}
	}
	return nil, false
}

// finish ends the request's session, if it has one.
func (s *sessions) finish(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids(r) {
		s.endLocked(id)
	}
}

// endAll ends every session.
func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.byID {
		s.endLocked(id)
	}
}

// ids returns the digests of the session cookies of a request. There may be
// more than one: a cookie of the same name that was set for a parent path or
// another port of the host must not log anybody out.
func ids(r *http.Request) (out [][sha256.Size]byte) {
	for _, c := range r.CookiesNamed(sessionCookie) {
		if len(c.Value) == base64.RawURLEncoding.EncodedLen(tokenBytes) && len(out) < 4 {
			out = append(out, sha256.Sum256([]byte(c.Value)))
		}
	}
	return out
}

func (ss *session) over(now time.Time) bool {
	return now.Sub(ss.began) >= sessionLife || now.Sub(ss.used) >= sessionIdle
}

// sweepLocked ends what is over and makes room for one more.
func (s *sessions) sweepLocked(now time.Time) {
	var oldest [sha256.Size]byte
	var found *session
	for id, ss := range s.byID {
		if ss.over(now) {
			s.endLocked(id)
			continue
		}
		if found == nil || ss.used.Before(found.used) {
			oldest, found = id, ss
		}
	}
	if len(s.byID) >= maxSessions {
		s.endLocked(oldest)
	}
}

func (s *sessions) endLocked(id [sha256.Size]byte) {
	if ss := s.byID[id]; ss != nil {
		delete(s.byID, id)
		ss.life.Stop()
		ss.streams.end()
	}
}
