package rtsp

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture"
)

// maxRedirects ends a redirect loop.
const maxRedirects = 5

// redirection says that the camera sends us elsewhere. gortsplib follows only
// absolute addresses, after DESCRIBE alone, without end, and takes the password
// along to wherever they lead; so it gets to see none.
type redirection struct {
	from     *url.URL // what was asked for
	location string   // may hold anything
}

// Error implements error.
func (*redirection) Error() string { return "the camera redirects" }

// noteRedirect takes the redirect out of an answer: what is left is a status
// that ends the request.
func (s *session) noteRedirect(res *base.Response) {
	location := ""
	if v := res.Header["Location"]; len(v) > 0 && res.StatusCode != base.StatusNotModified {
		location = strings.TrimSpace(v[0])
	}
	delete(res.Header, "Location")
	if s.exchange.method == string(base.Options) {
		// Some cameras redirect OPTIONS to nowhere and answer DESCRIBE.
		skipOptions(res)
		s.optionsMoved = location
		return
	}
	if !s.exchange.live { // an answer to a keepalive is none of the session's
		s.moved = location
	}
}

// redirected is what failure gives where the camera sent us elsewhere; nil
// where it did not.
func (s *session) redirected() *redirection {
	location := s.moved
	if location == "" && s.exchange.method == string(base.Describe) && s.exchange.refusal == nil {
		location = s.optionsMoved
	}
	if location == "" || s.exchange.asked == nil {
		return nil
	}
	return &redirection{from: s.exchange.asked, location: location}
}

// follow gives the target that a redirect leads to. Errors are
// *capture.RedirectError. hops counts from 0.
func (t Target) follow(r *redirection, hops int) (Target, error) {
	next, err := resolveLocation(r.from, r.location)
	if err != nil {
		return Target{}, &capture.RedirectError{Problem: "it names no rtsp:// or rtsps:// address that can be read"}
	}
	switch {
	case hops >= maxRedirects:
		return Target{}, &capture.RedirectError{To: next.String(), Problem: fmt.Sprintf("that is redirect %d in a row", hops+1)}
	case strings.EqualFold(r.from.Scheme, "rtsps") && !next.encrypted():
		return Target{}, &capture.RedirectError{To: next.String(), Problem: "it leads from rtsps to rtsp, which is not encrypted"}
	}
	next.username, next.password, next.login = t.username, t.password, t.login
	return next, nil
}

// resolveLocation reads a Location, which may be relative to what was asked for.
func resolveLocation(from *url.URL, location string) (Target, error) {
	location, _, _ = strings.Cut(location, "#")
	root := from.Scheme + "://" + from.Host
	switch {
	case strings.Contains(location, "://") && !strings.HasPrefix(location, "/"):
	case strings.HasPrefix(location, "//"):
		location = from.Scheme + ":" + location
	case strings.HasPrefix(location, "/"):
		location = root + location
	case strings.HasPrefix(location, "?"):
		location = root + from.EscapedPath() + location
	default:
		dir := from.EscapedPath()
		dir = dir[:strings.LastIndexByte(dir, '/')+1]
		path, query, hasQuery := strings.Cut(location, "?")
		location = root + cleanPath("/"+strings.TrimPrefix(dir, "/")+path)
		if hasQuery {
			location += "?" + query
		}
	}
	// With a user given, an @ in the path is no sign of a password.
	return ParseURL(location, "redirected", "")
}

// cleanPath takes the steps "." and ".." of a relative Location (RFC 3986 5.2.4).
func cleanPath(path string) string {
	var out []string
	steps := strings.Split(path, "/")[1:]
	for i, step := range steps {
		last := i == len(steps)-1
		switch {
		case step == ".." || step == ".":
			if step == ".." && len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, step)
		}
	}
	return "/" + strings.Join(out, "/")
}
