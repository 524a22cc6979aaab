//go:build cgo

package decode_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/internal/testkit"
)

// gops is a clip of groups of ten pictures without reordering.
func gops(t *testing.T, codec string, frames int) testkit.Clip {
	t.Helper()
	args := []string{"-g", "10", "-bf", "0"}
	if codec == "hevc" {
		args = []string{"-x265-params", "log-level=none:aud=1:bframes=0:keyint=10:min-keyint=10:scenecut=0"}
	}
	return testkit.Encode(t, codec, "yuv420p", "320x180", frames, args...)
}

// picture is picture i of the clip's truth.
func picture(c testkit.Clip, i, frames int) []byte {
	size := len(c.Raw) / frames
	return c.Raw[i*size:][:size]
}

// wantPictures checks that the sink got just the pictures of these numbers.
func wantPictures(t *testing.T, s *sink, c testkit.Clip, frames int, want ...int) {
	t.Helper()
	var got []int
	for _, m := range s.metas {
		got = append(got, int(m.RTPTime/9000))
	}
	if !slices.Equal(got, want) {
		t.Errorf("frames of units %v, want %v", got, want)
		return
	}
	var truth []byte
	for _, i := range want {
		truth = append(truth, picture(c, i, frames)...)
	}
	if !bytes.Equal(s.raw, truth) {
		t.Error("pixels differ from ffmpeg's")
	}
}

func span(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func TestJoinInTheMiddle(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			clip := gops(t, codec, 30)
			var sets [][]byte
			for _, n := range clip.Units[0] {
				if h := n[0] & 31; codec == "h264" && (h == 7 || h == 8) || codec == "hevc" && n[0]>>1&63 >= 32 && n[0]>>1&63 <= 34 {
					sets = append(sets, n)
				}
			}
			for name, info := range map[string]capture.StreamInfo{
				"sets in the description": {Codec: codecOf(clip), ParameterSets: sets},
				"sets in the stream":      {Codec: codecOf(clip)},
			} {
				d := newDecoder(t, decode.Options{Info: info})
				s := &sink{t: t}
				for i := 3; i < 30; i++ {
					if err := d.Decode(unit(clip, i), s.emit); err != nil {
						t.Errorf("%s: unit %d: %v", name, i, err)
					}
					if want := i < 10; d.Stats().Waiting != want {
						t.Errorf("%s: unit %d: waiting %v", name, i, d.Stats().Waiting)
					}
				}
				wantPictures(t, s, clip, 30, span(10, 30)...)
				d.Close()
				if got := d.Stats().Dropped[decode.DropWaiting]; got != 7 {
					t.Errorf("%s: %d dropped, want 7: %v", name, got, d.Stats().Dropped)
				}
			}
		})
	}
}

func TestParameterSetsOnlyInTheDescription(t *testing.T) {
	for codec, isSet := range map[string]func(n []byte) bool{
		"h264": func(n []byte) bool { return n[0]&31 == 7 || n[0]&31 == 8 },
		"hevc": func(n []byte) bool { return n[0]>>1&63 >= 32 && n[0]>>1&63 <= 34 },
	} {
		t.Run(codec, func(t *testing.T) {
			clip := gops(t, codec, 20)
			var sets [][]byte
			for i := range clip.Units {
				clip.Units[i] = slices.DeleteFunc(clip.Units[i], func(n []byte) bool {
					if isSet(n) && i == 0 {
						sets = append([][]byte{n}, sets...) // in the wrong order
					}
					return isSet(n)
				})
			}
			d := newDecoder(t, decode.Options{Info: capture.StreamInfo{
				Codec: codecOf(clip), ParameterSets: append(sets, nil, []byte{0x67}, []byte{0xff, 0xff, 0xff, 0xff}),
			}})
			s := &sink{t: t}
			for i := range clip.Units {
				au := unit(clip, i)
				au.LossBefore = i == 5
				if err := d.Decode(au, s.emit); err != nil {
					t.Error(err)
				}
			}
			wantPictures(t, s, clip, 20, append(span(0, 5), span(10, 20)...)...)
		})
	}
}

