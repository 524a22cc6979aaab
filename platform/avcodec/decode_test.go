//go:build cgo

package avcodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
)

func unit(c testkit.Clip, i int) avcodec.Unit {
	return avcodec.Unit{Parts: c.Units[i], StartCodes: c.Codec != "mjpeg", PTS: int64(i)}
}

func TestPixelsAreFFmpegs(t *testing.T) {
	for _, c := range []struct {
		name, codec, format, size string
		args                      []string
		threads                   int
		want                      string // of the first picture
	}{
		{name: "h264 yuv420p", codec: "h264", format: "yuv420p", size: "640x360", want: "yuv420p 640x360 full=false matrix=2"},
		{name: "h264 yuvj420p", codec: "h264", format: "yuvj420p", size: "640x360", want: "yuvj420p 640x360 full=true matrix=2"},
		{name: "h264 yuv422p", codec: "h264", format: "yuv422p", size: "640x360", want: "yuv422p 640x360 full=false matrix=2"},
		{name: "h264 yuvj422p", codec: "h264", format: "yuvj422p", size: "640x360", want: "yuvj422p 640x360 full=true matrix=2"},
		{name: "h264 yuv444p", codec: "h264", format: "yuv444p", size: "640x360", want: "yuv444p 640x360 full=false matrix=2"},
		{name: "h264 yuvj444p", codec: "h264", format: "yuvj444p", size: "640x360", want: "yuvj444p 640x360 full=true matrix=2"},
		{name: "h264 gray", codec: "h264", format: "gray", size: "640x360", want: "yuvj420p 640x360 full=true matrix=2"},
		{name: "h264 10 bit", codec: "h264", format: "yuv420p10le", size: "640x360", want: "yuv420p10le 640x360 full=false matrix=2"},
		{name: "h264 422 10 bit", codec: "h264", format: "yuv422p10le", size: "640x360", want: "yuv422p10le 640x360 full=false matrix=2"},
		{name: "h264 444 10 bit", codec: "h264", format: "yuv444p10le", size: "640x360", want: "yuv444p10le 640x360 full=false matrix=2"},
		{name: "h264 gray 10 bit", codec: "h264", format: "gray10le", size: "640x360", want: "yuv420p10le 640x360 full=true matrix=2"},
		{name: "h264 bt709", codec: "h264", format: "yuv420p", size: "64x64", args: []string{"-colorspace", "bt709"}, want: "yuv420p 64x64 full=false matrix=1"},
		{name: "h264 B pictures", codec: "h264", format: "yuv420p", size: "640x360", args: []string{"-preset", "medium", "-bf", "3", "-b_strategy", "0"}, want: "yuv420p 640x360 full=false matrix=2"},
		{name: "h264 interlaced", codec: "h264", format: "yuv420p", size: "640x360", args: []string{"-x264opts", "tff=1", "-flags", "+ildct+ilme"}, want: "yuv420p 640x360 full=false matrix=2"},
		{name: "h264 four slices, four threads", codec: "h264", format: "yuv420p", size: "640x360", args: []string{"-slices", "4"}, threads: 4, want: "yuv420p 640x360 full=false matrix=2"},
		{name: "h264 1918x1078", codec: "h264", format: "yuv420p", size: "1918x1078", want: "yuv420p 1918x1078 full=false matrix=2"},
		{name: "h264 1030x770", codec: "h264", format: "yuv420p", size: "1030x770", threads: 8, want: "yuv420p 1030x770 full=false matrix=2"},
		{name: "h264 1026x768", codec: "h264", format: "yuv420p", size: "1026x768", want: "yuv420p 1026x768 full=false matrix=2"},
		{name: "h264 16x16", codec: "h264", format: "yuv420p", size: "16x16", want: "yuv420p 16x16 full=false matrix=2"},
		{name: "h264 641x361 444", codec: "h264", format: "yuv444p", size: "641x361", want: "yuv444p 641x361 full=false matrix=2"},
		{
			name: "h264 crop left and top", codec: "h264", format: "yuv420p", size: "640x360",
			args: []string{"-bsf:v", "h264_metadata=aud=insert:crop_left=6:crop_top=2:crop_right=0:crop_bottom=0"}, want: "yuv420p 634x366 full=false matrix=2",
		},
		{name: "hevc yuv420p", codec: "hevc", format: "yuv420p", size: "640x360", want: "yuv420p 640x360 full=false matrix=2"},
		{name: "hevc full range", codec: "hevc", format: "yuv420p", size: "640x360", args: []string{"-x265-params", "log-level=none:aud=1:range=full"}, want: "yuvj420p 640x360 full=true matrix=2"},
		{name: "hevc 10 bit", codec: "hevc", format: "yuv420p10le", size: "640x360", want: "yuv420p10le 640x360 full=false matrix=2"},
		{name: "hevc 422", codec: "hevc", format: "yuv422p", size: "640x360", want: "yuv422p 640x360 full=false matrix=2"},
		{name: "hevc 444 10 bit", codec: "hevc", format: "yuv444p10le", size: "640x360", want: "yuv444p10le 640x360 full=false matrix=2"},
		{name: "hevc gray", codec: "hevc", format: "gray", size: "640x360", want: "gray 640x360 full=true matrix=2"},
		{name: "hevc gray 10 bit", codec: "hevc", format: "gray10le", size: "640x360", want: "gray10le 640x360 full=true matrix=2"},
		{name: "hevc 1918x1078", codec: "hevc", format: "yuv420p", size: "1918x1078", want: "yuv420p 1918x1078 full=false matrix=2"},
		{name: "hevc 64x64", codec: "hevc", format: "yuv420p", size: "64x64", want: "yuv420p 64x64 full=false matrix=2"},
		{name: "mjpeg 420", codec: "mjpeg", format: "yuvj420p", size: "640x360", want: "yuvj420p 640x360 full=true matrix=5"},
		{name: "mjpeg 422", codec: "mjpeg", format: "yuvj422p", size: "640x360", want: "yuvj422p 640x360 full=true matrix=5"},
		{name: "mjpeg 444", codec: "mjpeg", format: "yuvj444p", size: "640x360", want: "yuvj444p 640x360 full=true matrix=5"},
		{name: "mjpeg 641x361", codec: "mjpeg", format: "yuvj420p", size: "641x361", want: "yuvj420p 641x361 full=true matrix=5"},
		{name: "mjpeg 8x8", codec: "mjpeg", format: "yuvj420p", size: "8x8", want: "yuvj420p 8x8 full=true matrix=5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const frames = 8
			out, _, _ := strings.Cut(c.want, " ")
			in := testkit.EncodeAs(t, c.codec, c.format, out, c.size, frames, c.args...)
			rs := newRings(t, 20)
			d := open(t, avcodec.Options{Decoder: c.codec, Codec: c.codec, Threads: c.threads, Allocate: rs.allocate})
			d.Strict(true)
			var got []byte
			var pts []int64
			take := func(p *avcodec.Picture) {
				if len(pts) == 0 && describe(p) != c.want {
					t.Errorf("picture is %s, want %s", describe(p), c.want)
				}
				if p.Corrupt || p.Damaged {
					t.Errorf("picture %d is flagged as damaged", p.PTS)
				}
				pts = append(pts, p.PTS)
				got = append(got, rs.pixels(p)...)
			}
			for i := range in.Units {
				if err := d.Decode(unit(in, i), take); err != nil {
					t.Fatalf("unit %d: %v", i, err)
				}
			}
			if err := d.Drain(take); err != nil {
				t.Fatal(err)
			}
			if len(pts) != frames {
				t.Errorf("%d pictures of %d units", len(pts), frames)
			}
			if s := slices.Sorted(slices.Values(pts)); len(slices.Compact(s)) != len(pts) {
				t.Errorf("units come back as %v", pts)
			}
			if !samePixels(c.codec, got, in.Raw) {
				t.Errorf("pixels differ from ffmpeg's (%d and %d bytes)", len(got), len(in.Raw))
			}
			checkRequests(t, rs.requests)
			d.Close()
			for i, g := range rs.all {
				if n := g.inUse(); n != 0 {
					t.Errorf("ring %d: %d slots are in use after Close", i, n)
				}
			}
		})
	}
}

