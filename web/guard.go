package web

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// publicPath names what may be asked for without login, exactly as written. What is
// not here is closed: routes that come later, unknown paths, every other
// spelling.
func publicPath(u *url.URL) bool {
	if u.RawPath != "" {
		return false
	}
	switch u.Path {
	case "/healthz", "/login", "/login.css":
		return true
	}
	return false
}

// guard is the one place that decides whether a request is answered.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		s.setHeaders(c.Response().Header())
		if err := s.checkHost(r); err != nil {
			return err
		}
		if err := s.checkOrigin(r); err != nil {
			return err
		}
		if err := s.limitBody(c); err != nil {
			return err
		}
		if s.login != nil && !publicPath(r.URL) {
			if err := s.authenticate(c); err != nil {
				return err
			}
		}
		// After the login, so that the answer tells strangers nothing.
		if !plainPath(r.URL) {
			return errNotFound()
		}
		return next(c)
	}
}

// setHeaders sets what every answer carries.
func (s *Server) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
	h.Set("Cache-Control", "no-store") // the dashboard's files set their own
}

// contentSecurityPolicy lets pages load what this server gives and nothing
// else. blob: is for pictures that a script took out of a stream, data: for
// small icons that the dashboard's build puts into its style sheet.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; " +
	"connect-src 'self'; media-src 'self' blob:; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// checkHost refuses names that are not this server's own. A listener without
// login is on loopback, where a page of any site could reach it by letting its
// own name point to 127.0.0.1. With a login the session cookie, which belongs
// to one name, does that work, and a proxy in front may call us what it likes.
func (s *Server) checkHost(r *http.Request) error {
	if s.login != nil {
		return nil
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" || (host != "" && host == strings.ToLower(s.host)) {
		return nil
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return nil
	}
	return fail(http.StatusMisdirectedRequest, "unknown_host",
		"without a login this server is only served as localhost or 127.0.0.1; for other names configure server.auth")
}

// checkOrigin refuses what another site's page makes a browser do: anything
// that changes something (also judged by Origin, for browsers that send no
// Sec-Fetch-Site over plain HTTP), and loading pictures or data into that page.
// Following a link to a page of ours stays possible.
func (s *Server) checkOrigin(r *http.Request) error {
	if err := s.origin.Check(r); err != nil {
		return fail(http.StatusForbidden, "cross_origin", "requests from pages of other sites are refused")
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && !isAPI(r.URL.Path) {
		return nil
	}
	return fail(http.StatusForbidden, "cross_origin", "requests from pages of other sites are refused")
}

// limitBody bounds a request's body in size and time.
func (s *Server) limitBody(c echo.Context) error {
	r := c.Request()
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		// Nobody reads it, and net/http would wait for it after the answer.
		c.Response().Header().Set("Connection", "close")
		return fail(http.StatusBadRequest, "unexpected_body", "%s requests have no body", r.Method)
	}
	if r.ContentLength > maxBodyBytes {
		c.Response().Header().Set("Connection", "close")
		return &http.MaxBytesError{Limit: maxBodyBytes}
	}
	// An error means that the writer has no deadlines, as in tests with a recorder.
	err := http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(s.timing.body))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, maxBodyBytes)
	return nil
}

// plainPath says whether a path has one spelling only. Ids and file names need
// no escapes, so a path that has some, or empty or dotted segments, is none of ours.
func plainPath(u *url.URL) bool {
	if u.RawPath != "" || !strings.HasPrefix(u.Path, "/") || strings.ContainsFunc(u.Path, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) {
		return false
	}
	if u.Path == "/" {
		return true
	}
	for seg := range strings.SplitSeq(u.Path[1:], "/") {
		if seg == "" || seg == "." || seg == ".." {
			return false
		}
	}
	return true
}

// sessionKey is where authenticate leaves the group of the session's streams.
const sessionKey = "edgecam.session"

// authenticate lets requests with a session or the right Basic credentials
// pass. People are sent to the login page, programs get 401.
func (s *Server) authenticate(c echo.Context) error {
	r := c.Request()
	if streams, ok := s.login.sessions.find(r); ok {
		c.Set(sessionKey, streams)
		return nil
	}
	if user, password, ok := r.BasicAuth(); ok {
		switch res := s.login.basic(r.Context(), clientAddr(r), user, password); {
		case res.ok:
			return nil
		case res.retryAfter > 0:
			return tooManyTries(c, res.retryAfter)
		}
	} else if wantsPage(r) {
		return c.Redirect(http.StatusSeeOther, "/login?next="+url.QueryEscape(safeNext(r.URL.RequestURI())))
	}
	// A browser would show its own box for a Basic challenge, over our page.
	challenge := `Basic realm="edgecam", charset="UTF-8"`
	if strings.HasPrefix(r.UserAgent(), "Mozilla/") {
		challenge = `Form realm="edgecam"`
	}
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
	return fail(http.StatusUnauthorized, "login_required", "log in at /login, or send user and password as HTTP Basic")
}

// wantsPage says whether a person's browser asks for a page.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isAPI(r.URL.Path) &&
		strings.Contains(r.Header.Get(echo.HeaderAccept), "text/html")
}

func tooManyTries(c echo.Context, after time.Duration) error {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(seconds(after)))
	return fail(http.StatusTooManyRequests, "too_many_tries", "too many failed logins; try again in %d s", seconds(after))
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }
