package capture

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Failure is what every typed error of this package can say. Error is the text
// for the log, Reason the sentence for the user: what happened and what to
// check. Neither ever holds a secret. Temporary is false where trying again
// soon cannot help, because somebody must change something first.
type Failure interface {
	error
	Reason() string
	Temporary() bool
}

var (
	_ Failure = (*AuthError)(nil)
	_ Failure = (*UnsupportedError)(nil)
	_ Failure = (*CardLostError)(nil)
	_ Failure = (*NoVideoError)(nil)
	_ Failure = (*RefusedError)(nil)
	_ Failure = (*UnreachableError)(nil)
	_ Failure = (*SilentError)(nil)
	_ Failure = (*StalledError)(nil)
	_ Failure = (*StatusError)(nil)
	_ Failure = (*ClosedError)(nil)
	_ Failure = (*ProtocolError)(nil)
	_ Failure = (*ForeignError)(nil)
	_ Failure = (*CertificateError)(nil)
	_ Failure = (*RedirectError)(nil)
)

// AuthError says that the camera wants a login that we could not give.
type AuthError struct {
	User   string // "" = no login was configured
	Method string // RTSP method that was answered with 401, e.g. "DESCRIBE"
	Why    string // why the login was not given, for the user; "" = it was given and refused, or there is none
}

// Error implements error.
func (e *AuthError) Error() string {
	if e.Why != "" {
		return joinWords(e.Method, "refused: "+e.Why)
	}
	if e.User == "" {
		return joinWords(e.Method, "refused: the camera wants a login and none is configured")
	}
	return joinWords(e.Method, fmt.Sprintf("refused: the camera did not accept the login of user %q", e.User))
}

// Reason implements Failure.
func (e *AuthError) Reason() string {
	if e.Why != "" {
		return "Not logged in: " + e.Why
	}
	if e.User == "" {
		return "The camera asks for a login: set username and password"
	}
	return fmt.Sprintf("The camera did not accept the login of user %q: check username and password", e.User)
}

// Temporary implements Failure.
func (e *AuthError) Temporary() bool { return false }

// UnsupportedError says that the stream is of a kind that edgecam does not
// take. Hint says what to change, and may be empty.
type UnsupportedError struct {
	What string // e.g. "codec MPEG-4 Video", "pixel format gbrp"
	Hint string // e.g. "set the camera to H.264 or H.265"
}

// Error implements error.
func (e *UnsupportedError) Error() string { return withHint("unsupported "+e.What, e.Hint) }

// Reason implements Failure.
func (e *UnsupportedError) Reason() string { return withHint("Unsupported "+e.What, e.Hint) }

// Temporary implements Failure.
func (e *UnsupportedError) Temporary() bool { return false }

// CardLostError says that the GPU is lost, or failed this decoder for good, that alone
// may decode the stream. The camera has no part in it.
type CardLostError struct{}

// Error implements error.
func (e *CardLostError) Error() string { return "the GPU that decodes was lost or failed" }

// Reason implements Failure.
func (e *CardLostError) Reason() string {
	return "The GPU that decodes the video was lost or failed: the camera goes on when a GPU serves it again"
}

// Temporary implements Failure: another card takes the camera, or this one comes back.
func (e *CardLostError) Temporary() bool { return true }

// NoVideoError says that the camera offers no video track at all, or not the
// one that was asked for.
type NoVideoError struct {
	Tracks []string // what it offers instead, in words
	Want   int      // the number of the video track that the user asks for; 0 = any
}

// Error implements error.
func (e *NoVideoError) Error() string {
	return "no video track" + e.which() + ": the camera offers " + e.offer()
}

// Reason implements Failure.
func (e *NoVideoError) Reason() string {
	text := "No video track" + e.which() + ": the camera offers " + e.offer()
	if e.Want != 0 {
		return text + "; set video_track to auto or to one of these"
	}
	return text + "; check the path of the URL and the camera's stream settings"
}

func (e *NoVideoError) which() string {
	if e.Want == 0 {
		return ""
	}
	return " number " + strconv.Itoa(e.Want)
}

// Temporary implements Failure: cameras leave the video out for a while after
// they start.
func (e *NoVideoError) Temporary() bool { return true }

func (e *NoVideoError) offer() string {
	if len(e.Tracks) == 0 {
		return "no track"
	}
	return strings.Join(e.Tracks, ", ")
}

// RefusedError says that the host is there and nothing listens on the port.
type RefusedError struct {
	Addr string // host:port
}

// Error implements error.
func (e *RefusedError) Error() string { return "dial " + e.Addr + ": connection refused" }

