package rtsp

import (
	"net/url"
	"strings"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
)

// maxRedirects ends a redirect loop.
const maxRedirects = 5

// onRequest notes what is being asked, for the words of failures.
func (s *session) onRequest(req *base.Request) {
	s.upkeep.sent(req)
	s.log.Debug("rtsp request", "method", string(req.Method))
	if req.Method == base.Teardown {
		return // the failure is another request's; and it may be read meanwhile
	}
	s.method = string(req.Method)
	if req.URL != nil {
		s.asked = (*url.URL)(req.URL.CloneWithoutCredentials())
		s.addr = canonicalAddr(s.asked)
	}
}

// onResponse sees each answer before gortsplib looks at it, and puts right
// what the library would refuse the session for. It runs on the library's
// goroutine, after the request that it answers.
func (s *session) onResponse(res *base.Response) {
	s.log.Debug("rtsp response", "method", s.method, "status", int(res.StatusCode))
	if s.upkeep.answered(s.method, res) {
		return
	}
	switch {
	case s.method == string(base.Setup):
		s.keepSession(res)
		if res.StatusCode == base.StatusUnauthorized {
			s.repairChallenge(res)
		}
	case res.StatusCode == base.StatusUnauthorized:
		s.repairChallenge(res)
	case s.method == string(base.Options) && res.StatusCode != base.StatusOK:
		// Not every camera has OPTIONS, and some redirect it: nothing depends
		// on its answer, DESCRIBE will tell.
		res.StatusCode = base.StatusOK
		res.Header = base.Header{}
	case s.method == string(base.Describe) && res.StatusCode == base.StatusOK:
		s.repairDescription(res)
	case s.method == string(base.Describe) && res.StatusCode >= 300 && res.StatusCode < 400:
		s.repairRedirect(res)
	}
}

// repairChallenge looks at a 401. After a redirect to another host only a
// digest is answered: Basic would hand the password to whoever is there.
func (s *session) repairChallenge(res *base.Response) {
	var keep base.HeaderValue
	s.staleNonce = false
	for _, v := range res.Header["WWW-Authenticate"] {
		lower := strings.ToLower(v)
		digest := strings.HasPrefix(strings.TrimSpace(lower), "digest")
		if digest && s.challenged && strings.Contains(strings.ReplaceAll(lower, `"`, ""), "stale=true") {
			s.staleNonce = true
		}
		if digest || !s.foreign {
			keep = append(keep, v)
		}
	}
	s.challenged = true
	res.Header["WWW-Authenticate"] = keep
}

// repairDescription chooses the track and leaves nothing but that one.
func (s *session) repairDescription(res *base.Response) {
	text := readSDP(res.Body)
	s.track, s.trackErr = text.choose(s.o.VideoTrack)
	if s.trackErr != nil {
		return // Describe's own result is not used then
	}
	s.track.info.Control = s.target.scrub(s.track.info.Control)
	contentBase := ""
	if v := res.Header["Content-Base"]; len(v) > 0 {
		contentBase = strings.TrimSpace(v[0])
	}
	res.Body = writeSDP(s.track, baseURL(s.asked, text.control, contentBase))
	res.Header["Content-Type"] = base.HeaderValue{"application/sdp"}
	delete(res.Header, "Content-Base")
}

// repairRedirect makes a relative Location absolute and ends loops.
func (s *session) repairRedirect(res *base.Response) {
	location := res.Header["Location"]
	s.redirects++
	if len(location) == 0 || s.redirects > maxRedirects {
		delete(res.Header, "Location") // the status becomes the error
		return
	}
	next, err := s.asked.Parse(strings.TrimSpace(location[0]))
	if err != nil || next.Host == "" {
		delete(res.Header, "Location")
		return
	}
	if !strings.EqualFold(next.Hostname(), s.asked.Hostname()) {
		s.foreign = true
	}
	next.User = nil
	res.Header["Location"] = base.HeaderValue{next.String()}
	s.challenged = false
}
