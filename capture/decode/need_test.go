//go:build cgo

package decode_test

import (
	"testing"

	"edgecam/capture/decode"
	"edgecam/internal/testkit"
)

// TestCountedSlotsAreEnough plays streams that use all that their parameter sets
// allow, while a reader holds all that it may.
func TestCountedSlotsAreEnough(t *testing.T) {
	for _, c := range []struct {
		name, codec string
		args        []string
		slots       int // most that the pool may have, 1 of them for the reader
	}{
		{"h264 baseline", "h264", []string{"-profile:v", "baseline", "-refs", "1"}, 5},
		{"h264 three references", "h264", []string{"-preset", "medium", "-bf", "0", "-refs", "3"}, 7},
		{"h264 pyramid", "h264", []string{"-preset", "medium", "-bf", "3", "-b_strategy", "0", "-refs", "4"}, 10},
		{"h264 all", "h264", []string{"-preset", "medium", "-bf", "16", "-b_strategy", "0", "-refs", "16"}, 24},
		{"hevc no reordering", "hevc", []string{"-x265-params", "log-level=none:aud=1:bframes=0:ref=1"}, 8},
		{"hevc pyramid", "hevc", []string{"-x265-params", "log-level=none:aud=1:bframes=4:b-adapt=0:ref=4"}, 14},
		{"mjpeg", "mjpeg", nil, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			format := "yuv420p"
			if c.codec == "mjpeg" {
				format = "yuvj420p"
			}
			clip := testkit.Encode(t, c.codec, format, "160x96", 50, c.args...)
			d := forClip(t, clip, decode.Options{ReaderSlots: 1})
			s := &sink{t: t, keep: true, discard: true}
			play(t, d, clip, s)
			defer s.release()
			st := d.Stats()
			if st.Dropped[decode.DropExhausted] != 0 || st.Dropped[decode.DropDamaged] != 0 || len(s.frames) != 1 {
				t.Errorf("%d frames held, dropped %v", len(s.frames), st.Dropped)
			}
			p := st.Pools[0]
			if p.Slots > c.slots {
				t.Errorf("%d slots, want at most %d", p.Slots, c.slots)
			}
			t.Logf("%d slots, %d used", p.Slots, p.HighWater)
		})
	}
}