// samePixels compares with what the ffmpeg program made. H.264 and H.265 leave
// a decoder no choice. JPEG lets the rounding of its transform to it, and ffmpeg's
// differs between processors: the program is the machine's own, also where these
// tests run emulated.
func samePixels(codec string, got, want []byte) bool {
	if codec != "mjpeg" || !testkit.Emulated() {
		return bytes.Equal(got, want)
	}
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if d := int(got[i]) - int(want[i]); d > 2 || d < -2 {
			return false
		}
	}
	return true
}

func checkRequests(t *testing.T, qs []avcodec.Request) {
	t.Helper()
	if len(qs) != 1 {
		t.Errorf("%d rings were asked for, want 1", len(qs))
	}
	for _, q := range qs {
		for i := range q.Stride {
			if q.Stride[i]%64 != 0 || q.Offset[i]%64 != 0 {
				t.Errorf("plane %d: stride %d and offset %d are not multiples of 64", i, q.Stride[i], q.Offset[i])
			}
		}
	}
}

func TestRefusedFormatsAreNamed(t *testing.T) {
	for _, c := range []struct{ codec, format, enc string }{
		{"hevc", "yuv420p12le", "libx265"},
		{"hevc", "gbrp", "libx265"},
		{"h264", "gbrp", "libx264rgb"},
		{"mjpeg", "yuvj440p", ""},
	} {
		t.Run(c.codec+" "+c.format, func(t *testing.T) {
			in := refused(t, c.codec, c.format, c.enc)
			rs := newRings(t, 20)
			d := open(t, avcodec.Options{Decoder: c.codec, Allocate: rs.allocate})
			err := d.Decode(unit(in, 0), func(*avcodec.Picture) { t.Error("a picture came") })
			var fe *avcodec.FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("error %v, want a *FormatError", err)
			}
			if want := "pixel format " + c.format + " is not supported"; err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
			if len(rs.requests) != 0 {
				t.Errorf("asked for %v", rs.requests)
			}
		})
	}
}

