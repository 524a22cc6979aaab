//go:build cgo && linux

package decode_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/internal/testkit"
	"edgecam/platform/sysav"
	"edgecam/platform/sysavtest"
)

const (
	// late is what the stand-in holds back.
	late = 2
	// hangs is how long tests wait for a call that hangs. Those that do not need less
	// on a busy machine, too.
	hangs = 2 * time.Second
)

func system(t *testing.T) (*sysavtest.Library, *sysav.System) {
	t.Helper()
	nv := sysavtest.Build(t)
	nv.Set("delay", late)
	return nv, sysav.At("libavcodec.so.1", nv.Path)
}

// systemName is how the dashboard calls a decoder of the machine's FFmpeg.
func systemName(t *testing.T, found *sysav.System, decoder string) string {
	t.Helper()
	l, err := found.Find(decoder)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s (system FFmpeg %d)", decoder, l.Major())
}

// gop10 is a clip with a key picture in every ten and no reordering.
func gop10(t *testing.T, codec string, frames int) testkit.Clip {
	t.Helper()
	if codec == "hevc" {
		return testkit.Encode(t, codec, "yuv420p", "320x192", frames, "-x265-params", "log-level=none:aud=1:keyint=10:bframes=0:scenecut=0:open-gop=0")
	}
	return testkit.Encode(t, codec, "yuv420p", "320x192", frames, "-g", "10", "-sc_threshold", "0")
}

const gopBytes = 320 * 192 * 3 / 2

// wantRun fails the test where the sink did not get the pictures of these units.
func wantRun(t *testing.T, s *sink, c testkit.Clip, want ...int) {
	t.Helper()
	var raw []byte
	for i, n := range want {
		raw = append(raw, c.Raw[n*gopBytes:(n+1)*gopBytes]...)
		if i < len(s.metas) && s.metas[i].RTPTime != uint32(9000*n) {
			t.Errorf("frame %d is of RTP time %d, want that of unit %d", i, s.metas[i].RTPTime, n)
		}
	}
	if len(s.metas) != len(want) || !bytes.Equal(s.raw, raw) {
		t.Errorf("%d frames of %d bytes, want those of units %v", len(s.metas), len(s.raw), want)
	}
}

// Frames of the system's decoder are the very pictures, copied once, and say when
// their own access unit came.
func TestSystemDecoder(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		for _, o := range []decode.Options{{Decoder: codec + "_nvv4l2dec"}, {Installed: true}} {
			t.Run(codec+" "+o.Decoder, func(t *testing.T) {
				const frames = 30
				clip := gop10(t, codec, frames)
				_, o.System = system(t)
				d := forClip(t, clip, o)
				s := &sink{t: t}
				play(t, d, clip, s)
				wantRun(t, s, clip, span(0, frames-late)...)
				i := d.Info()
				if i.Name != systemName(t, o.System, codec+"_nvv4l2dec") || i.Note != "" || i.PixelFormat != "yuv420p" {
					t.Errorf("info %+v", i)
				}
				st := d.Stats()
				if st.CopiedBytes != uint64(len(s.raw)) {
					t.Errorf("%d bytes copied, want %d", st.CopiedBytes, len(s.raw))
				}
				// One slot for the decoder, the rest for readers.
				if n := st.Pools[0].Slots; n != 7 {
					t.Errorf("%d slots", n)
				}
				for i, m := range s.metas {
					if m.KeyFrame != (i%10 == 0) {
						t.Errorf("frame %d: key %v", i, m.KeyFrame)
					}
				}
			})
		}
	}
}

