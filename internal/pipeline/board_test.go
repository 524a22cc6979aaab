package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"edgecam/internal/pipeline"
	"edgecam/internal/sim"
	"edgecam/platform/avcodec"
	"edgecam/web"
)

// On a Jetson whose GPU does not serve, the board's decoder is tried all the same:
// here FFmpeg's v4l2m2m, which finds no such hardware and gives way.
func TestBoardDecodesWithoutGPU(t *testing.T) {
	codecs, err := avcodec.Open()
	check(t, err)
	if !slices.ContainsFunc(codecs.Decoders(), func(d avcodec.DecoderInfo) bool { return d.Name == "h264_v4l2m2m" }) {
		t.Skip("this FFmpeg has no h264_v4l2m2m")
	}
	b := startOn(t, sim.Options{Cameras: make([]sim.Camera, 1)}, nil, small(t), func(o *pipeline.Options) {
		o.Board = true
		o.System.Platform.Jetson = &web.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", PowerMode: "MAXN"}
	})
	waitFor(t, "the camera to be live", func() bool {
		c, ok := b.Camera("cam1")
		return ok && c.State == "live" && c.Decoder == "h264"
	})
	if c, _ := b.Camera("cam1"); !strings.Contains(c.DecoderNote, "not decoded by h264_v4l2m2m") {
		t.Errorf("decoder %s, note %q: the board's was not tried", c.Decoder, c.DecoderNote)
	}
	if j := b.System().Platform.Jetson; j == nil || j.PowerMode != "MAXN" {
		t.Errorf("the board as it is shown: %+v", j)
	}
}
