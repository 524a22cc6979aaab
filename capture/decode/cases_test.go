//go:build cgo

package decode_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/preprocess"
)

// received takes n frames from a camera and gives their pixels and RTP times,
// counted from the first one of the film.
func gathered(t *testing.T, w *watched, n int) (raw [][]byte, at []int) {
	t.Helper()
	for range n {
		f := w.next(t)
		raw, at = append(raw, pixels(f)), append(at, int(f.Meta().RTPTime))
		f.Release()
	}
	return raw, at
}

// Pictures that are sent in another order than they are shown in.
func TestBPicturesFromACamera(t *testing.T) {
	const frames = 30
	path := testkit.FFmpegFile(t, "in.mp4", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=10", "-frames:v", fmt.Sprint(frames),
		"-pix_fmt", "yuv420p", "-c:v", "libx264", "-bf", "3", "-b_strategy", "0", "-bsf:v", "h264_metadata=aud=insert")
	clip := testkit.LoadClip(t, "h264", path, "yuv420p")
	w := watch(t, startCamera(t, filmOf(t, clip, ranks(t, path))), decode.Options{})
	size := len(clip.Raw) / frames
	got, at := gathered(t, w, frames-6)
	for i := range got {
		if i > 0 && at[i] <= at[i-1] {
			t.Errorf("picture %d is of %d, the one before of %d", i, at[i], at[i-1])
		}
		if !bytes.Equal(got[i], clip.Raw[i*size:][:size]) {
			t.Errorf("picture %d is another one", i)
		}
	}
}

// TestFieldsComeAsFrames: both fields are in one picture, line by line, whether
// they are one access unit or two with times of their own. Nothing deinterlaces.
func TestFieldsComeAsFrames(t *testing.T) {
	const width, height, pairs = 64, 64, 12
	value := func(pair, plane, x, y int) byte { return byte(16 + (7*pair+40*plane+3*x+5*y)%220) }
	clip := fieldClip(width, height, pairs, value)
	joined := testkit.Clip{Codec: "h264"}
	for i := 0; i < len(clip.Units); i += 2 {
		joined.Units = append(joined.Units, slices.Concat(clip.Units[i], clip.Units[i+1]))
	}
	for name, c := range map[string]testkit.Clip{"one unit": joined, "two units": clip} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, startCamera(t, filmOf(t, c, nil)), decode.Options{})
			got, at := gathered(t, w, pairs-2)
			for i, raw := range got {
				for k, v := range raw[:width*height] {
					if want := value(i, 0, k%width, k/width); v != want {
						t.Fatalf("picture %d: sample %d,%d is %d, want %d", i, k%width, k/width, v, want)
					}
				}
				if i > 0 && at[i]-at[i-1] != 9000*len(c.Units)/pairs {
					t.Errorf("picture %d comes %d ticks after the one before", i, at[i]-at[i-1])
				}
			}
			if st := w.Status(); st.Dropped[capture.DropDamaged] != 0 || w.stats().Damaged != 0 {
				t.Errorf("dropped %v, %+v", st.Dropped, w.stats())
			}
		})
	}
	t.Run("within frames", func(t *testing.T) { // MBAFF
		const frames = 20
		c := testkit.Encode(t, "h264", "yuv420p", "320x192", frames, "-bf", "0", "-flags", "+ildct+ilme", "-x264opts", "tff=1")
		w := watch(t, startCamera(t, filmOf(t, c, nil)), decode.Options{})
		got, _ := gathered(t, w, frames-4)
		if !bytes.HasPrefix(c.Raw, slices.Concat(got...)) {
			t.Error("pixels are not ffmpeg's")
		}
	})
}