func TestLossWaitsForTheNextKeyFrame(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			clip := gops(t, codec, 40)
			d := forClip(t, clip, decode.Options{})
			s := &sink{t: t}
			for i := range clip.Units {
				if i == 13 || i == 20 {
					continue // 20 is a key frame
				}
				au := unit(clip, i)
				au.LossBefore = i == 14 || i == 21
				if err := d.Decode(au, s.emit); err != nil {
					t.Errorf("unit %d: %v", i, err)
				}
			}
			wantPictures(t, s, clip, 40, append(span(0, 13), span(30, 40)...)...)
			d.Close()
			if got := d.Stats().Dropped[decode.DropWaiting]; got != 15 {
				t.Errorf("dropped %v, want 15 waiting", d.Stats().Dropped)
			}
		})
	}
}

// TestLossKeepsWholePictures: with reordering, the pictures decoded before a
// loss and shown after it are whole.
func TestLossKeepsWholePictures(t *testing.T) {
	const frames = 40
	clip := testkit.Encode(t, "h264", "yuv420p", "320x180", frames, "-preset", "medium", "-bf", "3", "-b_strategy", "0", "-g", "20")
	d := forClip(t, clip, decode.Options{})
	s := &sink{t: t}
	for i := range clip.Units {
		au := unit(clip, i)
		au.LossBefore = i == 11
		if err := d.Decode(au, s.emit); err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	// Units 0 to 10 are I P B B B P B B B P B: eleven pictures, the last P
	// after a gap of what was lost.
	if len(s.metas) < 25 {
		t.Fatalf("%d frames", len(s.metas))
	}
	for i := range s.metas {
		size := len(clip.Raw) / frames
		if !bytes.Contains(clip.Raw, s.raw[i*size:][:size]) {
			t.Errorf("frame %d of unit %d is none of ffmpeg's", i, s.metas[i].RTPTime/9000)
		}
	}
	before := 0
	for _, m := range s.metas {
		if m.RTPTime/9000 < 11 {
			before++
		}
	}
	if before != 11 {
		t.Errorf("%d of the 11 pictures before the loss came", before)
	}
}

// TestDamage breaks units without telling. What libavcodec can see never shows:
// a cut slice of H.264, a cut JPEG. Bytes that were changed often decode to
// something that is valid and wrong, and HEVC's entropy decoder runs past the
// end of a cut slice unseen: there the test holds the share that comes
// through. Once group after group is damaged an H.265 stream is not shown at all
// until one is whole. Cameras' packets carry checksums, and lost ones are known by their
// numbers (AccessUnit.LossBefore), so neither is how streams break in practice.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		codec, how   string
		breaks       func(*rand.Rand, []byte) []byte
		wrong, least int // frames of 200
	}{
		{"h264", "cut", cut, 0, 50},
		{"h264", "overwritten", overwrite, 20, 50},
		{"hevc", "cut", cut, 0, 5},
		{"hevc", "overwritten", overwrite, 130, 50},
		{"mjpeg", "cut", cut, 0, 170},
		{"mjpeg", "overwritten", overwrite, 0, 170},
	} {
		t.Run(c.codec+" "+c.how, func(t *testing.T) {
			const frames = 200
			var clip testkit.Clip
			if c.codec == "mjpeg" {
				clip = testkit.Encode(t, c.codec, "yuvj420p", "320x180", frames)
			} else {
				clip = gops(t, c.codec, frames)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			d := forClip(t, clip, decode.Options{})
			s := &sink{t: t}
			for i := range clip.Units {
				au := unit(clip, i)
				if i%7 == 5 {
					breakLargest(rng, au, c.breaks)
				}
				_ = d.Decode(au, s.emit) // what comes out is what counts
			}
			wrong := 0
			size := len(clip.Raw) / frames
			for k, m := range s.metas {
				if !bytes.Equal(s.raw[k*size:][:size], picture(clip, int(m.RTPTime/9000), frames)) {
					wrong++
				}
			}
			t.Logf("%d frames of %d, %d of them wrong, dropped %v", len(s.metas), frames, wrong, d.Stats().Dropped)
			if wrong > c.wrong || len(s.metas) < c.least {
				t.Errorf("%d frames, %d wrong; want at least %d, at most %d wrong", len(s.metas), wrong, c.least, c.wrong)
			}
		})
	}
}

