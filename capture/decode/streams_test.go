//go:build cgo

package decode_test

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/sim"
	"edgecam/internal/testkit"
)

// streams are small pieces of the PETS clip in the kinds of video that cameras
// send, for machines without the ffmpeg program. See testdata/hw/README.md.
//
//go:embed testdata/hw
var streams embed.FS

// stream reads one of them.
func stream(t testing.TB, name string) testkit.Clip {
	t.Helper()
	b, err := streams.ReadFile(path.Join("testdata/hw", name))
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.Clip{Codec: strings.TrimPrefix(path.Ext(name), ".")}
	switch c.Codec {
	case "h264":
		c.Units = testkit.AccessUnitsH264(b)
	case "hevc":
		c.Units = testkit.AccessUnitsH265(b)
	default:
		for _, j := range testkit.JPEGs(b) {
			c.Units = append(c.Units, [][]byte{j})
		}
	}
	return c
}

// demo is the clip of the simulated cameras.
func demo(t testing.TB) testkit.Clip {
	t.Helper()
	data, err := sim.BuiltinClip()
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.Clip{Codec: "h264"}
	for _, s := range data.Samples {
		n := s.NALUs
		if s.RandomAccess {
			n = slices.Concat(data.ParameterSets(), n)
		}
		c.Units = append(c.Units, n)
	}
	return c
}

// streamCase is a stream, what software makes of it, and what the GPU does.
type streamCase struct {
	name           string
	format, device framepool.PixelFormat
	width, height  int
	full           bool
	pictures       int
	refused        string // why the GPU does not take it
}

func streamCases() []streamCase {
	return []streamCase{
		{name: "1080p.h264", format: framepool.I420, device: framepool.NV12, width: 1920, height: 1080, pictures: 16},
		{name: "1080p.hevc", format: framepool.I420, device: framepool.NV12, width: 1920, height: 1080, pictures: 16},
		{name: "768x576.hevc", format: framepool.I420, device: framepool.NV12, width: 768, height: 576, pictures: 10},
		{name: "10bit.hevc", format: framepool.I420P10, device: framepool.P010, width: 640, height: 360, pictures: 8},
		{name: "bframes.h264", format: framepool.I420, device: framepool.NV12, width: 640, height: 360, pictures: 12},
		{name: "cropped.h264", format: framepool.I420, device: framepool.NV12, width: 634, height: 356, full: true, pictures: 4},
		{name: "interlaced.h264", format: framepool.I420, device: framepool.NV12, width: 640, height: 368, pictures: 4},
		{name: "444.h264", format: framepool.I444, width: 320, height: 240, pictures: 2, refused: "pixel format yuv444p is not supported"},
		{name: "10bit.h264", format: framepool.I420P10, width: 320, height: 240, pictures: 2, refused: "pixel format yuv420p10le is not supported"},
	}
}

// finish takes out what the decoder holds back: a loss is announced with a unit
// that has no picture.
func finish(t testing.TB, d *decode.Decoder, s *sink) {
	t.Helper()
	au := &capture.AccessUnit{Received: start.Add(time.Hour), LossBefore: true}
	if err := d.Decode(au, s.emit); err != nil {
		t.Error(err)
	}
}

// TestStreams keeps the streams for the GPU what their tests take them for.
func TestStreams(t *testing.T) {
	for _, c := range streamCases() {
		t.Run(c.name, func(t *testing.T) {
			clip := stream(t, c.name)
			d := forClip(t, clip, decode.Options{Decoder: "software"})
			s := &sink{t: t, discard: true}
			play(t, d, clip, s)
			finish(t, d, s)
			if len(s.metas) != c.pictures || len(clip.Units) != c.pictures {
				t.Fatalf("%d frames of %d units, want %d; dropped %v", len(s.metas), len(clip.Units), c.pictures, d.Stats().Dropped)
			}
			m := s.metas[0]
			got := fmt.Sprint(m.Format, m.Width, m.Height, m.Range == framepool.RangeFull)
			if want := fmt.Sprint(c.format, c.width, c.height, c.full); got != want {
				t.Errorf("frames are %s, want %s", got, want)
			}
		})
	}
	if n := len(demo(t).Units); n != 200 {
		t.Errorf("the clip of the simulated cameras has %d pictures", n)
	}
}