func refused(t *testing.T, codec, format, enc string) testkit.Clip {
	t.Helper()
	switch {
	case codec == "mjpeg":
		return resample(testkit.Encode(t, "mjpeg", "yuvj444p", "64x64", 1), 0x12, 0x11, 0x11)
	case enc == "libx264rgb":
		return testkit.Encode(t, "h264", format, "64x64", 2, "-c:v", enc, "-pix_fmt", "rgb24")
	}
	return testkit.Encode(t, codec, format, "64x64", 2)
}

// resample writes the sampling factors of the components into the frame header
// of the JPEG file.
func resample(c testkit.Clip, factors ...byte) testkit.Clip {
	j := slices.Clone(c.Units[0][0])
	sof := bytes.Index(j, []byte{0xff, 0xc0})
	for i, f := range factors {
		j[sof+11+3*i] = f
	}
	c.Units[0][0] = j
	return c
}

func TestAllocateRefuses(t *testing.T) {
	in := testkit.Encode(t, "h264", "yuv420p", "64x64", 2)
	rs := newRings(t, 20)
	rs.refuse = errTooBig
	d := open(t, avcodec.Options{Decoder: "h264", Allocate: rs.allocate})
	err := d.Decode(unit(in, 0), func(*avcodec.Picture) { t.Error("a picture came") })
	if !errors.Is(err, errTooBig) || err.Error() != "allocate pictures: 9 of 8 bytes" {
		t.Errorf("error %v", err)
	}
	// The next unit asks again.
	rs.refuse = nil
	n := 0
	if err := d.Decode(unit(in, 0), func(*avcodec.Picture) { n++ }); err != nil || n != 1 {
		t.Errorf("%d pictures, %v", n, err)
	}
}

