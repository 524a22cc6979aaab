//go:build cgo

package decode_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
)

func TestFrames(t *testing.T) {
	const frames = 5
	noB := []string{"-bf", "0"}
	for _, c := range []struct {
		name, codec, format, size string
		args                      []string
		want                      framepool.Meta
	}{
		{name: "h264 420", codec: "h264", format: "yuv420p", size: "640x360", want: framepool.Meta{Format: framepool.I420, Width: 640, Height: 360}},
		{name: "h264 420 full", codec: "h264", format: "yuvj420p", size: "640x360", want: framepool.Meta{Format: framepool.I420, Width: 640, Height: 360, Range: framepool.RangeFull}},
		{name: "h264 422", codec: "h264", format: "yuv422p", size: "640x360", want: framepool.Meta{Format: framepool.I422, Width: 640, Height: 360}},
		{name: "h264 444", codec: "h264", format: "yuv444p", size: "642x361", want: framepool.Meta{Format: framepool.I444, Width: 642, Height: 361}},
		{name: "h264 10 bit", codec: "h264", format: "yuv420p10le", size: "640x360", want: framepool.Meta{Format: framepool.I420P10, Width: 640, Height: 360}},
		{name: "h264 422 10 bit", codec: "h264", format: "yuv422p10le", size: "64x64", want: framepool.Meta{Format: framepool.I422P10, Width: 64, Height: 64}},
		{name: "h264 444 10 bit", codec: "h264", format: "yuv444p10le", size: "64x64", want: framepool.Meta{Format: framepool.I444P10, Width: 64, Height: 64}},
		{name: "h264 1918x1078", codec: "h264", format: "yuv420p", size: "1918x1078", want: framepool.Meta{Format: framepool.I420, Width: 1918, Height: 1078, Matrix: framepool.MatrixBT709}},
		{name: "h264 720 lines tagged BT.601", codec: "h264", format: "yuv420p", size: "1280x720", args: []string{"-colorspace", "smpte170m"}, want: framepool.Meta{Format: framepool.I420, Width: 1280, Height: 720}},
		{name: "h264 16x16 tagged BT.2020", codec: "h264", format: "yuv420p", size: "16x16", args: []string{"-colorspace", "bt2020nc"}, want: framepool.Meta{Format: framepool.I420, Width: 16, Height: 16, Matrix: framepool.MatrixBT2020}},
		{
			name: "h264 cropped", codec: "h264", format: "yuv420p", size: "640x360",
			args: []string{"-bsf:v", "h264_metadata=aud=insert:crop_left=6:crop_top=2:crop_right=0:crop_bottom=0"},
			want: framepool.Meta{Format: framepool.I420, Width: 634, Height: 366},
		},
		{name: "hevc 10 bit", codec: "hevc", format: "yuv420p10le", size: "640x360", want: framepool.Meta{Format: framepool.I420P10, Width: 640, Height: 360}},
		{name: "hevc gray", codec: "hevc", format: "gray", size: "64x64", want: framepool.Meta{Format: framepool.Gray8, Width: 64, Height: 64, Range: framepool.RangeFull}},
		{name: "hevc gray 10 bit", codec: "hevc", format: "gray10le", size: "64x64", want: framepool.Meta{Format: framepool.Gray10, Width: 64, Height: 64, Range: framepool.RangeFull}},
		{name: "mjpeg 420", codec: "mjpeg", format: "yuvj420p", size: "641x361", want: framepool.Meta{Format: framepool.I420, Width: 641, Height: 361, Range: framepool.RangeFull}},
		{name: "mjpeg 422", codec: "mjpeg", format: "yuvj422p", size: "640x360", want: framepool.Meta{Format: framepool.I422, Width: 640, Height: 360, Range: framepool.RangeFull}},
		{name: "mjpeg 444", codec: "mjpeg", format: "yuvj444p", size: "640x360", want: framepool.Meta{Format: framepool.I444, Width: 640, Height: 360, Range: framepool.RangeFull}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			switch c.codec {
			case "h264":
				args = slices.Concat(noB, args)
			case "hevc":
				args = []string{"-x265-params", "log-level=none:aud=1:bframes=0"}
			}
			clip := testkit.Encode(t, c.codec, c.format, c.size, frames, args...)
			d := forClip(t, clip, decode.Options{})
			s := &sink{t: t}
			play(t, d, clip, s)
			if len(s.metas) != frames || !bytes.Equal(s.raw, clip.Raw) {
				t.Fatalf("%d frames, pixels are ffmpeg's: %v", len(s.metas), bytes.Equal(s.raw, clip.Raw))
			}
			for i, m := range s.metas {
				checkMeta(t, i, m)
				m = framepool.Meta{Format: m.Format, Width: m.Width, Height: m.Height, Range: m.Range, Matrix: m.Matrix}
				if m != c.want {
					t.Errorf("frame %d is %+v, want %+v", i, m, c.want)
				}
			}
			wantDropped(t, d, "map[]")
			info := capture.DecoderInfo{Name: c.codec, Memory: "heap", Width: c.want.Width, Height: c.want.Height, PixelFormat: c.format}
			if d.Info() != info {
				t.Errorf("info %+v, want %+v", d.Info(), info)
			}
		})
	}
}

