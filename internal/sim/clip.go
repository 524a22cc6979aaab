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
)

//go:embed pets-s2l1-20s.mp4
var builtin []byte

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
	track, err := findTrack(r)
	if err != nil {
		return nil, err
	}
	if track == nil {
		return nil, errors.New("read MP4: it has no H.264, H.265 or MJPEG track")
	}
	if err := track.load(r); err != nil {
		return nil, err
	}
	return track.clip, nil
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