// TestJoinWithoutAKeyFrame: nothing is shown before the first picture that
// decoding can start at, and the state says what is waited for.
func TestJoinWithoutAKeyFrame(t *testing.T) {
	sets := func(n []byte) bool { return n[0]&31 == 7 || n[0]&31 == 8 }
	for name, from := range map[string]func(c testkit.Clip) (units [][][]byte){
		"first key frame is missing": func(c testkit.Clip) [][][]byte {
			return slices.Concat([][][]byte{sets264(c)}, c.Units[1:])
		},
		"no parameter sets for long": func(c testkit.Clip) (out [][][]byte) {
			for range 3 {
				out = append(out, c.Units[1:10]...)
			}
			return append(out, c.Units[10:]...)
		},
		"key frames without parameter sets": func(c testkit.Clip) (out [][][]byte) {
			for _, u := range c.Units[:10] {
				out = append(out, slices.DeleteFunc(slices.Clone(u), sets))
			}
			return append(out, c.Units[10:]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const frames = 30
			clip := gops(t, "h264", frames)
			units := from(clip)
			f := filmOf(t, testkit.Clip{Codec: "h264", Units: units}, nil)
			f.every = 20 * time.Millisecond
			w := watch(t, startCamera(t, f), decode.Options{})
			for limit := time.Now().Add(patience); w.Status().Reason != "Connected, waiting for a picture that decoding can start at"; {
				if time.Now().After(limit) || w.Status().Frames > 0 {
					t.Fatalf("status is %+v", w.Status())
				}
				runtime.Gosched()
			}
			if len(w.stats().Pools) != 0 {
				t.Error("there is a pool before the size is known")
			}
			got, _ := gathered(t, w, 18)
			if !bytes.Equal(slices.Concat(got...), clip.Raw[10*len(clip.Raw)/frames:][:18*len(clip.Raw)/frames]) {
				t.Error("pixels are not those from the first key frame on")
			}
		})
	}
}

// TestRefreshWithoutKeyFramesFromACamera: a stream that never has a key frame,
// and says where a refresh of the picture begins.
func TestRefreshWithoutKeyFramesFromACamera(t *testing.T) {
	const frames = 60
	clip := testkit.Encode(t, "h264", "yuv420p", "640x360", frames, "-bf", "0", "-x264opts", "keyint=10:intra-refresh=1")
	units := slices.Clone(clip.Units)
	units[0] = sets264(clip)
	w := watch(t, startCamera(t, filmOf(t, testkit.Clip{Codec: "h264", Units: units}, nil)), decode.Options{})
	got, _ := gathered(t, w, 10)
	size := len(clip.Raw) / frames
	first := -1
	for i := range frames {
		if bytes.Equal(clip.Raw[i*size:][:size], got[0]) {
			first = i
		}
	}
	t.Logf("starts with picture %d", first)
	if first < 0 || first > 40 {
		t.Errorf("the first picture is number %d of the whole stream's, want a whole one by 40", first)
	}
}

// TestSizeChangesFromACamera: the picture follows, without a new session.
func TestSizeChangesFromACamera(t *testing.T) {
	small := testkit.Encode(t, "h264", "yuv420p", "320x180", 10, "-bf", "0")
	large := testkit.Encode(t, "h264", "yuvj420p", "640x360", 10, "-bf", "0")
	both := testkit.Clip{Codec: "h264", Units: slices.Concat(small.Units, large.Units, small.Units)}
	w := watch(t, startCamera(t, filmOf(t, both, nil)), decode.Options{})
	for i := range 28 {
		f := w.next(t)
		m := f.Meta()
		want := "320x180 limited"
		if i >= 10 && i < 20 {
			want = "640x360 full"
		}
		rg := map[framepool.Range]string{framepool.RangeLimited: "limited", framepool.RangeFull: "full"}[m.Range]
		if got := fmt.Sprintf("%dx%d %s", m.Width, m.Height, rg); got != want {
			t.Errorf("picture %d is %s, want %s", i, got, want)
		}
		checkLetterbox(t, f)
		if b := snapshot(t, f, 80).Bounds(); b.Dx() != m.Width || b.Dy() != m.Height {
			t.Errorf("picture %d: the snapshot is %v", i, b)
		}
		f.Release()
	}
	if st := w.Status(); st.Attempts != 1 || st.Width != 320 {
		t.Errorf("status is %+v", st)
	}
}

