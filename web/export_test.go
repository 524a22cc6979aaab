package web

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Timing is the server's patience, for tests that must not wait for it.
type Timing struct {
	Stall, Heartbeat, Snapshot, Body, Grace time.Duration
}

// NewWithTiming is New with another patience; zero values keep the default.
func NewWithTiming(o Options, t Timing) (*Server, error) {
	d := defaultTiming()
	for _, v := range []struct {
		to   *time.Duration
		from time.Duration
	}{{&d.stall, t.Stall}, {&d.heartbeat, t.Heartbeat}, {&d.snapshot, t.Snapshot}, {&d.body, t.Body}, {&d.grace, t.Grace}} {
		if v.from > 0 {
			*v.to = v.from
		}
	}
	return newServer(o, d)
}

// RouteList returns "METHOD path" of every route, paths as in OpenAPI.
func (s *Server) RouteList() (out []string) {
	for _, r := range s.router.Routes() {
		out = append(out, r.Method+" "+strings.ReplaceAll(r.Path, ":id", "{id}"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Handler returns the server's handler, for tests that need no socket.
func (s *Server) Handler() http.Handler { return s.router }

// For fuzz tests and tables.
var (
	CameraFilter = cameraFilter
	Annotated    = annotated
	SafeNext     = safeNext
	PlainPath    = plainPath
	ValidID      = validID
	AcceptsGzip  = acceptsGzip
	OpenAPI      = openAPI
)

// ParseLogin returns the fields of a login form.
func ParseLogin(contentType, body string) (user, password, next string, err error) {
	f, err := parseLogin(contentType, body)
	return f.user, f.password, f.next, err
}

// Limits that tests name.
const (
	MaxFilters   = maxFilters
	MaxBodyBytes = maxBodyBytes
)
