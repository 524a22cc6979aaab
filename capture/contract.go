package capture

import (
	"context"
	"fmt"
	"time"

	"edgecam/framepool"
)

// Codec is a video codec that edgecam decodes.
type Codec string

// The codecs.
const (
	H264  Codec = "h264"
	H265  Codec = "h265"
	MJPEG Codec = "mjpeg"
)

// StreamInfo is what a source knows of its video before the first picture.
type StreamInfo struct {
	Codec         Codec
	ParameterSets [][]byte // VPS, SPS, PPS without start codes, from the session description; may be empty
	ClockRate     int      // RTP clock, Hz
	Transport     string   // "tcp", "udp", or another word for how packets arrive
	TLS           string   // how the camera was known: "verified", "fingerprint" or "not verified"; "" = not encrypted
	Track         TrackInfo
}

// TrackInfo says which video of a camera plays. The zero value says that it is
// not known yet.
type TrackInfo struct {
	Index   int    // among the description's video tracks, from 1
	Of      int    // how many video tracks there are
	Codec   Codec  // of this one
	Control string // how the description names it, e.g. "trackID=0"; may be empty
	Others  int    // tracks that are no video: they are left alone
}

// String gives it in words for people, e.g. "video 1 of 2 (H.265)".
func (t TrackInfo) String() string {
	if t.Index == 0 {
		return ""
	}
	codec := map[Codec]string{H264: "H.264", H265: "H.265", MJPEG: "MJPEG"}[t.Codec]
	text := fmt.Sprintf("video %d of %d (%s)", t.Index, t.Of, codec)
	switch t.Others {
	case 0:
		return text
	case 1:
		return text + ", 1 other track left alone"
	default:
		return text + fmt.Sprintf(", %d other tracks left alone", t.Others)
	}
}

// AccessUnit is one coded picture. Its bytes belong to the receiver of the
// unit: the source does not touch them again.
type AccessUnit struct {
	NALUs        [][]byte      // H.264/H.265: NAL units without start codes; MJPEG: one JPEG file
	PTS          time.Duration // presentation time on the stream's own clock, from an arbitrary zero
	RTPTime      uint32
	Received     time.Time // arrival of the last packet, monotonic
	CapturedAt   time.Time // wall clock
	RandomAccess bool      // decoding can start here
	LossBefore   bool      // packets were lost between the unit before and this one, or in this one
}

// Sink takes what a source gives. Calls come from one goroutine. Stream comes
// first, once a session, and again when codec or parameter sets change; an
// error from it ends the session.
type Sink interface {
	Stream(info StreamInfo) error
	AccessUnit(au *AccessUnit)
}

// Source is one session with a camera: Run connects, plays, and delivers until
// ctx ends or the session does; it has left nothing running when it returns.
// Run is called once. Errors are typed (see errors.go) so that the supervisor
// can tell a wrong password from a dead network.
type Source interface {
	Run(ctx context.Context, sink Sink) error
}

// DecoderInfo says what a decoder is doing, for status.
type DecoderInfo struct {
	Name          string // FFmpeg's decoder name, e.g. "h264", "h264 (nvdec)" or "h264_nvv4l2dec (system FFmpeg 60)"
	Memory        string // "pinned", "heap" or "device"
	Width, Height int    // of the last picture, visible samples; 0 before the first
	PixelFormat   string // FFmpeg's name, e.g. "yuv420p"
	Note          string // why it is not the decoder that was wished for first, for the user; "" = it is
}

// Decoder turns access units into frames. Decode calls emit for every picture
// that comes out, in display order; emit consumes the frame. Errors: an
// *UnsupportedError or a *CardLostError ends the session, any other counts as damage and
// decoding goes on. Not safe for concurrent use. Close gives all memory back but for
// frames that are still held, a GPU's some time later, and may be called twice.
type Decoder interface {
	Decode(au *AccessUnit, emit func(*framepool.Frame)) error
	Info() DecoderInfo
	Close()
}

// Sparing is a Decoder that may leave pictures out. Sparse says that the next one
// comes with the next random access point, and that this is no stall.
type Sparing interface {
	Sparse() bool
}

// Patient is a Decoder that may wait for its turn at something that it shares
// with other cameras. Queued is how long it has waited so far, the wait that
// goes on included: that time is not held against the camera.
type Patient interface {
	Queued() time.Duration
}
