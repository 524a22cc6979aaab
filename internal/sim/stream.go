package sim

import (
	"fmt"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtp"

	"edgecam/capture"
)

const (
	clockRate   = 90000
	payloadType = 96
)

// packetizer cuts one picture into RTP packets with running sequence numbers;
// the timestamp is the caller's.
type packetizer func(nalus [][]byte) ([]*rtp.Packet, error)

// describe gives what a camera offers.
func describe(clip *ClipData) (*description.Media, error) {
	_, f, err := encoder(clip)
	if err != nil {
		return nil, fmt.Errorf("packetise clip: %w", err)
	}
	return &description.Media{Type: description.MediaTypeVideo, Formats: []format.Format{f}}, nil
}

func encoder(clip *ClipData) (packetizer, format.Format, error) {
	switch clip.Codec {
	case capture.H264:
		f := &format.H264{PayloadTyp: payloadType, SPS: clip.SPS, PPS: clip.PPS, PacketizationMode: 1}
		e, err := f.CreateEncoder()
		if err != nil {
			return nil, nil, err
		}
		return e.Encode, f, nil
	case capture.H265:
		f := &format.H265{PayloadTyp: payloadType, VPS: clip.VPS, SPS: clip.SPS, PPS: clip.PPS}
		e, err := f.CreateEncoder()
		if err != nil {
			return nil, nil, err
		}
		return e.Encode, f, nil
	case capture.MJPEG:
		f := &format.MJPEG{}
		e, err := f.CreateEncoder()
		if err != nil {
			return nil, nil, err
		}
		return func(nalus [][]byte) ([]*rtp.Packet, error) { return e.Encode(nalus[0]) }, f, nil
	default:
		return nil, nil, fmt.Errorf("codec %q cannot be played", clip.Codec)
	}
}

// ticks converts a time to the RTP clock.
func ticks(d time.Duration) uint32 {
	return uint32(int64(d/time.Second)*clockRate + int64(d%time.Second)*clockRate/int64(time.Second)) // wraps, as RTP does
}
