//go:build cgo

package rtsp_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/capture/rtsp"
	"edgecam/framepool"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
)

func codecOf(c testkit.Clip) capture.Codec {
	if c.Codec == "hevc" {
		return capture.H265
	}
	return capture.H264
}

// shown decodes what came over the wire, and gives the numbers of the pictures
// that a viewer sees; each must be the very picture that ffmpeg makes. Pictures
// are numbered in display order by their RTP times, from zero in steps of step.
func shown(t *testing.T, r *recorder, clip testkit.Clip, zero, step uint32) []int {
	t.Helper()
	lib, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	d, err := decode.New(decode.Options{Camera: "gate", Info: r.infos[0], Library: lib, Node: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	size := len(clip.Raw) / len(clip.Units)
	var numbers []int
	emit := func(f *framepool.Frame) {
		defer f.Release()
		n := int((f.Meta().RTPTime - zero) / step)
		numbers = append(numbers, n)
		if n < 0 || n >= len(clip.Units) {
			t.Errorf("a picture with the number %d", n)
		} else if !bytes.Equal(pixels(f), clip.Raw[n*size:][:size]) {
			t.Errorf("picture %d is not true", n)
		}
	}
	for _, au := range r.units {
		_ = d.Decode(au, emit) // damage is what this is about
	}
	return numbers
}

// pixels are the visible samples of f as ffmpeg writes rawvideo.
func pixels(f *framepool.Frame) []byte {
	var out []byte
	m := f.Meta()
	for i := range m.Format.Planes() {
		cols, rows := m.Format.PlaneSize(i, m.Width, m.Height)
		for y := range rows {
			o := y * f.Stride(i)
			out = append(out, f.Plane(i)[o:o+cols*m.Format.SampleBytes()]...)
		}
	}
	return out
}

func gops(t *testing.T, codec string, frames int, args ...string) testkit.Clip {
	t.Helper()
	if codec == "hevc" {
		args = append(args, "-x265-params", "log-level=none:aud=1:bframes=0:keyint=10:min-keyint=10:scenecut=0")
	} else {
		args = append([]string{"-g", "10", "-bf", "0", "-sc_threshold", "0"}, args...)
	}
	return testkit.Encode(t, codec, "yuv420p", "320x180", frames, args...)
}

// without leaves out a packet.
func without(packets []*rtp.Packet, i int) []*rtp.Packet {
	return slices.Concat(packets[:i], packets[i+1:])
}

// firstFragment finds the first packet of a fragmented slice.
func firstFragment(t *testing.T, codec capture.Codec, packets []*rtp.Packet) int {
	t.Helper()
	i := slices.IndexFunc(packets, func(p *rtp.Packet) bool {
		if codec == capture.H265 {
			return p.Payload[0]>>1&0x3f == 49 && p.Payload[2]&0x3f < 32
		}
		return p.Payload[0]&0x1f == 28 && p.Payload[1]&0x1f < 6
	})
	if i < 0 {
		t.Error("no fragment among the packets")
		return 0
	}
	return i
}

// Nothing is shown of a picture that lost a packet, nor of those that are built
// on it; all others are, bit for bit.
func TestOnlyTruePictures(t *testing.T) {
	const n = 60
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			clip := gops(t, codec, n)
			tests := []struct {
				name string
				lose func(i int, packets []*rtp.Packet, first int) []*rtp.Packet
				want func(i int) bool
			}{
				{"nothing", func(_ int, p []*rtp.Packet, _ int) []*rtp.Packet { return p }, func(int) bool { return true }},
				{"the first fragment of every fifth picture", func(i int, p []*rtp.Packet, first int) []*rtp.Packet {
					if i%5 == 4 {
						return without(p, first)
					}
					return p
				}, func(i int) bool { return i%10 < 4 }},
				{"a middle fragment of a key picture", func(i int, p []*rtp.Packet, first int) []*rtp.Packet {
					if i == 20 || i == 40 {
						return without(p, first+1)
					}
					return p
				}, func(i int) bool { return i/10 != 2 && i/10 != 4 }},
				{"the last fragment of a picture", func(i int, p []*rtp.Packet, _ int) []*rtp.Packet {
					if i == 33 {
						return p[:len(p)-1]
					}
					return p
				}, func(i int) bool { return i < 33 || i >= 40 }},
				{"a whole picture", func(i int, p []*rtp.Packet, _ int) []*rtp.Packet {
					if i == 25 {
						return nil
					}
					return p
				}, func(i int) bool { return i < 25 || i >= 30 }},
			}
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					var want []int
					for i := range n {
						if tt.want(i) {
							want = append(want, i)
						}
					}
					s := newStream(codecOf(clip))
					s.mtu = 100
					zero := s.rtp
					r := watchUntil(t, s.codec, rtsp.TCP, zero+n*9000, func(w *wire) {
						for i, unit := range clip.Units {
							packets := s.picture(unit...)
							w.send(tt.lose(i, packets, firstFragment(t, s.codec, packets))...)
						}
						w.send(s.picture(clip.Units[0]...)...) // ends what waits
					})
					if got := shown(t, r, clip, zero, 9000); !slices.Equal(got, want) {
						t.Errorf("pictures %v, want %v", got, want)
					}
				})
			}
		})
	}
}

