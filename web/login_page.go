package web

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

//go:embed login.html
var loginHTML string

//go:embed login.css
var loginCSS []byte

// loginPage is what login.html shows.
type loginPage struct {
	User, Next, Problem string
}

// getLogin shows the form, or goes on where there is nothing to log in to.
func (s *Server) getLogin(c echo.Context) error {
	next := safeNext(c.QueryParam("next"))
	if s.login == nil {
		return c.Redirect(http.StatusSeeOther, "/")
	}
	if _, ok := s.login.sessions.find(c.Request()); ok {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.showLogin(c, http.StatusOK, loginPage{Next: next})
}

func (s *Server) showLogin(c echo.Context, status int, p loginPage) error {
	// Parsed here and not at start: nobody needs it where there is no login.
	t, err := template.New("login").Parse(loginHTML)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, p); err != nil {
		return err
	}
	return c.HTMLBlob(status, page.Bytes())
}

// postLogin checks the form and starts a session.
func (s *Server) postLogin(c echo.Context) error {
	if s.login == nil {
		return c.Redirect(http.StatusSeeOther, "/")
	}
	r := c.Request()
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return readError(err)
	}
	form, err := parseLogin(r.Header.Get(echo.HeaderContentType), body.String())
	if err != nil {
		return err
	}
	from := clientAddr(r)
	res := s.login.verify(r.Context(), from, form.user, form.password)
	switch {
	case res.retryAfter > 0:
		wait := strconv.Itoa(seconds(res.retryAfter))
		c.Response().Header().Set(echo.HeaderRetryAfter, wait)
		return s.showLogin(c, http.StatusTooManyRequests, loginPage{
			User: form.user, Next: form.next,
			Problem: "Too many failed logins. Try again in " + wait + " s.",
		})
	case !res.ok:
		// The rate limit bounds how often this is logged. What was typed as the
		// user is not: people type passwords there.
		s.log.Warn("login refused", "address", from.String())
		return s.showLogin(c, http.StatusUnauthorized, loginPage{User: form.user, Next: form.next, Problem: "Wrong user or password."})
	}
	s.login.sessions.finish(r) // a new login never continues an old session
	http.SetCookie(c.Response(), sessionCookieFor(r, s.login.sessions.begin(), int(sessionLife.Seconds())))
	return c.Redirect(http.StatusSeeOther, form.next)
}

// postLogout ends the session; streams that it opened end, too.
func (s *Server) postLogout(c echo.Context) error {
	if s.login == nil {
		return c.Redirect(http.StatusSeeOther, "/")
	}
	s.login.sessions.finish(c.Request())
	http.SetCookie(c.Response(), sessionCookieFor(c.Request(), "", -1))
	return c.Redirect(http.StatusSeeOther, "/login")
}

func (s *Server) getLoginStyle(c echo.Context) error {
	return c.Blob(http.StatusOK, "text/css; charset=utf-8", loginCSS)
}

// sessionCookieFor makes the cookie. A proxy that speaks HTTPS to the browser
// says so in X-Forwarded-Proto; whoever forges that only locks themselves out.
func sessionCookieFor(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}

// loginForm is what the login page sends.
type loginForm struct {
	user, password, next string
}

// parseLogin reads the body of a login. Every field may be there once.
func parseLogin(contentType, body string) (loginForm, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != echo.MIMEApplicationForm {
		return loginForm{}, fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "send the login as %s", echo.MIMEApplicationForm)
	}
	values, err := url.ParseQuery(body)
	if err != nil {
		return loginForm{}, fail(http.StatusBadRequest, "invalid_form", "the form cannot be read")
	}
	for _, name := range []string{"user", "password", "next"} {
		if len(values[name]) > 1 {
			return loginForm{}, fail(http.StatusBadRequest, "invalid_form", "the form has %s more than once", name)
		}
	}
	f := loginForm{user: values.Get("user"), password: values.Get("password"), next: safeNext(values.Get("next"))}
	if f.user == "" || f.password == "" || len(f.user) > maxUserBytes || len(f.password) > maxPasswordBytes {
		return loginForm{}, fail(http.StatusBadRequest, "invalid_form", "the form needs a user (at most %d bytes) and a password (at most %d bytes)",
			maxUserBytes, maxPasswordBytes)
	}
	return f, nil
}

// safeNext returns the local page that may follow a login, or "/": never a
// place outside of this server.
func safeNext(next string) string {
	const maxNextBytes = 1024
	if len(next) > maxNextBytes || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") {
		return "/"
	}
	if strings.ContainsFunc(next, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !plainPath(u) {
		return "/"
	}
	if isAPI(u.Path) || u.Path == "/login" || u.Path == "/logout" || u.Path == "/login.css" {
		return "/"
	}
	return next
}

// readError says what went wrong while a body was read.
func readError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return fail(http.StatusBadRequest, "unreadable_body", "the body did not arrive whole")
}