// checkMeta checks what came with access unit i of a stream without reordering.
func checkMeta(t *testing.T, i int, m framepool.Meta) {
	t.Helper()
	at := start.Add(time.Duration(i) * 100 * time.Millisecond)
	if m.Camera != "gate" || m.Seq != uint64(i+1) || !m.Received.Equal(at) || !m.CapturedAt.Equal(at.Add(-time.Second)) ||
		m.RTPTime != uint32(9000*i) || m.Decoded.IsZero() || m.KeyFrame != (i == 0) && i == 0 {
		t.Errorf("frame %d: %+v", i, m)
	}
}

func TestBPicturesComeInOrder(t *testing.T) {
	for codec, args := range map[string][]string{
		"h264": {"-c:v", "libx264", "-preset", "medium", "-bf", "3", "-b_strategy", "0", "-bsf:v", "h264_metadata=aud=insert"},
		"hevc": {"-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:aud=1:bframes=4:b-adapt=0"},
	} {
		t.Run(codec, func(t *testing.T) {
			const frames = 40
			path := testkit.FFmpegFile(t, "in.mp4", slices.Concat(
				[]string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=10", "-frames:v", fmt.Sprint(frames), "-pix_fmt", "yuv420p"}, args)...)
			clip := testkit.LoadClip(t, codec, path, "yuv420p")
			rank := ranks(t, path)
			if len(rank) != len(clip.Units) || slices.IsSorted(rank) {
				t.Fatalf("units %d, display order %v", len(clip.Units), rank)
			}
			seq := new(atomic.Uint64)
			seq.Store(100)
			d := forClip(t, clip, decode.Options{Seq: seq})
			s := &sink{t: t}
			for i := range clip.Units {
				au := unit(clip, i)
				au.RTPTime = uint32(9000 * rank[i])
				if err := d.Decode(au, s.emit); err != nil {
					t.Fatal(err)
				}
			}
			if len(s.metas) < frames-6 || !bytes.HasPrefix(clip.Raw, s.raw) {
				t.Errorf("%d frames, pixels are ffmpeg's: %v", len(s.metas), bytes.HasPrefix(clip.Raw, s.raw))
			}
			for i, m := range s.metas {
				if m.Seq != uint64(101+i) || m.RTPTime != uint32(9000*i) {
					t.Errorf("frame %d: number %d, RTP time %d", i, m.Seq, m.RTPTime)
				}
			}
			wantDropped(t, d, "map[]")
		})
	}
}

// ranks gives the place in display order of each unit of a file.
func ranks(t *testing.T, path string) []int {
	t.Helper()
	var pts []int
	for _, field := range testkit.FFprobe(t, path, "packet=pts") {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pts = append(pts, n)
	}
	sorted := slices.Sorted(slices.Values(pts))
	out := make([]int, len(pts))
	for i, p := range pts {
		out[i], _ = slices.BinarySearch(sorted, p)
	}
	return out
}

func TestSizeChangesGiveMemoryBack(t *testing.T) {
	small := testkit.Encode(t, "h264", "yuv420p", "64x64", 2, "-bf", "0")
	large := testkit.Encode(t, "h264", "yuv420p", "320x180", 2, "-bf", "0")
	budget := framepool.NewBudget(1 << 30)
	d := forClip(t, small, decode.Options{Budget: budget})
	s := &sink{t: t}
	var level [2]int64
	for round := range 100 {
		for i, c := range []testkit.Clip{small, large} {
			s.raw = nil
			play(t, d, c, s)
			if !bytes.Equal(s.raw, c.Raw) {
				t.Fatalf("round %d: pixels differ from ffmpeg's", round)
			}
			if round == 0 {
				level[i] = budget.Used()
			}
			if budget.Used() != level[i] {
				t.Fatalf("round %d: %d bytes reserved, were %d", round, budget.Used(), level[i])
			}
		}
	}
	if level[0] >= level[1] {
		t.Errorf("small pools take %d bytes, large ones %d", level[0], level[1])
	}
	if n := len(d.Stats().Pools); n != 1 {
		t.Errorf("%d pools", n)
	}
	d.Close()
	d.Close()
	if budget.Used() != 0 {
		t.Errorf("%d bytes reserved after Close", budget.Used())
	}
	wantDropped(t, d, "map[]")
}

func TestFramesOutliveDecoderAndGeometry(t *testing.T) {
	small := testkit.Encode(t, "h264", "yuv420p", "64x64", 3, "-bf", "0")
	large := testkit.Encode(t, "h264", "yuv420p", "320x180", 3, "-bf", "0")
	budget := framepool.NewBudget(1 << 30)
	d := forClip(t, small, decode.Options{Budget: budget})
	s := &sink{t: t, keep: true}
	play(t, d, small, s)
	play(t, d, large, s)
	if n := len(d.Stats().Pools); n != 2 {
		t.Errorf("%d pools while frames of both are held, want 2", n)
	}
	d.Close()
	var got []byte
	for _, f := range s.frames {
		got = append(got, pixels(f)...)
	}
	if !bytes.Equal(got, slices.Concat(small.Raw, large.Raw)) {
		t.Error("held frames changed")
	}
	if budget.Used() == 0 {
		t.Error("the memory of held frames is given back")
	}
	s.release()
	if budget.Used() != 0 || len(d.Stats().Pools) != 0 {
		t.Errorf("%d bytes and %d pools left after the last release", budget.Used(), len(d.Stats().Pools))
	}
	if err := d.Decode(unit(small, 0), s.emit); err == nil || err.Error() != "decode access unit: closed" {
		t.Errorf("decode after close: %v", err)
	}
}

func TestSlowReaderNeverStarvesTheDecoder(t *testing.T) {
	clip := testkit.Encode(t, "h264", "yuv420p", "320x180", 60, "-preset", "slow", "-refs", "16", "-bf", "8", "-b_strategy", "0", "-g", "30")
	d := forClip(t, clip, decode.Options{ReaderSlots: 2})
	s := &sink{t: t, keep: true}
	play(t, d, clip, s)
	if len(s.frames) != 2 {
		t.Errorf("%d frames came, want 2", len(s.frames))
	}
	if got := d.Stats().Dropped[decode.DropReaders]; got < 40 {
		t.Errorf("%d frames dropped for the reader", got)
	}
	s.release()
	s.keep, s.raw, s.metas = false, nil, nil
	play(t, d, clip, s)
	// All but the pictures held back at the end; those before come first.
	if len(s.metas) < 58 {
		t.Errorf("%d frames after the reader woke up", len(s.metas))
	}
	st := d.Stats()
	if st.Dropped[decode.DropExhausted] != 0 || st.Dropped[decode.DropDamaged] != 0 {
		t.Errorf("dropped %v", st.Dropped)
	}
	t.Logf("%d slots, %d used", st.Pools[0].Slots, st.Pools[0].HighWater)
}

func TestBudget(t *testing.T) {
	clip := testkit.Encode(t, "mjpeg", "yuvj420p", "640x360", 2)
	probe := framepool.NewBudget(1 << 30)
	s := &sink{t: t, discard: true}
	d := forClip(t, clip, decode.Options{Budget: probe})
	play(t, d, clip, s)
	full := d.Stats().Pools[0]
	d.Close()
	t.Run("fewer slots", func(t *testing.T) {
		d := forClip(t, clip, decode.Options{Budget: framepool.NewBudget(full.Bytes - 1)})
		play(t, d, clip, s)
		if got := d.Stats().Pools[0].Slots; got != full.Slots-4 {
			t.Errorf("%d slots, want %d", got, full.Slots-4)
		}
	})
	t.Run("none", func(t *testing.T) {
		b := framepool.NewBudget(1 << 20)
		d := forClip(t, clip, decode.Options{Budget: b})
		err := d.Decode(unit(clip, 0), s.emit)
		wantUnsupported(t, err, "unsupported size 640x384 yuvj420p: 5 pictures of 360.4 KiB are needed at least: "+
			"reserve 1.8 MiB: 0 B of 1.0 MiB are in use: give frames more memory or run fewer or smaller cameras")
		if b.Used() != 0 {
			t.Errorf("%d bytes reserved", b.Used())
		}
	})
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ codec, format, enc string }{
		{"hevc", "yuv420p12le", "libx265"},
		{"h264", "gbrp", "libx264rgb"},
	} {
		t.Run(c.codec+" "+c.format, func(t *testing.T) {
			args := []string{}
			if c.enc == "libx264rgb" {
				args = []string{"-c:v", c.enc, "-pix_fmt", "rgb24"}
			}
			clip := testkit.Encode(t, c.codec, c.format, "64x64", 2, args...)
			d := forClip(t, clip, decode.Options{})
			err := d.Decode(unit(clip, 0), func(f *framepool.Frame) { t.Error("a frame came"); f.Release() })
			wantUnsupported(t, err, "unsupported pixel format "+c.format+": set the camera to 4:2:0, 8 or 10 bits")
		})
	}
	t.Run("codec", func(t *testing.T) {
		_, err := decode.New(decode.Options{Info: capture.StreamInfo{Codec: "vp8"}})
		wantUnsupported(t, err, `unsupported codec "vp8": set the camera to H.264, H.265 or MJPEG`)
	})
	for name, want := range map[string]string{
		"h264_nowhere": "unsupported decoder h264_nowhere: this libavcodec has no such decoder; set decoder to auto",
		"hevc":         "unsupported decoder hevc: it does not decode h264; set decoder to auto",
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecoder(t, decode.Options{Info: capture.StreamInfo{Codec: capture.H264}})
			_, err := decode.New(decode.Options{Decoder: name, Info: capture.StreamInfo{Codec: capture.H264}, Library: library(t)})
			wantUnsupported(t, err, want)
			if got := fmt.Sprint(d.Info()); got != "{h264 heap 0 0  }" {
				t.Errorf("info before the first picture: %s", got)
			}
		})
	}
}
