package rtsp

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture"
)

// exchange is the request under way, and what the camera made of it. It is
// touched on the client's goroutine, and by ours while no request is under way.
type exchange struct {
	method   string   // for the words of failures
	asked    *url.URL // without login
	request  *base.Request
	answered bool  // it carries a login
	again    bool  // it was refused, and may be sent again with another login
	refusal  error // it was refused for good
	live     bool  // PLAY was answered: what is asked now are keepalives
	extra    int   // requests of our own, which the library's numbers lack
}

// onRequest sees each request before it is written.
func (s *session) onRequest(req *base.Request) {
	s.upkeep.sent(req)
	s.log.Debug("rtsp request", "method", string(req.Method))
	s.number(req)
	s.login.authorize(req)
	if req.Method == base.Teardown {
		if conn := s.dialer.open(); conn != nil {
			conn.torn.Store(true)
		}
		return // the failure is another request's; and it may be read meanwhile
	}
	x := &s.exchange
	x.method, x.request, x.again = string(req.Method), req, false
	x.answered = len(req.Header["Authorization"]) > 0
	if req.URL != nil {
		x.asked = (*url.URL)(req.URL.CloneWithoutCredentials())
	}
}

// onResponse sees each answer before gortsplib looks at it, and puts right
// what the library would refuse the session for. It runs on the library's
// goroutine, after the request that it answers.
func (s *session) onResponse(res *base.Response) {
	method := s.exchange.method
	s.log.Debug("rtsp response", "method", method, "status", int(res.StatusCode))
	if res.StatusCode > base.StatusOK && res.StatusCode < 300 {
		res.StatusCode = base.StatusOK // every such status means success
	}
	s.renumber(res)
	if s.upkeep.answered(method, res) {
		return
	}
	if method == string(base.Setup) {
		s.repairTransport(res)
		s.keepSession(res)
	}
	if res.StatusCode == base.StatusUnauthorized {
		s.unauthorized(res)
		return
	}
	s.login.accepted(s.exchange.answered && res.StatusCode < 400)
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		s.noteRedirect(res)
	case method == string(base.Options) && res.StatusCode != base.StatusOK:
		skipOptions(res)
	case res.StatusCode != base.StatusOK:
	case method == string(base.Describe):
		s.repairDescription(res)
	case method == string(base.Play):
		s.exchange.live = true
		s.client.ReadTimeout = never
	}
}

// skipOptions lets the session go on. Not every camera has OPTIONS: nothing
// depends on its answer, DESCRIBE will tell.
func skipOptions(res *base.Response) {
	res.StatusCode = base.StatusOK
	res.Header = base.Header{}
}

// unauthorized looks at a 401. A request of the session is sent again by ask; a
// keepalive at once from here, as the library does not wait for its answer and
// would leave the camera without one until the session has run out.
func (s *session) unauthorized(res *base.Response) {
	x := &s.exchange
	v := s.login.challenged(x.method, res.Header["WWW-Authenticate"], x.answered)
	switch {
	case !x.live:
		x.again, x.refusal = v.again, v.err
	case v.again:
		s.repeat()
	default:
		s.log.Debug("rtsp keepalive refused", "err", v.err)
	}
}

// ask makes a request, and makes it again while the camera wants another login
// for it.
func (s *session) ask(request func() error) error {
	for {
		err := request()
		if err == nil || !s.exchange.again {
			return err
		}
	}
}

// repeat sends a keepalive again.
func (s *session) repeat() {
	x := &s.exchange
	conn := s.dialer.open()
	if conn == nil || x.request == nil {
		return
	}
	again := &base.Request{Method: x.request.Method, URL: x.request.URL, Header: base.Header{}, Body: x.request.Body}
	for name, v := range x.request.Header {
		again.Header[name] = v
	}
	n, err := strconv.Atoi(again.Header["CSeq"][0])
	if err != nil {
		return
	}
	x.extra++
	again.Header["CSeq"] = base.HeaderValue{strconv.Itoa(n + 1)}
	s.login.authorize(again)
	x.request, x.answered = again, true
	text, err := again.Marshal()
	if err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(s.o.ReadTimeout)) // the write would tell
	if _, err := conn.Write(text); err != nil {
		s.log.Debug("rtsp keepalive not sent again", "err", s.failure(err))
	}
}

// number makes room in the library's numbers for the requests of our own:
// cameras may take a number that they have seen for an old request.
func (s *session) number(req *base.Request) {
	if v := req.Header["CSeq"]; s.exchange.extra > 0 && len(v) == 1 {
		if n, err := strconv.Atoi(v[0]); err == nil {
			req.Header["CSeq"] = base.HeaderValue{strconv.Itoa(n + s.exchange.extra)}
		}
	}
}

// renumber undoes number in an answer.
func (s *session) renumber(res *base.Response) {
	if v := res.Header["CSeq"]; s.exchange.extra > 0 && len(v) == 1 {
		if n, err := strconv.Atoi(strings.TrimSpace(v[0])); err == nil {
			res.Header["CSeq"] = base.HeaderValue{strconv.Itoa(n - s.exchange.extra)}
		}
	}
}

// repairDescription chooses the track and leaves nothing but that one.
func (s *session) repairDescription(res *base.Response) {
	text := readSDP(res.Body)
	s.track, s.trackErr = text.choose(s.o.VideoTrack)
	if odd := noDescription(res); odd != nil && len(text.medias) == 0 {
		s.trackErr = odd
	}
	if s.trackErr != nil {
		return // Describe's own result is not used then
	}
	if s.target.scrub(s.track.control) == withheld { // looked at whole: what is shown may be cut in the middle of a secret
		s.track.info.Control = withheld
	}
	if conn := s.dialer.open(); conn != nil {
		conn.agreed.Store(text.agree(s.track))
	}
	contentBase := ""
	if v := res.Header["Content-Base"]; len(v) > 0 {
		contentBase = strings.TrimSpace(v[0])
	}
	res.Body = writeSDP(s.track, baseURL(s.exchange.asked, text.control, contentBase))
	res.Header["Content-Type"] = base.HeaderValue{"application/sdp"}
	delete(res.Header, "Content-Base")
}

// noDescription says what is odd about an answer without a track; nil =
// nothing, it just has none.
func noDescription(res *base.Response) error {
	header := func(name string) string {
		return printable(strings.TrimSpace(strings.Join(res.Header[name], ", ")), 40)
	}
	detail := ""
	switch kind, encoding := header("Content-Type"), header("Content-Encoding"); {
	case len(res.Body) == 0:
		detail = "the answer has no description: its Content-Length is missing, 0 or not a number"
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		detail = "the description is coded (" + encoding + "), which nobody asked for"
	case kind != "" && !strings.Contains(strings.ToLower(kind), "sdp"):
		detail = "the answer is of type " + kind + ", not application/sdp"
	default:
		return nil
	}
	return &capture.ProtocolError{Op: "DESCRIBE", Detail: detail}
}