// rss is the memory of the process that is in RAM.
func rss(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("needs /proc")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestAHundredChanges of size, range, depth and codec: every part that keeps
// something for a geometry follows, and gives back what it had.
func TestAHundredChanges(t *testing.T) {
	clips := []testkit.Clip{
		testkit.Encode(t, "h264", "yuv420p", "320x180", 2, "-bf", "0"),
		testkit.Encode(t, "h264", "yuvj420p", "320x180", 2, "-bf", "0"),
		testkit.Encode(t, "h264", "yuv420p", "1280x720", 2, "-bf", "0"),
		testkit.Encode(t, "h264", "yuv422p10le", "640x360", 2, "-bf", "0"),
		testkit.Encode(t, "hevc", "yuv420p10le", "640x360", 2, x265("")...),
		testkit.Encode(t, "mjpeg", "yuvj422p", "641x361", 2),
	}
	budget := framepool.NewBudget(1 << 30)
	var d *decode.Decoder
	codec := ""
	cpu := preprocess.NewCPU(infer.InputSpec{Width: 416, Height: 416, Std: [3]float32{1, 1, 1}})
	dst := make([]float32, 3*416*416)
	seen := map[int]int64{}
	look := func(f *framepool.Frame) {
		if _, err := cpu.Run(f, dst); err != nil {
			t.Error(err)
		}
		m := f.Meta()
		if b := snapshot(t, f, 80).Bounds(); b.Dx() != (m.Width+1)&^1 || b.Dy() != (m.Height+1)&^1 {
			t.Errorf("the snapshot of %dx%d is %v", m.Width, m.Height, b)
		}
		f.Release()
	}
	var before int64
	var routines int
	for round := range 100 {
		for i, c := range clips {
			if c.Codec != codec { // the source announces another stream
				if d != nil {
					d.Close()
				}
				d, codec = forClip(t, c, decode.Options{Budget: budget}), c.Codec
			}
			n := d.Stats().Frames
			for k := range c.Units {
				emit := func(f *framepool.Frame) { f.Release() }
				if k == 1 && round%10 == 0 {
					emit = look
				}
				if err := d.Decode(unit(c, k), emit); err != nil {
					t.Fatalf("round %d, clip %d: %v", round, i, err)
				}
			}
			if got := d.Stats().Frames - n; got != 2 {
				t.Fatalf("round %d, clip %d: %d frames", round, i, got)
			}
			switch {
			case round == 0:
				seen[i] = budget.Used()
			case budget.Used() != seen[i] || len(d.Stats().Pools) != 1:
				t.Fatalf("round %d, clip %d: %d bytes in %d pools, were %d in one", round, i, budget.Used(), len(d.Stats().Pools), seen[i])
			}
		}
		if round == 20 {
			debug.FreeOSMemory()
			before, routines = rss(t), runtime.NumGoroutine()
		}
	}
	debug.FreeOSMemory()
	after := rss(t)
	t.Logf("%d MiB after 20 rounds, %d MiB after 100", before>>20, after>>20)
	if after > before+32<<20 || runtime.NumGoroutine() > routines {
		t.Errorf("%d bytes in RAM, were %d; %d goroutines, were %d", after, before, runtime.NumGoroutine(), routines)
	}
	d.Close()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still reserved", budget.Used())
	}
}

// TestSizesAtTheEnds: very large and very small pictures, four cameras of each,
// within one budget. What it does not hold is refused by name.
func TestSizesAtTheEnds(t *testing.T) {
	for _, c := range []struct {
		codec, size string
		budget      int64
		refused     string
	}{
		{"h264", "5120x1440", 1 << 30, ""},
		{"hevc", "7680x4320", 900 << 20, "unsupported size 7680x4320 yuv420p: "},
		{"h264", "16x16", 32 << 20, ""},
		{"hevc", "16x16", 32 << 20, ""},
	} {
		t.Run(c.codec+" "+c.size, func(t *testing.T) {
			args := []string{"-bf", "0"}
			if c.codec == "hevc" {
				args = x265("ref=1")
			}
			if c.size == "16x16" && c.codec == "hevc" {
				args = x265("ctu=16:min-cu-size=8")
			}
			clip := testkit.Encode(t, c.codec, "yuv420p", c.size, 1, args...)
			budget := framepool.NewBudget(c.budget)
			good, bad := 0, 0
			var list []*decode.Decoder
			for range 4 {
				d := forClip(t, clip, decode.Options{Budget: budget, ReaderSlots: 2})
				list = append(list, d)
				s := &sink{t: t}
				var err error
				for i := range clip.Units {
					err = errors.Join(err, d.Decode(unit(clip, i), s.emit))
				}
				switch {
				case err == nil && bytes.Equal(s.raw, clip.Raw):
					good++
				case err != nil && c.refused != "" && strings.Contains(err.Error(), c.refused) && errors.As(err, new(*decode.MemoryError)):
					bad++
				default:
					t.Errorf("%d frames, error %v", len(s.metas), err)
				}
				if budget.Used() > c.budget {
					t.Errorf("%d bytes of %d in use", budget.Used(), c.budget)
				}
			}
			t.Logf("%d decoded, %d refused, %s in use", good, bad, framepool.FormatBytes(budget.Used()))
			if good == 0 || (bad > 0) != (c.refused != "") {
				t.Errorf("%d decoded and %d refused", good, bad)
			}
			for _, d := range list {
				d.Close()
			}
			if budget.Used() != 0 {
				t.Errorf("%d bytes are still reserved", budget.Used())
			}
		})
	}
}

