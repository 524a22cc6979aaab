package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"
)

// route is one path and what answers it.
type route struct {
	methods []string
	path    string // echo's pattern
	handler echo.HandlerFunc
}

// routes lists every route of the server. Who may call them is decided in
// guard, for all of them alike.
func (s *Server) routes() []route {
	get := []string{http.MethodGet, http.MethodHead}
	post := []string{http.MethodPost}
	return []route{
		{get, "/healthz", s.getHealth},
		{get, "/readyz", s.getReady},
		{get, "/metrics", s.getMetrics},

		{get, "/login", s.getLogin},
		{post, "/login", s.postLogin},
		{get, "/login.css", s.getLoginStyle},
		{post, "/logout", s.postLogout},

		{get, "/api/v1/openapi.yaml", s.getOpenAPI},
		{get, "/api/v1/system", s.getSystem},
		{get, "/api/v1/cameras", s.getCameras},
		{get, "/api/v1/cameras/:id", s.getCamera},
		{get, "/api/v1/cameras/:id/snapshot.jpg", s.getSnapshot},
		{get, "/api/v1/cameras/:id/stream.mjpeg", s.getMJPEG},
		{post, "/api/v1/cameras/:id/whep", s.postWHEP},
		{get, "/api/v1/models", s.getModels},
		{get, "/api/v1/models/:id", s.getModel},
		{get, "/api/v1/models/:id/preview.jpg", s.getPreview},
		{get, "/api/v1/live", s.getLive},
		{get, "/api/v1/detections", s.getDetections},

		{get, "/", s.getDashboard},
	}
}

// orDashboard gives the dashboard the GET paths that no route has. A wildcard
// route would do the same, but then a known path asked with the wrong method
// would be the dashboard's and not 405.
func (s *Server) orDashboard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		m := c.Request().Method
		if errors.Is(err, echo.ErrNotFound) && (m == http.MethodGet || m == http.MethodHead) {
			return s.getDashboard(c)
		}
		return err
	}
}
