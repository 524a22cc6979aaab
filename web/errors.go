package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/labstack/echo/v4"
)

// apiError is an answer that is not a success.
type apiError struct {
	status  int
	code    string // stable, [a-z_]+
	message string // for people
}

// Error gives the code and the message.
func (e *apiError) Error() string { return e.code + ": " + e.message }

func fail(status int, code, format string, args ...any) *apiError {
	return &apiError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// errorBody is the JSON of every error.
type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// writeError answers a request whose handler returned err. It is echo's
// HTTPErrorHandler.
func (s *Server) writeError(err error, c echo.Context) {
	if c.Response().Committed {
		return // a stream that ended, or a client that left: nothing more can be said
	}
	e := s.asAPIError(err, c)
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "no-store")
	if e.status == http.StatusServiceUnavailable && h.Get(echo.HeaderRetryAfter) == "" {
		h.Set(echo.HeaderRetryAfter, "5")
	}
	var body errorBody
	body.Error.Code, body.Error.Message = e.code, e.message
	if err := c.JSON(e.status, body); err != nil {
		s.log.Debug("write error answer", "err", err)
	}
}

func (s *Server) asAPIError(err error, c echo.Context) *apiError {
	var api *apiError
	var he *echo.HTTPError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &api):
		return api
	case errors.Is(err, ErrUnknownCamera):
		return errNoCamera()
	case errors.Is(err, ErrUnknownModel):
		return errNoModel()
	case errors.Is(err, ErrNoPicture):
		return fail(http.StatusServiceUnavailable, "no_picture", "%v", err)
	case errors.Is(err, ErrBusy):
		return fail(http.StatusServiceUnavailable, "too_many_viewers", "%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(http.StatusGatewayTimeout, "timeout", "the answer took too long")
	case errors.Is(err, context.Canceled), errors.Is(err, errCut), errors.Is(err, net.ErrClosed):
		return fail(http.StatusServiceUnavailable, "stopping", "the server is stopping")
	case errors.As(err, &tooLarge):
		return fail(http.StatusRequestEntityTooLarge, "body_too_large", "the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &he):
		return routerError(he, c)
	}
	s.log.Error("answer request", "method", c.Request().Method, "path", c.Request().URL.Path, "err", err)
	return fail(http.StatusInternalServerError, "internal", "something went wrong; the log says what")
}

// routerError words the errors that echo itself makes.
func routerError(he *echo.HTTPError, c echo.Context) *apiError {
	switch he.Code {
	case http.StatusNotFound:
		return errNotFound()
	case http.StatusMethodNotAllowed:
		return fail(he.Code, "method_not_allowed", "this path takes %s", c.Response().Header().Get(echo.HeaderAllow))
	}
	code := strings.ReplaceAll(strings.ToLower(http.StatusText(he.Code)), " ", "_")
	return fail(he.Code, code, "%v", he.Message)
}

func errNotFound() *apiError {
	return fail(http.StatusNotFound, "not_found", "there is nothing under this path")
}

func errNoCamera() *apiError {
	return fail(http.StatusNotFound, "camera_not_found", "no camera has this id")
}

// catchPanics turns a panic into an answer, or into a cut connection where the
// answer has begun, and logs it once.
func (s *Server) catchPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.log.Error("panic in a request", "method", c.Request().Method, "path", c.Request().URL.Path,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if c.Response().Committed {
				panic(http.ErrAbortHandler) // net/http closes the connection, quietly
			}
			err = fail(http.StatusInternalServerError, "internal", "something went wrong; the log says what")
		}()
		return next(c)
	}
}
