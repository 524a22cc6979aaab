//go:build cgo

package decode_test

import (
	"slices"
	"strings"
	"testing"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/platform/avcodec"
)

func TestEngines(t *testing.T) {
	gpu := &avcodec.HardwareDevice{}
	for _, c := range []struct {
		name string
		o    decode.Options
		want string
	}{
		{"auto without a gpu", decode.Options{Decoder: "auto"}, "h264"},
		{"nothing said", decode.Options{}, "h264"},
		{"auto with a gpu", decode.Options{CUDA: gpu}, "h264 (nvdec), h264"},
		{"auto with a gpu, h265", decode.Options{CUDA: gpu, Info: capture.StreamInfo{Codec: capture.H265}}, "hevc (nvdec), hevc"},
		{"auto with a gpu, jpeg", decode.Options{CUDA: gpu, Info: capture.StreamInfo{Codec: capture.MJPEG}}, "mjpeg"},
		{"auto on a jetson", decode.Options{Installed: true}, "h264_v4l2m2m, h264"},
		{"software", decode.Options{Decoder: "software", CUDA: gpu, Installed: true}, "h264"},
		{"nvdec", decode.Options{Decoder: "nvdec", CUDA: gpu}, "h264 (nvdec)"},
		{"a name", decode.Options{Decoder: "h264_cuvid", CUDA: gpu}, "h264_cuvid"},
		{"nvdec without a gpu", decode.Options{Decoder: "nvdec"}, "unsupported decoder nvdec: no NVIDIA GPU is in use; set decoder to auto or software"},
		{"nvdec without a driver", decode.Options{Decoder: "nvdec", NoCUDA: "no NVIDIA driver"}, "unsupported decoder nvdec: no NVIDIA driver; set decoder to auto or software"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.Info.Codec == "" {
				c.o.Info.Codec = capture.H264
			}
			c.o.Library = library(t)
			if got := decode.Engines(c.o); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestFallBack lets a decoder fail that passes for hardware. The software behind
// it gets the same unit.
func TestFallBack(t *testing.T) {
	const frames = 40
	refuse := &avcodec.HardwareError{Reason: "no session left"}
	for _, c := range []struct {
		name  string
		fails func(n int64) error
		want  []int // units whose pictures come
		note  string
	}{
		{
			"refused at the start", func(n int64) error { return refuse },
			span(0, frames), "not decoded by h264: no session left",
		},
		{
			"refused in between", func(n int64) error { return when(n == 20, refuse) },
			span(0, frames), "not decoded by h264: no session left",
		},
		{
			"fails at the start", func(n int64) error { return decode.External() },
			span(0, frames), "not decoded by h264: external",
		},
		{
			"fails from the middle of a group on", func(n int64) error { return when(n >= 14, decode.External()) },
			slices.Concat(span(0, 14), span(30, frames)), "not decoded by h264: external",
		},
		{
			"fails once", func(n int64) error { return when(n == 20, decode.External()) },
			slices.Concat(span(0, 20), span(30, frames)), "",
		},
		{
			"the stream is broken", func(n int64) error { return when(n%10 == 0 && n > 0, decode.Invalid()) },
			span(0, 10), "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			clip := gops(t, "h264", frames)
			d := newDecoder(t, decode.Options{Info: capture.StreamInfo{Codec: capture.H264}}.WithEngines(c.fails, "h264", "h264"))
			s := &sink{t: t}
			for i := range clip.Units {
				_ = d.Decode(unit(clip, i), s.emit)
			}
			wantPictures(t, s, clip, frames, c.want...)
			for i, m := range s.metas {
				if m.Seq != uint64(i+1) {
					t.Errorf("frame %d has number %d", i, m.Seq)
				}
			}
			if got := d.Info().Note; got != c.note {
				t.Errorf("note %q, want %q", got, c.note)
			}
		})
	}
}

func when(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

// TestAnInstalledDecoderIsLeft: one that FFmpeg has and the machine cannot run.
func TestAnInstalledDecoderIsLeft(t *testing.T) {
	clip := gops(t, "h264", 10)
	d := forClip(t, clip, decode.Options{Installed: true})
	s := &sink{t: t}
	play(t, d, clip, s)
	wantPictures(t, s, clip, 10, span(0, 10)...)
	i := d.Info()
	if i.Name != "h264" || !strings.HasPrefix(i.Note, "not decoded by h264_v4l2m2m: open decoder h264_v4l2m2m: libavcodec refused: ") {
		t.Errorf("info %+v", i)
	}
}