func TestSystemEngines(t *testing.T) {
	nv, found := system(t)
	nothing := sysav.At("libavcodec.so.1")
	name := systemName(t, found, "h264_nvv4l2dec")
	for _, c := range []struct {
		name string
		o    decode.Options
		want string
	}{
		{"auto on a jetson", decode.Options{System: found, Installed: true}, name + ", h264_v4l2m2m, h264"},
		{"auto elsewhere", decode.Options{System: found}, "h264"},
		{"software", decode.Options{System: found, Installed: true, Decoder: "software"}, "h264"},
		{"a name that both have", decode.Options{System: found, Decoder: "h264"}, "h264"},
		{"a name", decode.Options{System: found, Decoder: "h264_nvv4l2dec"}, name},
		{
			"a name that nobody has",
			decode.Options{System: found, Decoder: "h264_none"},
			"unsupported decoder h264_none: neither edgecam's FFmpeg nor the system's (libavcodec VERSION at PATH) has it; set decoder to auto or software",
		},
		{"auto without the system's", decode.Options{System: nothing, Installed: true}, "h264_v4l2m2m, h264"},
		{
			"a name without the system's",
			decode.Options{System: nothing, Decoder: "h264_nvv4l2dec"},
			"unsupported decoder h264_nvv4l2dec: the system's FFmpeg: open libavcodec.so.1: is not installed; " +
				"install FFmpeg (on a Jetson NVIDIA's build of it), or name its libavcodec in EDGECAM_LIBAVCODEC; set decoder to auto or software",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Info.Codec, c.o.Library = capture.H264, library(t)
			want := strings.ReplaceAll(c.want, "PATH", nv.Path)
			if l, err := found.Find("h264"); err == nil {
				want = strings.ReplaceAll(want, "VERSION", l.Version())
			}
			if got := decode.Engines(c.o); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Why software decodes on a board whose hardware could is told.
func TestSystemIsMissing(t *testing.T) {
	clip := gop10(t, "h264", 10)
	d := forClip(t, clip, decode.Options{System: sysav.At("libavcodec.so.1"), Installed: true})
	s := &sink{t: t}
	play(t, d, clip, s)
	wantRun(t, s, clip, span(0, 10)...)
	const want = "not decoded by h264_nvv4l2dec: the system's FFmpeg: open libavcodec.so.1: is not installed; install FFmpeg (on a Jetson NVIDIA's build of it)"
	if i := d.Info(); i.Name != "h264" || !strings.HasPrefix(i.Note, want) {
		t.Errorf("info %+v", i)
	}
}

// A decoder of the system's that does not serve gives way to software, with the
// unit that it failed at.
func TestSystemDecoderIsLeft(t *testing.T) {
	const frames = 40
	for _, c := range []struct {
		name, set   string
		value, from int // the unit before which it is set
		want        []int
		note        string
	}{
		{
			"silent from the start", "silent", 1, -1, span(0, frames),
			"not decoded by NAME: it opens and gives no picture",
		},
		{
			"hangs at the start", "hang", sysavtest.HangSend, -1, span(0, frames),
			"not decoded by NAME: a call did not come back within 2s",
		},
		{
			// What it holds is lost with it, and what is built on that.
			"hangs later", "hang", sysavtest.HangReceive, 14, append(span(0, 12), span(20, frames)...),
			"not decoded by NAME: a call did not come back within 2s",
		},
		{
			"breaks", "fail", -5, 14, append(span(0, 14), span(20, frames)...), // what was ready still came
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			clip := gop10(t, "h264", frames)
			nv, found := system(t)
			note := strings.ReplaceAll(c.note, "NAME", systemName(t, found, "h264_nvv4l2dec"))
			defer func() { // before the stand-in counts what is alive
				nv.Set(c.set, 0)
				waitFor(t, func() bool { return nv.Get("hanging") == 0 && nv.Get("alive") == 0 })
			}()
			if c.from < 0 {
				nv.Set(c.set, c.value)
			}
			d := forClip(t, clip, decode.Options{System: found, Installed: true}.WithTimeout(hangs))
			defer d.Close()
			s := &sink{t: t}
			for i := range clip.Units {
				if i == c.from {
					nv.Set(c.set, c.value)
				}
				if c.set == "fail" && i == 20 {
					nv.Set(c.set, 0)
				}
				_ = d.Decode(unit(clip, i), s.emit)
			}
			if c.set != "fail" {
				wantRun(t, s, clip, c.want...)
			}
			if got := d.Info().Note; got != note {
				t.Errorf("note %q, want %q", got, note)
			}
		})
	}
}

func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for !is() {
		select {
		case <-deadline:
			t.Fatal("it never happens")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// With a decoder that was asked for by name there is nothing to give way to: the
// session ends, and says why.
func TestSystemDecoderAlone(t *testing.T) {
	clip := gop10(t, "h264", 10)
	nv, found := system(t)
	d := forClip(t, clip, decode.Options{System: found, Decoder: "h264_nvv4l2dec"}.WithTimeout(hangs))
	s := &sink{t: t}
	if err := d.Decode(unit(clip, 0), s.emit); err != nil {
		t.Fatal(err)
	}
	nv.Set("hang", sysavtest.HangSend)
	err := d.Decode(unit(clip, 1), s.emit)
	wantUnsupported(t, err, "unsupported decoder h264_nvv4l2dec: a call did not come back within 2s; set decoder to auto or software")
	d.Close()
	nv.Set("hang", 0)
	waitFor(t, func() bool { return nv.Get("alive") == 0 })
}

// After a loss nothing passes before the next key picture, though the decoder calls
// every picture one; and it is not set up anew for that.
func TestSystemDecoderAfterALoss(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			const frames = 40
			clip := gop10(t, codec, frames)
			nv, found := system(t)
			d := forClip(t, clip, decode.Options{System: found, Decoder: codec + "_nvv4l2dec"})
			s := &sink{t: t}
			opened := 0
			for i := range clip.Units {
				if i == 1 {
					opened = nv.Get("opened") // the first unit has told the size
				}
				u := unit(clip, i)
				if i == 14 {
					continue
				}
				u.LossBefore = i == 15
				if err := d.Decode(u, s.emit); err != nil {
					t.Fatalf("unit %d: %v", i, err)
				}
			}
			wantRun(t, s, clip, append(span(0, 14), span(20, frames-late)...)...)
			if n := nv.Get("opened"); n != opened {
				t.Errorf("opened %d times more", n-opened)
			}
			wantDroppedOnly(t, d, "map[no_key_frame:5]")
		})
	}
}

func wantDroppedOnly(t *testing.T, d *decode.Decoder, want string) {
	t.Helper()
	if got := fmt.Sprint(d.Stats().Dropped); got != want {
		t.Errorf("dropped %s, want %s", got, want)
	}
}

// A stream that begins in the middle of a group waits too.
func TestSystemDecoderBeginsAtAKeyPicture(t *testing.T) {
	clip := gop10(t, "h264", 30)
	_, found := system(t)
	d := forClip(t, clip, decode.Options{
		System: found, Decoder: "h264_nvv4l2dec",
		Info: capture.StreamInfo{ParameterSets: clip.Units[0][:3]},
	})
	s := &sink{t: t}
	for i := 4; i < 30; i++ {
		if err := d.Decode(unit(clip, i), s.emit); err != nil {
			t.Fatal(err)
		}
	}
	wantRun(t, s, clip, span(10, 30-late)...)
}

// A camera that is set to another size goes on in a pool of that size.
func TestSystemDecoderChangesSize(t *testing.T) {
	_, found := system(t)
	small, large := gop10(t, "h264", 10), testkit.Encode(t, "h264", "yuv420p", "640x384", 10)
	d := forClip(t, small, decode.Options{System: found, Decoder: "h264_nvv4l2dec"})
	s := &sink{t: t, discard: true}
	for _, clip := range []testkit.Clip{small, large, small} {
		play(t, d, clip, s)
	}
	var got []string
	for _, m := range s.metas {
		if size := fmt.Sprintf("%dx%d", m.Width, m.Height); len(got) == 0 || got[len(got)-1] != size {
			got = append(got, size)
		}
	}
	if want := "[320x192 640x384 320x192]"; fmt.Sprint(got) != want || len(s.metas) != 3*(10-late) {
		t.Errorf("%d frames of %v", len(s.metas), got)
	}
}
