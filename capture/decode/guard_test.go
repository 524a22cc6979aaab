//go:build cgo && linux && !race

package decode_test

import (
	"bytes"
	"fmt"
	"testing"

	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
)

// TestNoThreadWritesOutside decodes pictures of odd sizes into slots that lie
// against a page without access, above or below: a write past the end faults, and
// the test with it. B-pictures, vectors beyond the edges and slice threads are in
// the streams.
func TestNoThreadWritesOutside(t *testing.T) {
	const frames = 8
	slices := map[string][]string{
		"h264":  {"-preset", "medium", "-bf", "2", "-x264-params", "slices=4:keyint=4"},
		"hevc":  {"-preset", "medium", "-x265-params", "log-level=none:aud=1:wpp=1:slices=2:keyint=4:bframes=2"},
		"mjpeg": {"-slices", "4"},
	}
	formats := map[string][]string{
		"h264": {"yuv420p", "yuv422p", "yuv444p10le"}, "hevc": {"yuv420p", "yuv420p10le"}, "mjpeg": {"yuvj420p", "yuvj422p"},
	}
	// The small ones end in blocks of 64 as 1026x768 and 1030x770 do.
	for _, size := range []string{"258x192", "262x194", "1918x1078", "16x16", "634x366"} {
		for codec, list := range formats {
			for i, format := range list {
				if i > 0 && size == "1918x1078" {
					continue // time
				}
				args := slices[codec]
				if size == "16x16" && codec == "hevc" {
					args = []string{"-x265-params", "log-level=none:aud=1:ctu=16:min-cu-size=8:keyint=4"}
				}
				t.Run(fmt.Sprint(size, " ", codec, " ", format), func(t *testing.T) {
					clip := testkit.Encode(t, codec, format, size, frames, args...)
					for _, threads := range []int{1, 8} {
						for _, guard := range []framepool.Guard{framepool.GuardAbove, framepool.GuardBelow} {
							d := forClip(t, clip, decode.Options{Threads: threads}.WithGuard(guard))
							s := &sink{t: t}
							play(t, d, clip, s)
							finish(t, d, s)
							if len(s.metas) != frames || !bytes.Equal(s.raw, clip.Raw) {
								t.Errorf("%d threads, guard %d: %d frames, pixels are ffmpeg's: %v", threads, guard, len(s.metas), bytes.Equal(s.raw, clip.Raw))
							}
							d.Close()
						}
					}
				})
			}
		}
	}
}