func TestExhaustedRing(t *testing.T) {
	in := testkit.Encode(t, "mjpeg", "yuvj420p", "64x64", 4)
	rs := newRings(t, 2)
	d := open(t, avcodec.Options{Decoder: "mjpeg", Allocate: rs.allocate})
	keep := func(p *avcodec.Picture) { rs.of(p).word(p.Slot).Add(1) }
	for i := range 2 {
		if err := d.Decode(unit(in, i), keep); err != nil {
			t.Fatal(err)
		}
	}
	err := d.Decode(unit(in, 2), keep)
	if !errors.Is(err, avcodec.ErrExhausted) || d.Exhausted() != 1 {
		t.Fatalf("error %v, %d exhausted", err, d.Exhausted())
	}
	rs.all[0].word(1).Add(^uint64(0))
	var at string
	if err := d.Decode(unit(in, 3), func(p *avcodec.Picture) { at = fmt.Sprint(p.Slot, p.Gen, p.Readers) }); err != nil {
		t.Fatal(err)
	}
	if at != "1 2 1" {
		t.Errorf("slot, generation, readers: %s, want 1 2 1", at)
	}
}

func TestSizeChanges(t *testing.T) {
	small := testkit.Encode(t, "h264", "yuv420p", "64x64", 3, "-bf", "0")
	large := testkit.Encode(t, "h264", "yuv420p", "128x96", 3, "-bf", "0")
	rs := newRings(t, 8)
	d := open(t, avcodec.Options{Decoder: "h264", Allocate: rs.allocate})
	for round := range 20 {
		for _, c := range []testkit.Clip{small, large} {
			n := 0
			for i := range c.Units {
				if err := d.Decode(unit(c, i), func(p *avcodec.Picture) {
					if !bytes.Contains(c.Raw, rs.pixels(p)) {
						t.Errorf("round %d: a picture of %dx%d is not ffmpeg's", round, p.Width, p.Height)
					}
					n++
				}); err != nil {
					t.Fatal(err)
				}
			}
			if n != 3 {
				t.Fatalf("round %d: %d pictures of 3", round, n)
			}
		}
	}
	if len(rs.all) != 40 {
		t.Errorf("%d rings for 40 changes", len(rs.all))
	}
	for i, g := range rs.all[:39] {
		if g.inUse() != 0 {
			t.Errorf("ring %d of the past: %d slots in use", i, g.inUse())
		}
	}
}

// TestHeldPictures closes a decoder while pictures are held: they stay.
func TestHeldPictures(t *testing.T) {
	in := testkit.Encode(t, "h264", "yuv420p", "64x64", 6, "-bf", "0")
	rs := newRings(t, 12)
	d := open(t, avcodec.Options{Decoder: "h264", Allocate: rs.allocate})
	var held []avcodec.Picture
	for i := range in.Units {
		if err := d.Decode(unit(in, i), func(p *avcodec.Picture) {
			rs.of(p).word(p.Slot).Add(1)
			held = append(held, *p)
		}); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	d.Close()
	g := rs.all[0]
	if len(held) != 6 || g.inUse() != 6 {
		t.Fatalf("%d pictures held, %d slots in use, want 6", len(held), g.inUse())
	}
	size := len(in.Raw) / 6
	for i := range held {
		if !bytes.Equal(rs.pixels(&held[i]), in.Raw[i*size:][:size]) {
			t.Errorf("picture %d changed", i)
		}
		if w := g.word(held[i].Slot).Load(); w != uint64(held[i].Gen)<<32|1 {
			t.Errorf("picture %d: control word %x", i, w)
		}
	}
	if err := d.Decode(unit(in, 0), nil); !errors.Is(err, avcodec.ErrClosed) {
		t.Errorf("decode after close: %v", err)
	}
}

func TestNoDelayWithoutBPictures(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			args := []string{"-bf", "0"}
			if codec == "hevc" {
				args = []string{"-x265-params", "log-level=none:aud=1:bframes=0"}
			}
			in := testkit.Encode(t, codec, "yuv420p", "64x64", 8, args...)
			rs := newRings(t, 20)
			d := open(t, avcodec.Options{Decoder: codec, Allocate: rs.allocate})
			for i := range in.Units {
				got := int64(-1)
				if err := d.Decode(unit(in, i), func(p *avcodec.Picture) { got = p.PTS }); err != nil {
					t.Fatal(err)
				}
				if got != int64(i) {
					t.Errorf("unit %d gave picture %d", i, got)
				}
			}
		})
	}
}

