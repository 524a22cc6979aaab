//go:build linux

package sysav_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
)

// Every version of libavcodec gives, through the same code, the pictures that
// ffmpeg gives.
func TestPixelsAreFFmpegs(t *testing.T) {
	clips := []struct {
		name, codec, format, size string
		args                      []string
		want                      string
	}{
		{name: "h264", codec: "h264", format: "yuv420p", size: "640x360", want: "yuv420p 640x360 full=false matrix=2"},
		{name: "h264 full range", codec: "h264", format: "yuvj420p", size: "640x360", want: "yuvj420p 640x360 full=true matrix=2"},
		{name: "h264 bt709", codec: "h264", format: "yuv420p", size: "64x64", args: []string{"-colorspace", "bt709"}, want: "yuv420p 64x64 full=false matrix=1"},
		{
			name: "h264 B pictures", codec: "h264", format: "yuv420p", size: "640x360",
			args: []string{"-preset", "medium", "-bf", "3", "-b_strategy", "0"}, want: "yuv420p 640x360 full=false matrix=2",
		},
		{name: "h264 422 10 bit", codec: "h264", format: "yuv422p10le", size: "640x360", want: "yuv422p10le 640x360 full=false matrix=2"},
		{name: "h264 1030x770", codec: "h264", format: "yuv420p", size: "1030x770", want: "yuv420p 1030x770 full=false matrix=2"},
		{name: "h264 641x361 444", codec: "h264", format: "yuv444p", size: "641x361", want: "yuv444p 641x361 full=false matrix=2"},
		{
			name: "h264 crop left and top", codec: "h264", format: "yuv420p", size: "640x360",
			args: []string{"-bsf:v", "h264_metadata=aud=insert:crop_left=6:crop_top=2:crop_right=0:crop_bottom=0"}, want: "yuv420p 634x366 full=false matrix=2",
		},
		{name: "hevc", codec: "hevc", format: "yuv420p", size: "640x360", want: "yuv420p 640x360 full=false matrix=2"},
		{name: "hevc 10 bit", codec: "hevc", format: "yuv420p10le", size: "640x360", want: "yuv420p10le 640x360 full=false matrix=2"},
		{name: "hevc gray", codec: "hevc", format: "gray", size: "640x360", want: "gray 640x360 full=true matrix=2"},
		{name: "mjpeg", codec: "mjpeg", format: "yuvj422p", size: "641x361", want: "yuvj422p 641x361 full=true matrix=5"},
	}
	for _, c := range clips {
		const frames = 8
		in := testkit.Encode(t, c.codec, c.format, c.size, frames, c.args...)
		for _, path := range everyVersion(t) {
			t.Run(c.name+" "+filepath.Base(path), func(t *testing.T) {
				rs := newRings(t, 2)
				d := decoder(t, open(t, path), sysav.Options{Decoder: c.codec, Codec: c.codec, Allocate: rs.allocate})
				d.Strict(true)
				var got []byte
				var pts []int64
				take := func(p *avcodec.Picture) {
					if s := describe(p); len(pts) == 0 && s != c.want {
						t.Errorf("picture is %s, want %s", s, c.want)
					}
					if p.Key != (p.PTS == 1000) && c.codec != "mjpeg" || p.Corrupt || p.Damaged || p.Device() {
						t.Errorf("picture of unit %d: key %v, corrupt %v, damaged %v", p.PTS, p.Key, p.Corrupt, p.Damaged)
					}
					raw := rs.pixels(p)
					if p.Copied != int64(len(raw)) {
						t.Errorf("%d bytes are said to be copied, %d were", p.Copied, len(raw))
					}
					got, pts = append(got, raw...), append(pts, p.PTS)
				}
				for i := range in.Units {
					if err := d.Decode(unit(in, i), take); err != nil {
						t.Fatalf("unit %d: %v", i, err)
					}
				}
				if err := d.Drain(take); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, in.Raw) {
					t.Errorf("pixels differ from ffmpeg's (%d and %d bytes)", len(got), len(in.Raw))
				}
				if want := order(1000, frames); !slices.Equal(slices.Sorted(slices.Values(pts)), want) {
					t.Errorf("pictures are of units %v, want %v", pts, want)
				}
				d.Close()
				rs.wantFree()
			})
		}
	}
}

func order(from int64, n int) (out []int64) {
	for i := range n {
		out = append(out, from+int64(i))
	}
	return out
}

func describe(p *avcodec.Picture) string {
	return fmt.Sprintf("%s %dx%d full=%v matrix=%d", p.Format, p.Width, p.Height, p.FullRange, p.Matrix)
}

func TestAllocateRefuses(t *testing.T) {
	in := testkit.Encode(t, "h264", "yuv420p", "64x64", 2)
	rs := newRings(t, 2)
	rs.refuse = errTooBig
	d := decoder(t, open(t, installed(t)), sysav.Options{Decoder: "h264", Allocate: rs.allocate})
	err := d.Decode(unit(in, 0), func(*avcodec.Picture) { t.Error("a picture came") })
	if !errors.Is(err, errTooBig) || err.Error() != "allocate pictures: 9 of 8 bytes" {
		t.Errorf("error %v", err)
	}
	rs.refuse = nil
	n := 0
	if err := d.Decode(unit(in, 0), func(*avcodec.Picture) { n++ }); err != nil || n != 1 {
		t.Errorf("%d pictures, %v", n, err)
	}
}