// TestRefusedFromACamera: what edgecam does not take is named, and asked for again
// only after long. A camera beside it loses nothing.
func TestRefusedFromACamera(t *testing.T) {
	fine := gops(t, "h264", 60)
	for _, c := range []struct {
		name, reason string
		film         func() film
	}{
		{"h264 in RGB", "Unsupported pixel format gbrp: set the camera to 4:2:0, 8 or 10 bits", func() film {
			return filmOf(t, testkit.Encode(t, "h264", "gbrp", "64x64", 20, "-c:v", "libx264rgb", "-pix_fmt", "rgb24"), nil)
		}},
		{"h265 with 12 bits", "Unsupported pixel format yuv420p12le: set the camera to 4:2:0, 8 or 10 bits", func() film {
			return filmOf(t, testkit.Encode(t, "hevc", "yuv420p12le", "64x64", 20), nil)
		}},
		{"JPEG of a type that nobody knows", "Unsupported MJPEG over RTP of type 130: choose another profile in the camera, or H.264", func() film {
			f := film{format: &format.MJPEG{}}
			for i := range 30 {
				p := &rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: 26, Marker: true, Timestamp: uint32(9000 * i)}}
				p.Payload = append([]byte{0, 0, 0, 0, 130, 50, 8, 8}, make([]byte, 100)...)
				f.units = append(f.units, []*rtp.Packet{p})
			}
			return f
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused := startCamera(t, c.film())
			f := filmOf(t, fine, nil)
			f.every = 20 * time.Millisecond
			beside := watch(t, startCamera(t, f), decode.Options{})
			w := watch(t, refused, decode.Options{})
			got, _ := gathered(t, beside, 58)
			st := w.await(t, capture.Unsupported)
			if st.Reason != c.reason {
				t.Errorf("reason is %q", st.Reason)
			}
			if wait := st.RetryAt.Sub(st.Since); wait < 30*time.Second {
				t.Errorf("tries again after %v", wait)
			}
			if n := strings.Count(w.log.String(), "\n"); n > 5 {
				t.Errorf("%d lines of log", n)
			}
			if size := len(fine.Raw) / 60; !bytes.Equal(slices.Concat(got...), fine.Raw[:58*size]) || beside.Status().Attempts != 1 {
				t.Error("the camera beside it was touched")
			}
		})
	}
}

// TestNoiseFromACamera plays streams that noise has torn up: the session lives,
// the log stays short, and once the noise ends the picture is back.
func TestNoiseFromACamera(t *testing.T) {
	for _, codec := range []string{"h264", "hevc", "mjpeg"} {
		t.Run(codec, func(t *testing.T) {
			const frames = 60
			var clip testkit.Clip
			if codec == "mjpeg" {
				clip = testkit.Encode(t, codec, "yuvj420p", "640x360", frames)
			} else {
				clip = gops(t, codec, frames)
			}
			var lines countHandler
			d := forClip(t, clip, decode.Options{Logger: slog.New(&lines)})
			s := &sink{t: t, discard: true}
			for round := range 20 {
				for i := range clip.Units {
					au := unit(clip, i)
					au.Received = start.Add(time.Duration(round*frames+i) * 10 * time.Millisecond)
					tear(au, uint32(round*frames+i))
					if err := d.Decode(au, s.emit); errors.As(err, new(*capture.UnsupportedError)) {
						t.Fatal(err)
					}
				}
			}
			if lines.n > 20 {
				t.Errorf("%d lines of log", lines.n)
			}
			torn := len(s.metas)
			if d.Stats().Damaged == 0 {
				t.Errorf("nothing was damaged: %+v", d.Stats())
			}
			clean := &sink{t: t}
			for i := range clip.Units {
				_ = d.Decode(unit(clip, i), clean.emit)
			}
			t.Logf("%d pictures of the torn stream, then %d of %d, %d lines", torn, len(clean.metas), frames, lines.n)
			if size := len(clip.Raw) / frames; len(clean.metas) < frames-10 || !bytes.HasSuffix(clip.Raw, clean.raw[10*size:]) {
				t.Errorf("%d pictures once the noise has ended", len(clean.metas))
			}
		})
	}
}

// tear changes one byte of 200, as FFmpeg's noise filter does.
func tear(au *capture.AccessUnit, seed uint32) {
	au.NALUs = slices.Clone(au.NALUs)
	for k, n := range au.NALUs {
		n = slices.Clone(n)
		for i := range n {
			if seed = seed*1664525 + 1013904223; i > 0 && seed>>16%200 == 0 {
				n[i] ^= byte(seed>>8) | 1
			}
		}
		au.NALUs[k] = n
	}
}