func TestParameterSetsOutOfBand(t *testing.T) {
	for codec, types := range map[string]func(n []byte) bool{
		"h264": func(n []byte) bool { return n[0]&31 == 7 || n[0]&31 == 8 },
		"hevc": func(n []byte) bool { k := n[0] >> 1 & 63; return k >= 32 && k <= 34 },
	} {
		t.Run(codec, func(t *testing.T) {
			in := testkit.Encode(t, codec, "yuv420p", "64x64", 4)
			var sets [][]byte
			for i := range in.Units {
				in.Units[i] = slices.DeleteFunc(slices.Clone(in.Units[i]), func(n []byte) bool {
					if types(n) {
						sets = append(sets, n)
					}
					return types(n)
				})
			}
			for name, extra := range map[string][][]byte{
				"whole":       sets,
				"rubbish too": append([][]byte{{0x67}, {0xff, 0xff, 0xff}, nil}, sets...),
			} {
				rs := newRings(t, 20)
				d := open(t, avcodec.Options{Decoder: codec, Extradata: extra, Allocate: rs.allocate})
				d.Strict(true)
				for round := range 2 {
					n := 0
					for i := range in.Units {
						if err := d.Decode(unit(in, i), func(*avcodec.Picture) { n++ }); err != nil {
							t.Errorf("%s, round %d: %v", name, round, err)
						}
					}
					if err := d.Drain(func(*avcodec.Picture) { n++ }); err != nil || n != 4 {
						t.Errorf("%s, round %d: %d pictures of 4, %v", name, round, n, err)
					}
				}
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct{ name, decoder, codec, want string }{
		{"unknown", "h264_nowhere", "h264", "open decoder h264_nowhere: this libavcodec has no such decoder"},
		{"other codec", "hevc", "h264", "open decoder hevc: it does not decode h264"},
		{"encoder's name", "libx264", "", "open decoder libx264: this libavcodec has no such decoder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := library(t).NewDecoder(avcodec.Options{Decoder: c.decoder, Codec: c.codec, Allocate: newRings(t, 1).allocate})
			var oe *avcodec.OpenError
			if !errors.As(err, &oe) || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestLinesAreTheDecoders(t *testing.T) {
	in := testkit.Encode(t, "h264", "yuv420p", "64x64", 2)
	good := open(t, avcodec.Options{Decoder: "h264", Allocate: newRings(t, 20).allocate})
	bad := open(t, avcodec.Options{Decoder: "h264", Allocate: newRings(t, 20).allocate})
	orphan := avcodec.Unit{Parts: in.Units[1], StartCodes: true}
	for range 3 {
		if err := bad.Decode(orphan, func(*avcodec.Picture) {}); err == nil {
			t.Error("slices without parameter sets gave no error")
		}
		if err := good.Decode(unit(in, 0), func(*avcodec.Picture) {}); err != nil {
			t.Error(err)
		}
	}
	good.Lines(func(l avcodec.Line) { t.Errorf("line of the good decoder: %+v", l) })
	n := 0
	bad.Lines(func(l avcodec.Line) {
		n++
		if l.Level > avcodec.LevelWarning || l.Text == "" {
			t.Errorf("line %+v", l)
		}
	})
	if n == 0 {
		t.Error("no line of the bad decoder")
	}
	bad.Lines(func(l avcodec.Line) { t.Errorf("line came twice: %+v", l) })
}
