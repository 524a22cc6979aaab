package web

import (
	_ "embed"
	"encoding/json"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var openAPI []byte

// health is the answer of healthz and readyz.
type health struct {
	Status string `json:"status"`
}

func (s *Server) getHealth(c echo.Context) error {
	return writeJSON(c, health{Status: "ok"})
}

func (s *Server) getReady(c echo.Context) error {
	if ready, why := s.backend.Ready(); !ready {
		return fail(http.StatusServiceUnavailable, "not_ready", "%s", why)
	}
	return writeJSON(c, health{Status: "ok"})
}

func (s *Server) getMetrics(c echo.Context) error {
	if s.metrics == nil {
		return errNotFound()
	}
	s.metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

func (s *Server) getOpenAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", openAPI)
}

func (s *Server) getSystem(c echo.Context) error {
	sys := s.backend.System()
	sys.Login = s.login != nil
	if sys.Version == "" {
		sys.Version = s.version
	}
	sys.clean()
	return writeJSON(c, sys)
}

func (s *Server) getCameras(c echo.Context) error {
	return writeJSON(c, cleaned(s.backend.Cameras()))
}

// cleaned gives a list for JSON, where it is never null: a copy, which clean changes.
func cleaned[T any, P interface {
	*T
	clean()
}](list []T) []T {
	out := make([]T, len(list))
	for i := range list {
		out[i] = list[i]
		P(&out[i]).clean()
	}
	return out
}

func (s *Server) getCamera(c echo.Context) error {
	cam, err := s.camera(c)
	if err != nil {
		return err
	}
	cam.clean()
	return writeJSON(c, cam)
}

// postWHEP says that there is no live view over WebRTC yet.
func (s *Server) postWHEP(c echo.Context) error {
	if _, err := s.camera(c); err != nil {
		return err
	}
	return fail(http.StatusNotImplemented, "not_implemented",
		"live view over WebRTC is not in this version; use stream.mjpeg of the camera or /api/v1/live")
}

// camera returns the camera that the path names.
func (s *Server) camera(c echo.Context) (Camera, error) {
	id := c.Param("id")
	if !validID(id) {
		return Camera{}, errNoCamera()
	}
	cam, ok := s.backend.Camera(id)
	if !ok {
		return Camera{}, errNoCamera()
	}
	return cam, nil
}

// writeJSON encodes before it writes anything, so that what cannot be encoded
// becomes an error answer and not half a document.
func writeJSON(c echo.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, append(b, '\n'))
}

// clean makes the value fit its schema: no null where a list or an object is
// promised, and no number that JSON does not have.
func (s *System) clean() {
	list(&s.Platform.Notes)
	list(&s.Memory.Notes)
	list(&s.Inference.Notes)
	finite(&s.Inference.ScoreThreshold, &s.Inference.ProbeMS, &s.Inference.FPS, &s.Inference.BatchMean)
	s.Inference.RunMS = s.Inference.RunMS.clean()
	list(&s.Capacity.Short)
}

// clean is as for System.
func (c *Camera) clean() {
	if c.Dropped == nil {
		c.Dropped = map[string]uint64{}
	}
	finite(&c.FPS, &c.InferredFPS)
	c.AgeMS = c.AgeMS.clean()
	st := &c.StagesMS
	st.Decoded, st.Batched, st.Inferred, st.Published = st.Decoded.clean(), st.Batched.clean(), st.Inferred.clean(), st.Published.clean()
}

// clean returns p, or nil (not measured) where one of its numbers is none.
func (p *Percentiles) clean() *Percentiles {
	if p == nil || !isFinite(p.P50) || !isFinite(p.P95) || !isFinite(p.P99) {
		return nil
	}
	return p
}

func list(l *[]string) {
	if *l == nil {
		*l = []string{}
	}
}

func finite(vs ...*float64) {
	for _, v := range vs {
		if !isFinite(*v) {
			*v = 0
		}
	}
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
