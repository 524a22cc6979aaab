//go:build cgo

package decode_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"edgecam/capture/decode"
	"edgecam/internal/testkit"
)

// TestSliceIsMissing takes one slice out of pictures of several, as an encoder
// or a firmware with a fault does: no packet is lost, so nothing tells. No picture
// that lacks a part may come out, nor one that is built on it.
func TestSliceIsMissing(t *testing.T) {
	const frames = 60
	for _, c := range []struct {
		name, codec string
		args        []string
	}{
		{"h264", "h264", []string{"-bf", "0", "-g", "10", "-x264-params", "slices=4"}},
		{"h265, blocks of 64", "hevc", x265("ctu=64:slices=3")},
		{"h265, blocks of 32", "hevc", x265("ctu=32:slices=4")},
		{"h265, blocks of 16", "hevc", x265("ctu=16:slices=4")},
	} {
		clip := testkit.Encode(t, c.codec, "yuv420p", "640x360", frames, c.args...)
		for which := range 3 {
			t.Run(fmt.Sprintf("%s, slice %d", c.name, which), func(t *testing.T) {
				d := forClip(t, clip, decode.Options{})
				s := &sink{t: t}
				for i := range clip.Units {
					au := unit(clip, i)
					if i%20 == 7 {
						au.NALUs = without(au.NALUs, which, func(n []byte) bool {
							if c.codec == "hevc" {
								return n[0]>>1&63 < 32
							}
							return n[0]&31 <= 5
						})
					}
					_ = d.Decode(au, s.emit) // what comes out is what counts
				}
				size := len(clip.Raw) / frames
				for k, m := range s.metas {
					if !bytes.Equal(s.raw[k*size:][:size], picture(clip, int(m.RTPTime/9000), frames)) {
						t.Errorf("picture %d is not whole", m.RTPTime/9000)
					}
				}
				// Pictures 7, 27 and 47 are broken, and with each the rest of its ten.
				if want := frames - 3*3; len(s.metas) != want || d.Stats().Damaged != 3 {
					t.Errorf("%d frames, want %d; %+v", len(s.metas), want, d.Stats())
				}
			})
		}
	}
}

func x265(more string) []string {
	return []string{"-x265-params", "log-level=none:aud=1:bframes=0:keyint=10:min-keyint=10:scenecut=0:" + more}
}

// without leaves out slice number which.
func without(nalus [][]byte, which int, slice func([]byte) bool) [][]byte {
	return slices.DeleteFunc(slices.Clone(nalus), func(n []byte) bool {
		if !slice(n) {
			return false
		}
		which--
		return which == -1
	})
}