// Reason implements Failure.
func (e *RefusedError) Reason() string {
	return "Connection to " + e.Addr + " refused: check the port, and that RTSP is switched on in the camera"
}

// Temporary implements Failure.
func (e *RefusedError) Temporary() bool { return true }

// Obstacle says why a host cannot be reached.
type Obstacle string

// The obstacles.
const (
	ObstacleName    Obstacle = "name"    // its name does not resolve
	ObstacleTimeout Obstacle = "timeout" // it does not answer
	ObstacleRoute   Obstacle = "route"   // no way to its network
	ObstacleNetwork Obstacle = "network" // anything else the network says
)

// UnreachableError says that no connection to the host came about.
type UnreachableError struct {
	Addr     string // host:port
	Obstacle Obstacle
	Detail   string // the system's words, e.g. "no route to host"; may be empty
}

// Error implements error.
func (e *UnreachableError) Error() string {
	text := "dial " + e.Addr + ": "
	switch e.Obstacle {
	case ObstacleName:
		return text + "the name does not resolve" + e.detail()
	case ObstacleTimeout:
		return text + "no answer"
	default:
		return text + "network unreachable" + e.detail()
	}
}

// Reason implements Failure.
func (e *UnreachableError) Reason() string {
	switch e.Obstacle {
	case ObstacleName:
		return "The name in " + e.Addr + " does not resolve: check the host of the URL and the name server of this machine"
	case ObstacleTimeout:
		return "No answer from " + e.Addr + ": check that the camera has power, and its address and firewall"
	case ObstacleRoute:
		return "No route to " + e.Addr + ": check the cable, the address and this machine's network"
	default:
		return "Cannot reach " + e.Addr + e.detail()
	}
}

// Temporary implements Failure.
func (e *UnreachableError) Temporary() bool { return true }

func (e *UnreachableError) detail() string {
	if e.Detail == "" {
		return ""
	}
	return " (" + e.Detail + ")"
}

// SilentError says that the host accepts connections and then says nothing.
type SilentError struct {
	Addr  string        // host:port
	Limit time.Duration // how long we waited

	Request string // that it did not answer, having answered others; "" = it answered none
	Missing int    // bytes that its answer lacks; 0 = there was none
}

// Error implements error.
func (e *SilentError) Error() string {
	if e.Request != "" {
		return fmt.Sprintf("talk to %s: no whole answer to %s within %v", e.Addr, e.Request, e.Limit)
	}
	return fmt.Sprintf("talk to %s: no RTSP answer within %v", e.Addr, e.Limit)
}

// Reason implements Failure.
func (e *SilentError) Reason() string {
	switch {
	case e.Missing > 0:
		return fmt.Sprintf("%s does not finish its answer to %s within %v: of the length that it gave, %d bytes do not come", e.Addr, e.Request, e.Limit, e.Missing)
	case e.Request != "":
		return fmt.Sprintf("%s does not answer %s within %v, after it answered other requests: restart the camera", e.Addr, e.Request, e.Limit)
	}
	return fmt.Sprintf("%s accepts connections and does not answer within %v: restart the camera, or check that this is its RTSP port",
		e.Addr, e.Limit)
}

// Temporary implements Failure.
func (e *SilentError) Temporary() bool { return true }

// Phase is the part of a session that a time limit belongs to.
type Phase string

// The phases.
const (
	PhaseConnect    Phase = "connect"     // from the first packet out to the stream's description
	PhaseFirstFrame Phase = "first frame" // from there to the first decoded picture
	PhaseLive       Phase = "live"        // from one decoded picture to the next
)

// StalledError says that the watchdog ended a session: its limit of time went
// by without a decoded picture.
type StalledError struct {
	Phase Phase
	Limit time.Duration
	Units uint64 // access units that came in the phase: 0 = the camera sent nothing

	Transport string // "udp" where packets had to find their own way; may be empty
}

// limit is Limit as people read it: a derived one has odd nanoseconds.
func (e *StalledError) limit() time.Duration { return e.Limit.Round(100 * time.Millisecond) }

// Error implements error.
func (e *StalledError) Error() string {
	switch e.Phase {
	case PhaseConnect:
		return fmt.Sprintf("no stream within %v", e.limit())
	case PhaseFirstFrame:
		return fmt.Sprintf("no decoded picture within %v of the start (%d access units came)", e.limit(), e.Units)
	default:
		return fmt.Sprintf("no decoded picture for %v (%d access units came)", e.limit(), e.Units)
	}
}

