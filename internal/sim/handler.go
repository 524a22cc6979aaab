package sim

import (
	"strings"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"
)

// handler answers gortsplib's questions. The library calls it from many
// goroutines.
type handler struct {
	cameras map[string]*camera // by path, with its slash
}

var (
	_ gortsplib.ServerHandlerOnDescribe         = (*handler)(nil)
	_ gortsplib.ServerHandlerOnSetup            = (*handler)(nil)
	_ gortsplib.ServerHandlerOnPlay             = (*handler)(nil)
	_ gortsplib.ServerHandlerOnPause            = (*handler)(nil)
	_ gortsplib.ServerHandlerOnGetParameter     = (*handler)(nil)
	_ gortsplib.ServerHandlerOnSessionClose     = (*handler)(nil)
	_ gortsplib.ServerHandlerOnStreamWriteError = (*handler)(nil)
	_ gortsplib.ServerHandlerOnDecodeError      = (*handler)(nil)
	_ gortsplib.ServerHandlerOnPacketsLost      = (*handler)(nil)
)

func (h *handler) find(path string) *camera { return h.cameras[strings.TrimSuffix(path, "/")] }

// login checks the credentials that a request must carry.
func (c *camera) login(conn *gortsplib.ServerConn, req *base.Request) bool {
	return c.User == "" || conn.VerifyCredentials(req, c.User, c.Password)
}

func status(code base.StatusCode) *base.Response { return &base.Response{StatusCode: code} }

// OnDescribe implements gortsplib.ServerHandlerOnDescribe.
func (h *handler) OnDescribe(ctx *gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	c := h.find(ctx.Path)
	if c == nil {
		return status(base.StatusNotFound), nil, nil
	}
	if !c.login(ctx.Conn, ctx.Request) {
		return status(base.StatusUnauthorized), nil, liberrors.ErrServerAuth{}
	}
	return status(base.StatusOK), c.stream, nil
}

// OnSetup implements gortsplib.ServerHandlerOnSetup.
func (h *handler) OnSetup(ctx *gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	c := h.find(ctx.Path)
	if c == nil {
		return status(base.StatusNotFound), nil, nil
	}
	if !c.login(ctx.Conn, ctx.Request) {
		return status(base.StatusUnauthorized), nil, liberrors.ErrServerAuth{}
	}
	return status(base.StatusOK), c.stream, nil
}

// OnPlay implements gortsplib.ServerHandlerOnPlay.
func (h *handler) OnPlay(ctx *gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	c := h.find(ctx.Path)
	if c == nil {
		return status(base.StatusNotFound), nil
	}
	c.join(ctx.Session)
	return status(base.StatusOK), nil
}

// OnPause implements gortsplib.ServerHandlerOnPause.
func (h *handler) OnPause(ctx *gortsplib.ServerHandlerOnPauseCtx) (*base.Response, error) {
	if c := h.find(ctx.Path); c != nil {
		c.leave(ctx.Session)
	}
	return status(base.StatusOK), nil
}

// OnGetParameter implements gortsplib.ServerHandlerOnGetParameter: players
// keep sessions alive with it.
func (h *handler) OnGetParameter(*gortsplib.ServerHandlerOnGetParameterCtx) (*base.Response, error) {
	return status(base.StatusOK), nil
}

// OnSessionClose implements gortsplib.ServerHandlerOnSessionClose.
func (h *handler) OnSessionClose(ctx *gortsplib.ServerHandlerOnSessionCloseCtx) {
	for _, c := range h.cameras {
		c.leave(ctx.Session)
	}
}

// OnStreamWriteError implements gortsplib.ServerHandlerOnStreamWriteError: a
// viewer that does not read loses packets, which is its own affair.
func (h *handler) OnStreamWriteError(*gortsplib.ServerHandlerOnStreamWriteErrorCtx) {}

// OnDecodeError implements gortsplib.ServerHandlerOnDecodeError.
func (h *handler) OnDecodeError(*gortsplib.ServerHandlerOnDecodeErrorCtx) {}

// OnPacketsLost implements gortsplib.ServerHandlerOnPacketsLost.
func (h *handler) OnPacketsLost(*gortsplib.ServerHandlerOnPacketsLostCtx) {}
