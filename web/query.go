package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"
)

// maxFilters bounds how many cameras one request may name.
const maxFilters = 256

// validID says whether a text has the form of a camera id: [a-z0-9_-]{1,64}.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// cameraFilter reads ?camera=a&camera=b: each id once, in the order given; nil
// means all cameras.
func cameraFilter(q url.Values) ([]string, error) {
	var out []string
	for _, id := range q["camera"] {
		if !validID(id) {
			return nil, fail(http.StatusBadRequest, "invalid_parameter", "camera must be an id of 1 to 64 characters out of a-z, 0-9, _ and -")
		}
		if slices.Contains(out, id) {
			continue
		}
		if len(out) == maxFilters {
			return nil, fail(http.StatusBadRequest, "invalid_parameter", "camera may be given at most %d times", maxFilters)
		}
		out = append(out, id)
	}
	return out, nil
}

// cameras reads the filter and checks that its cameras exist.
func (s *Server) cameras(c echo.Context) ([]string, error) {
	q, err := query(c)
	if err != nil {
		return nil, err
	}
	out, err := cameraFilter(q)
	if err != nil {
		return nil, err
	}
	for _, id := range out {
		if _, ok := s.backend.Camera(id); !ok {
			return nil, errNoCamera()
		}
	}
	return out, nil
}

// annotated reads ?annotated=0|1; it defaults to 0.
func annotated(q url.Values) (bool, error) {
	v := q["annotated"]
	switch {
	case len(v) == 0, len(v) == 1 && v[0] == "0":
		return false, nil
	case len(v) == 1 && v[0] == "1":
		return true, nil
	}
	return false, fail(http.StatusBadRequest, "invalid_parameter", "annotated must be 0 or 1")
}

// query parses the query; net/http drops what it cannot parse, and a filter
// that was dropped would show every camera.
func query(c echo.Context) (url.Values, error) {
	q, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return nil, fail(http.StatusBadRequest, "invalid_parameter", "the query cannot be read")
	}
	return q, nil
}
