package capture

import "time"

// State is where a camera stands; the words are the HTTP contract's.
type State string

// The states of a camera.
const (
	Connecting  State = "connecting"
	Live        State = "live"
	Stalled     State = "stalled"
	Backoff     State = "backoff"
	AuthFailed  State = "auth_failed"
	Unsupported State = "unsupported"
	Disabled    State = "disabled"
)

// Status is a snapshot of one camera's capture.
type Status struct {
	State  State
	Reason string // in words for the user, never with a secret
	Since  time.Time

	Codec         Codec
	Width, Height int
	FPS           float64 // decoded frames a second over the last seconds
	Decoder       DecoderInfo
	Transport     string
	TLS           string // see StreamInfo
	Track         TrackInfo
	Attempts      uint64            // sessions tried since start
	Frames        uint64            // pictures decoded since start
	Damaged       uint64            // access units since start that gave no whole picture
	LastError     LastError         // the last failure, also when it is over
	Dropped       map[string]uint64 // by reason: see the Drop constants
	RetryAt       time.Time         // when State is backoff, auth_failed or unsupported
}

// LastError says what went wrong last.
type LastError struct {
	At     time.Time // zero = nothing did
	Reason string    // in words for the user
}
