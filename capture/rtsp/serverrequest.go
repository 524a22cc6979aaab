package rtsp

import (
	"github.com/bluenviron/gortsplib/v4/pkg/base"

	"edgecam/capture"
)

const redirect base.Method = "REDIRECT" // RFC 2326 10.10

// onServerRequest takes what a camera asks of us. gortsplib ends the session
// for anything but OPTIONS, so it gets to see OPTIONS, and answers 200: to
// questions whether we live, and to news of the stream, which the stream
// itself shows when they come true. A camera that says good-bye is believed.
func (s *session) onServerRequest(req *base.Request) {
	s.log.Debug("rtsp request of the camera", "method", printable(string(req.Method), 32))
	switch req.Method {
	case base.Teardown:
		s.end(&capture.ClosedError{Detail: "it sent TEARDOWN"})
	case redirect:
		s.end(&capture.ClosedError{Detail: "it asked to connect anew"})
	}
	req.Method = base.Options
}

// onServerResponse completes the answer to a request of the camera.
func (s *session) onServerResponse(res *base.Response) {
	res.Header["Public"] = base.HeaderValue{"OPTIONS, ANNOUNCE, GET_PARAMETER, SET_PARAMETER, REDIRECT, TEARDOWN"}
}
