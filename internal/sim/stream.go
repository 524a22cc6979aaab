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

// describe gives what a camera offers, and how its pictures become packets.
func describe(clip *ClipData, fault Fault) (*description.Media, packetizer, error) {
	media := &description.Media{Type: description.MediaTypeVideo}
	switch {
	case fault.NoVideo:
		media.Type = description.MediaTypeAudio
		media.Formats = []format.Format{&format.G711{PayloadTyp: 8, MULaw: false, SampleRate: 8000, ChannelCount: 1}}
		return media, nil, nil
	case fault.Codec:
		// visual_object_sequence_start_code and a simple profile, enough for a
		// description
		media.Formats = []format.Format{&format.MPEG4Video{
			PayloadTyp: payloadType, ProfileLevelID: 1, Config: []byte{0, 0, 1, 0xb0, 1},
		}}
		return media, nil, nil
	}
	encode, f, err := encoder(clip)
	if err != nil {
		return nil, nil, fmt.Errorf("packetise clip: %w", err)
	}
	media.Formats = []format.Format{f}
	return media, encode, nil
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