// breakLargest breaks the largest part of the unit.
func breakLargest(rng *rand.Rand, au *capture.AccessUnit, how func(*rand.Rand, []byte) []byte) {
	big := 0
	au.NALUs = slices.Clone(au.NALUs)
	for i, n := range au.NALUs {
		if len(n) > len(au.NALUs[big]) {
			big = i
		}
	}
	au.NALUs[big] = how(rng, slices.Clone(au.NALUs[big]))
}

func cut(_ *rand.Rand, n []byte) []byte { return n[:len(n)/2] }

func overwrite(rng *rand.Rand, n []byte) []byte {
	for range 1 + len(n)/100 {
		n[len(n)/4+rng.IntN(len(n)*3/4)] ^= byte(1 + rng.IntN(255))
	}
	return n
}

func TestIntraRefreshWithoutKeyFrames(t *testing.T) {
	for name, sei := range map[string]bool{"recovery points": true, "no marks": false} {
		t.Run(name, func(t *testing.T) {
			const frames = 220
			clip := testkit.Encode(t, "h264", "yuv420p", "320x180", frames, "-bf", "0", "-x264opts", "keyint=20:intra-refresh=1")
			d := forClip(t, clip, decode.Options{})
			s := &sink{t: t, discard: true}
			var first time.Duration = -1
			for i := 1; i < frames; i++ {
				au := unit(clip, i)
				if au.RandomAccess {
					t.Fatalf("unit %d is a key frame", i)
				}
				if !sei {
					au.NALUs = slices.DeleteFunc(slices.Clone(au.NALUs), func(n []byte) bool { return n[0]&31 == 6 })
				}
				if i == 1 {
					au.NALUs = slices.Concat(sets264(clip), au.NALUs)
				}
				if err := d.Decode(au, s.emit); err != nil {
					t.Errorf("unit %d: %v", i, err)
				}
				if first < 0 && len(s.metas) > 0 {
					first = au.PTS
				}
			}
			t.Logf("first frame at %v, %d frames, %v", first, len(s.metas), d.Stats().Dropped)
			limit := 6 * time.Second
			if !sei {
				limit = 11 * time.Second
			}
			if first < 0 || first > limit {
				t.Errorf("first frame at %v, want one by %v", first, limit)
			}
		})
	}
}

func sets264(c testkit.Clip) (sets [][]byte) {
	for _, n := range c.Units[0] {
		if n[0]&31 == 7 || n[0]&31 == 8 {
			sets = append(sets, n)
		}
	}
	return sets
}

// TestNoise plays a stream that FFmpeg's noise filter has torn up: few frames,
// few lines, no end of the session.
func TestNoise(t *testing.T) {
	const frames = 120
	clip := testkit.Encode(t, "h264", "yuv420p", "320x180", frames, "-g", "10", "-bf", "0", "-bsf:v", "h264_metadata=aud=insert,noise=amount=200")
	var lines countHandler
	d := forClip(t, clip, decode.Options{Logger: slog.New(&lines)})
	s := &sink{t: t, discard: true}
	for i := range clip.Units {
		err := d.Decode(unit(clip, i), s.emit)
		if errors.As(err, new(*capture.UnsupportedError)) {
			t.Fatalf("unit %d: %v", i, err)
		}
	}
	d.Close()
	st := d.Stats()
	t.Logf("%d frames, %d lines, dropped %v", st.Frames, lines.n, st.Dropped)
	if st.Dropped[decode.DropDamaged] == 0 || st.Frames > frames/2 {
		t.Errorf("%d frames of a torn stream, dropped %v", st.Frames, st.Dropped)
	}
	if lines.n > 20 {
		t.Errorf("%d lines of log", lines.n)
	}
}

// countHandler counts the lines of a log.
type countHandler struct{ n int }

func (h *countHandler) Enabled(_ context.Context, l slog.Level) bool { return l > slog.LevelInfo }
func (h *countHandler) Handle(context.Context, slog.Record) error    { h.n++; return nil }
func (h *countHandler) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h *countHandler) WithGroup(string) slog.Handler                { return h }
