package rtsp

import (
	"errors"
	"fmt"

	"github.com/bluenviron/gortsplib/v4/pkg/format/rtph264"
	"github.com/bluenviron/gortsplib/v4/pkg/format/rtph265"
	"github.com/pion/rtp"

	"edgecam/capture"
)

// errIncomplete says that a packet completed nothing yet.
var errIncomplete = errors.New("more packets needed")

// depacketizer takes the payload of RTP packets apart. It gives what a packet
// completed: NAL units, or one JPEG file. Any error but errIncomplete means
// that something of the stream is missing. The bytes are fresh: gortsplib
// allocates each packet, and nobody else keeps them.
type depacketizer func(*rtp.Packet) ([][]byte, error)

func newDepacketizer(t *track) (depacketizer, error) {
	switch t.codec {
	case capture.H264:
		d := &rtph264.Decoder{PacketizationMode: t.mode}
		if err := d.Init(); err != nil {
			return nil, fmt.Errorf("take H.264 packets: %w", err)
		}
		return perPacket(d.Decode, rtph264.ErrMorePacketsNeeded), nil
	case capture.H265:
		if t.maxDON != 0 {
			return nil, &capture.UnsupportedError{What: "interleaved H.265 packets (sprop-max-don-diff)", Hint: "choose another stream profile in the camera"}
		}
		d := &rtph265.Decoder{}
		if err := d.Init(); err != nil {
			return nil, fmt.Errorf("take H.265 packets: %w", err)
		}
		return perPacket(d.Decode, rtph265.ErrMorePacketsNeeded), nil
	default:
		return new(jpegPackets).decode, nil
	}
}

// perPacket makes gortsplib's decoders give each NAL unit as soon as it is
// whole: they would group them by marker, and fall behind by one frame for
// good when one marker gets lost. The assembler groups instead.
func perPacket(decode func(*rtp.Packet) ([][]byte, error), more error) depacketizer {
	return func(pkt *rtp.Packet) ([][]byte, error) {
		marker := pkt.Marker
		pkt.Marker = true
		nalus, err := decode(pkt)
		pkt.Marker = marker
		if errors.Is(err, more) {
			return nil, errIncomplete
		}
		return nalus, err
	}
}