// Cameras cut pictures in many ways: all give the same pictures, each once.
func TestPicturesHoweverCut(t *testing.T) {
	tests := []struct {
		name   string
		codec  string
		args   []string
		stream func(*stream)
	}{
		{"four slices, a marker on each", "h264", []string{"-x264-params", "slices=4"}, func(s *stream) { s.always = true }},
		{"four slices, never a marker", "h264", []string{"-x264-params", "slices=4"}, func(s *stream) { s.never = true }},
		{"eleven slices, all with one time", "h264", []string{"-x264-params", "slices=11"}, func(s *stream) { s.step = 0 }},
		{"hevc, never a marker", "hevc", nil, func(s *stream) { s.never = true }},
		{"hevc, a marker on each unit", "hevc", nil, func(s *stream) { s.always = true }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const n = 30
			clip := gops(t, tt.codec, n, tt.args...)
			s := newStream(codecOf(clip))
			tt.stream(s)
			zero := s.rtp
			r := watchWire(t, s.codec, rtsp.TCP, n, func(w *wire) {
				for _, unit := range clip.Units {
					w.send(s.picture(unit...)...)
				}
				w.send(s.picture(clip.Units[0]...)...)
			})
			for i, au := range r.units { // equal times tell no order
				au.RTPTime = zero + uint32(i)*9000
			}
			if got := shown(t, r, clip, zero, 9000); len(got) != n {
				t.Errorf("pictures %v, want %d", got, n)
			}
		})
	}
}

// Many slices, and pictures whose display order is not that of decoding.
func TestSlicesAndOrder(t *testing.T) {
	tests := []struct {
		name, size string
		args       []string
	}{
		{"64 slices", "96x1088", []string{"-g", "10", "-bf", "0", "-x264-params", "slices=64"}},
		{"B pictures", "320x180", []string{"-g", "12", "-bf", "3", "-x264-params", "b-adapt=0:b-pyramid=none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const n = 24
			clip := testkit.Encode(t, "h264", "yuv420p", tt.size, n, tt.args...)
			s := newStream(capture.H264)
			zero := s.rtp
			r := watchWire(t, capture.H264, rtsp.TCP, n, func(w *wire) {
				for i, unit := range clip.Units {
					if s.rtp = zero + uint32(i)*9000; strings.HasPrefix(tt.name, "B") {
						s.rtp = zero + uint32(displayed(i))*9000
					}
					w.send(s.picture(unit...)...)
				}
			})
			got := shown(t, r, clip, zero, 9000)
			// The last ones wait for those that would come after them.
			if len(got) < n-4 || !slices.IsSorted(got) || got[0] != 0 || got[len(got)-1] != len(got)-1 {
				t.Errorf("pictures %v", got)
			}
		})
	}
}

// displayed is where the picture at a place of decoding order is shown: groups
// of twelve, each with three pictures between those that they refer to. The last
// three of a group are shown before the next one begins.
func displayed(i int) int {
	group, at := i/12*12, i%12
	order := [...]int{0, 4, 1, 2, 3, 8, 5, 6, 7, 11, 9, 10}
	return group + order[at]
}
