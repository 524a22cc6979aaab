package rtsp

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/liberrors"

	"edgecam/capture"
)

// failure turns what gortsplib says into what capture knows. Texts from
// outside pass scrub, so that no camera can make us print the password.
func (s *session) failure(err error) error {
	if r := s.redirected(); r != nil {
		return r
	}
	var known capture.Failure
	if errors.As(err, &known) {
		return known
	}
	var status liberrors.ErrClientBadStatusCode
	if errors.As(err, &status) {
		return s.statusFailure(int(status.Code))
	}
	if timeout := s.timeoutFailure(err); timeout != nil {
		return timeout
	}
	if transport := transportFailure(err); transport != nil {
		return transport
	}
	return s.connectionFailure(err)
}

func (s *session) statusFailure(code int) error {
	x := &s.exchange
	if code == int(base.StatusUnauthorized) && x.refusal != nil {
		return x.refusal
	}
	failure := &capture.StatusError{Method: x.method, Code: code, Text: statusWords(code), RetryAfter: s.retryAfter(code)}
	if x.method == string(base.Setup) && (code == int(base.StatusUnsupportedTransport) || code == int(base.StatusNotAcceptable)) {
		failure.Transport = string(s.transport)
	}
	return failure
}

// retryAfter is how long a camera that has no session left needs at least: it
// frees old ones after its session timeout. Others may have told.
func (s *session) retryAfter(code int) time.Duration {
	if code != int(base.StatusNotEnoughBandwidth) {
		return s.upkeep.retry
	}
	return max(s.upkeep.retry, s.upkeep.timeout, s.o.Memory.sessionTimeout())
}

// statusWords gives the standard's words: the camera's own may hold anything.
func statusWords(code int) string {
	return map[int]string{
		400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
		406: "Not Acceptable", 415: "Unsupported Media Type", 451: "Parameter Not Understood",
		453: "Not Enough Bandwidth", 454: "Session Not Found", 455: "Method Not Valid in This State",
		461: "Unsupported Transport", 500: "Internal Server Error", 501: "Not Implemented",
		503: "Service Unavailable", 551: "Option not supported",
	}[code]
}

func (s *session) timeoutFailure(err error) error {
	var request liberrors.ErrClientRequestTimedOut
	var tcp liberrors.ErrClientTCPTimeout
	var udp liberrors.ErrClientUDPTimeout
	switch {
	case errors.As(err, &request), isTimeout(err):
		return s.silence()
	case errors.As(err, &tcp), errors.As(err, &udp):
		return &capture.StalledError{Phase: capture.PhaseFirstFrame, Limit: time.Since(s.playing).Round(time.Second), Transport: string(s.transport)}
	default:
		return nil
	}
}

// transportFailure names the other transport where the camera asks for it.
func transportFailure(err error) error {
	var wantsUDP liberrors.ErrClientServerRequestedUDP
	var wantsTCP liberrors.ErrClientServerRequestedTCP
	var delivery liberrors.ErrClientTransportHeaderInvalidDelivery
	switch {
	case errors.As(err, &wantsUDP):
		return &capture.UnsupportedError{What: "transport tcp", Hint: "the camera answers with UDP: set transport to auto or udp"}
	case errors.As(err, &wantsTCP):
		return &capture.UnsupportedError{What: "transport udp", Hint: "the camera answers with TCP: set transport to auto or tcp"}
	case errors.As(err, &delivery):
		return &capture.UnsupportedError{What: "transport udp", Hint: "the camera answers with multicast: set transport to auto or tcp"}
	default:
		return nil
	}
}

func (s *session) connectionFailure(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return &capture.ClosedError{}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &capture.ClosedError{Detail: "connection reset"}
	}
	if text := errnoText(err); text != "" {
		return &capture.UnreachableError{Addr: s.target.Addr(), Obstacle: capture.ObstacleNetwork, Detail: text}
	}
	op := "talk to the camera"
	if s.exchange.method != "" {
		op = s.exchange.method
	}
	return &capture.ProtocolError{Op: op, Detail: s.target.scrub(err.Error())}
}

// otherTransport says whether the next transport is worth a try after err.
func otherTransport(err error) bool {
	var status *capture.StatusError
	var unsupported *capture.UnsupportedError
	var stalled *capture.StalledError
	switch {
	case errors.As(err, &status):
		return status.Transport != ""
	case errors.As(err, &unsupported):
		return unsupported.What == "transport tcp" || unsupported.What == "transport udp"
	case errors.As(err, &stalled):
		return stalled.Phase == capture.PhaseFirstFrame
	default:
		return false
	}
}

// silence tells a camera that says nothing from one that has stopped to.
func (s *session) silence() error {
	e := &capture.SilentError{Addr: s.target.Addr(), Limit: s.o.ReadTimeout}
	if conn := s.dialer.open(); conn != nil && conn.owed.Load() > 0 {
		e.Request, e.Missing = s.exchange.method, int(conn.owed.Load())
	} else if s.exchange.method != string(base.Options) {
		e.Request = s.exchange.method
	}
	return e
}