// Reason implements Failure.
func (e *StalledError) Reason() string {
	switch {
	case e.Phase == PhaseConnect:
		return fmt.Sprintf("The camera did not describe its stream within %v", e.limit())
	case e.Phase == PhaseFirstFrame && e.Units == 0 && e.Transport == "udp":
		return fmt.Sprintf("The camera plays and no video came over UDP within %v: check firewalls and NAT on the way, or set transport to auto or tcp", e.limit())
	case e.Phase == PhaseFirstFrame && e.Units == 0:
		return fmt.Sprintf("The camera plays and sent no video within %v", e.limit())
	case e.Phase == PhaseFirstFrame:
		return fmt.Sprintf("Video arrives and no picture could be decoded within %v: no key frame, or a damaged stream", e.limit())
	case e.Units == 0:
		return fmt.Sprintf("No video for %v although the session is open", e.limit())
	default:
		return fmt.Sprintf("Video arrives and no picture could be decoded for %v", e.limit())
	}
}

// Temporary implements Failure.
func (e *StalledError) Temporary() bool { return true }

// StatusError says that the camera answered a request with an RTSP status that
// is no success.
type StatusError struct {
	Method string // RTSP method, e.g. "DESCRIBE"; may be empty
	Code   int    // e.g. 404
	Text   string // the standard's words for Code; may be empty

	Transport string // that SETUP asked for: "tcp", "udp", or "tcp, udp" where neither was taken; may be empty

	// RetryAfter is how long the camera is known to need before it answers
	// otherwise; 0 = not known.
	RetryAfter time.Duration
}

// RTSP status codes that have their own words.
const (
	statusNotEnoughBandwidth     = 453
	statusSessionNotFound        = 454
	statusUnsupportedTransport   = 461
	statusServiceUnavailableRTSP = 503
)

// Error implements error.
func (e *StatusError) Error() string {
	text := "answered " + strconv.Itoa(e.Code)
	if e.Text != "" {
		text += " " + e.Text
	}
	return joinWords(e.Method, text)
}

// Reason implements Failure.
func (e *StatusError) Reason() string {
	switch e.Code {
	case http.StatusForbidden:
		return "The camera forbids this stream (403): check what the user may see"
	case http.StatusNotFound:
		return "The camera has no stream at this path (404): check the path of the URL"
	case statusNotEnoughBandwidth:
		return "The camera serves no more sessions (453): close other viewers, or wait until it forgets old ones"
	case statusSessionNotFound:
		return "The camera forgot the session (454); a new one is started"
	case statusUnsupportedTransport, http.StatusNotAcceptable:
		return e.transportReason()
	case statusServiceUnavailableRTSP:
		return "The camera is busy or still starting (503)"
	default:
		return "The camera " + e.Error()
	}
}

func (e *StatusError) transportReason() string {
	switch e.Transport {
	case "tcp":
		return fmt.Sprintf("The camera does not send video over TCP (%d): set transport to auto or udp", e.Code)
	case "udp":
		return fmt.Sprintf("The camera does not send video over UDP (%d): set transport to auto or tcp", e.Code)
	case "tcp, udp":
		return fmt.Sprintf("The camera sends video neither over TCP nor over UDP (%d): check its streaming settings", e.Code)
	default:
		return fmt.Sprintf("The camera does not take this transport (%d): set transport to auto", e.Code)
	}
}

// Temporary implements Failure.
func (e *StatusError) Temporary() bool { return true }

// ClosedError says that the camera ended a session that had worked.
type ClosedError struct {
	Detail string // e.g. "connection reset"; may be empty
}

// Error implements error.
func (e *ClosedError) Error() string { return withDetail("the camera closed the session", e.Detail) }

// Reason implements Failure.
func (e *ClosedError) Reason() string { return withDetail("The camera closed the session", e.Detail) }

// Temporary implements Failure.
func (e *ClosedError) Temporary() bool { return true }

// ProtocolError says that the camera broke the rules of RTSP, SDP or RTP so
// that the session could not go on.
type ProtocolError struct {
	Op     string // what we were doing, e.g. "read description"
	Detail string
}

// Error implements error.
func (e *ProtocolError) Error() string { return e.Op + ": " + e.Detail }

// Reason implements Failure.
func (e *ProtocolError) Reason() string {
	return "The camera's answer could not be understood (" + e.Error() + ")"
}

// Temporary implements Failure.
func (e *ProtocolError) Temporary() bool { return true }

func joinWords(method, text string) string {
	if method == "" {
		return text
	}
	return method + " " + text
}

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + ": " + hint
}

func withDetail(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + " (" + detail + ")"
}
