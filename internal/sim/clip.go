package sim

import (
	"bytes"
	_ "embed" // the built-in clip
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"edgecam/capture"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/mp4"
	"github.com/bluenviron/mediacommon/v2/pkg/formats/pmp4"
)

//go:embed pets-s2l1-20s.mp4
var builtin []byte

// maxSample bounds one picture of a clip: 64 MiB.
const maxSample = 64 << 20

// Sample is one coded picture of a clip.
type Sample struct {
	DTS, PTS     time.Duration // from the start of the clip
	NALUs        [][]byte      // H.264/H.265: without start codes; MJPEG: one JPEG file
	RandomAccess bool          // decoding can start here
}

// ClipData is a clip, read into memory. It is not changed once read, and may
// be shared.
type ClipData struct {
	Codec         capture.Codec
	VPS, SPS, PPS []byte // as the codec has them
	Samples       []Sample
	Duration      time.Duration
}

// Clip is the built-in clip: an MP4 file of 200 pictures at 10 a second,
// 768×576, H.264. The caller must not change it.
func Clip() []byte { return builtin }

// BuiltinClip reads the built-in clip.
func BuiltinClip() (*ClipData, error) { return ReadClip(bytes.NewReader(builtin)) }

// OpenClip reads a clip from a file; "" is the built-in one.
func OpenClip(path string) (*ClipData, error) {
	if path == "" {
		return BuiltinClip()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open clip: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	clip, err := ReadClip(f)
	if err != nil {
		return nil, fmt.Errorf("open clip %s: %w", path, err)
	}
	return clip, nil
}

// ReadClip reads the first video track of an MP4 file: H.264, H.265 or MJPEG.
func ReadClip(r io.ReadSeeker) (*ClipData, error) {
	var file pmp4.Presentation
	if err := file.Unmarshal(r); err != nil {
		return nil, fmt.Errorf("read MP4: %w", err)
	}
	for _, track := range file.Tracks {
		clip := &ClipData{}
		switch codec := track.Codec.(type) {
		case *mp4.CodecH264:
			clip.Codec, clip.SPS, clip.PPS = capture.H264, codec.SPS, codec.PPS
		case *mp4.CodecH265:
			clip.Codec, clip.VPS, clip.SPS, clip.PPS = capture.H265, codec.VPS, codec.SPS, codec.PPS
		case *mp4.CodecMJPEG:
			clip.Codec = capture.MJPEG
		default:
			continue
		}
		if err := clip.read(track); err != nil {
			return nil, err
		}
		return clip, nil
	}
	return nil, errors.New("read MP4: it has no H.264, H.265 or MJPEG track")
}

func (c *ClipData) read(track *pmp4.Track) error {
	if track.TimeScale == 0 {
		return errors.New("read MP4: the track has no time scale")
	}
	ticks := func(n int64) time.Duration {
		scale := int64(track.TimeScale)
		return time.Duration(n/scale)*time.Second + time.Duration(n%scale)*time.Second/time.Duration(scale)
	}
	var dts int64
	for i, s := range track.Samples {
		sample := Sample{DTS: ticks(dts), PTS: ticks(dts + int64(s.PTSOffset)), RandomAccess: !s.IsNonSyncSample}
		dts += int64(s.Duration)
		if s.GetPayload == nil || s.PayloadSize > maxSample {
			return fmt.Errorf("read MP4: sample %d has no place in the file", i+1)
		}
		payload, err := s.GetPayload()
		if err != nil {
			return fmt.Errorf("read MP4 sample %d: %w", i+1, err)
		}
		if c.Codec == capture.MJPEG {
			sample.NALUs = [][]byte{payload}
		} else {
			var units h264.AVCC // H.265 has the same framing
			if err := units.Unmarshal(payload); err != nil {
				return fmt.Errorf("read MP4 sample %d: %w", i+1, err)
			}
			sample.NALUs = units
		}
		c.Samples = append(c.Samples, sample)
	}
	c.Duration = ticks(dts)
	if len(c.Samples) == 0 || c.Duration <= 0 {
		return errors.New("read MP4: the video track is empty")
	}
	if !c.Samples[0].RandomAccess {
		return errors.New("read MP4: the clip does not begin with a key frame")
	}
	return nil
}

// ParameterSets gives the clip's parameter sets in the order in which a
// decoder wants them; empty for MJPEG.
func (c *ClipData) ParameterSets() [][]byte {
	var sets [][]byte
	for _, set := range [][]byte{c.VPS, c.SPS, c.PPS} {
		if len(set) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}
