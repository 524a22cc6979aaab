//go:build linux

package sysav_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
	"edgecam/platform/sysavtest"
)

// shape is what the parameter sets of a test's clip say.
func shape(width, height int, full bool) func([][]byte) sysav.Shape {
	return func([][]byte) sysav.Shape {
		return sysav.Shape{Width: width, Height: height, Full: full, Matrix: avcodec.MatrixBT709}
	}
}

// shown are the pictures that a decoder gave.
type shown struct {
	rs  *rings
	raw []byte
	pts []int64
	all []string
}

func (s *shown) take(p *avcodec.Picture) {
	s.raw = append(s.raw, s.rs.pixels(p)...)
	s.pts = append(s.pts, p.PTS)
	s.all = append(s.all, describe(p))
}

func (s *shown) play(d *sysav.Decoder, c testkit.Clip) {
	s.rs.t.Helper()
	for i := range c.Units {
		if err := d.Decode(unit(c, i), s.take); err != nil {
			s.rs.t.Fatalf("unit %d: %v", i, err)
		}
	}
}

// wantUnits fails the test where other pictures came than those of the clip's
// units from first on, in the clip's order of display.
func (s *shown) wantUnits(c testkit.Clip, size, n int) {
	s.rs.t.Helper()
	if len(s.pts) != n {
		s.rs.t.Fatalf("%d pictures, want %d", len(s.pts), n)
	}
	if !bytes.Equal(s.raw, c.Raw[:n*size]) {
		s.rs.t.Errorf("the first %d pictures are not ffmpeg's", n)
	}
}

// A picture comes some units after its own, and still says which one that was.
func TestPicturesComeLate(t *testing.T) {
	const frames, size = 30, 320 * 192 * 3 / 2
	for _, c := range []struct {
		codec string
		delay int
		args  []string
	}{
		{"h264", 0, nil},
		{"h264", 2, nil},
		{"h264", 12, []string{"-preset", "medium", "-bf", "2"}},
		{"hevc", 3, nil},
	} {
		t.Run(fmt.Sprintf("%s %d", c.codec, c.delay), func(t *testing.T) {
			in := testkit.Encode(t, c.codec, "yuv420p", "320x192", frames, c.args...)
			nv := sysavtest.Build(t)
			nv.Set("delay", c.delay)
			s := &shown{rs: newRings(t, 1)}
			d := decoder(t, open(t, nv.Path), sysav.Options{
				Decoder: c.codec + "_nvv4l2dec", Codec: c.codec, Allocate: s.rs.allocate, Shape: shape(320, 192, false),
			})
			s.play(d, in)
			n := len(s.pts)
			if n < frames-c.delay-4 {
				t.Errorf("%d pictures of %d units", n, frames)
			}
			s.wantUnits(in, size, n)
			// The one in software gives them at once, and in the same order.
			plain := &shown{rs: newRings(t, 1)}
			plain.play(decoder(t, open(t, nv.Path), sysav.Options{Decoder: c.codec, Allocate: plain.rs.allocate}), in)
			if !slices.Equal(s.pts[:n-1], plain.pts[:n-1]) {
				t.Errorf("pictures are of units %v, want %v", s.pts, plain.pts)
			}
			if slices.Contains(s.all, "yuv420p 320x192 full=true matrix=1") || s.all[0] != "yuv420p 320x192 full=false matrix=1" {
				t.Errorf("pictures are %v", s.all)
			}
			d.Close()
			s.rs.wantFree()
		})
	}
}

// Parameter sets that only the description has go into the stream.
func TestParameterSetsOfTheDescription(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			const frames, size = 12, 320 * 192 * 3 / 2
			in := testkit.Encode(t, codec, "yuv420p", "320x192", frames)
			var described [][]byte
			isSet := func(n []byte) bool {
				if codec == "h264" {
					return n[0]&31 == 7 || n[0]&31 == 8
				}
				return n[0]>>1&63 >= 32 && n[0]>>1&63 <= 34
			}
			for i, u := range in.Units {
				for _, n := range u {
					if isSet(n) {
						described = append(described, n)
					}
				}
				in.Units[i] = slices.DeleteFunc(slices.Clone(u), isSet)
			}
			nv := sysavtest.Build(t)
			s := &shown{rs: newRings(t, 1)}
			d := decoder(t, open(t, nv.Path), sysav.Options{
				Decoder: codec + "_nvv4l2dec", Extradata: described, Allocate: s.rs.allocate, Shape: shape(320, 192, false),
			})
			s.play(d, in)
			n := len(s.pts)
			if n < frames-6 {
				t.Errorf("%d pictures of %d units", n, frames)
			}
			s.wantUnits(in, size, n)
			// So does a decoder that is opened again.
			if err := d.Reopen(nil); err != nil {
				t.Fatal(err)
			}
			again := &shown{rs: s.rs}
			again.play(d, in)
			again.wantUnits(in, size, n)
		})
	}
}

// NVIDIA's decoder writes behind its memory when pictures grow. It never gets to
// see that they do.
func TestAnotherSizeOpensTheDecoderAnew(t *testing.T) {
	small := testkit.Encode(t, "h264", "yuv420p", "320x192", 10)
	large := testkit.Encode(t, "h264", "yuv420p", "640x384", 10)
	nv := sysavtest.Build(t)
	s := &shown{rs: newRings(t, 1)}
	sizes := func(sets [][]byte) sysav.Shape {
		for _, n := range sets {
			if bytes.Equal(n, parameterSet(large)) {
				return sysav.Shape{Width: 640, Height: 384}
			}
		}
		return sysav.Shape{Width: 320, Height: 192}
	}
	d := decoder(t, open(t, nv.Path), sysav.Options{Decoder: "h264_nvv4l2dec", Allocate: s.rs.allocate, Shape: sizes})
	before := nv.Get("opened")
	for _, in := range []testkit.Clip{small, large, small} {
		s.play(d, in)
	}
	if n := nv.Get("opened") - before; n != 2 {
		t.Errorf("opened %d times more, want 2", n)
	}
	var got []string
	for _, text := range s.all {
		size := strings.Fields(text)[1]
		got = append(got, size)
	}
	want := slices.Concat(slices.Repeat([]string{"320x192"}, 8), slices.Repeat([]string{"640x384"}, 8), slices.Repeat([]string{"320x192"}, 8))
	if !slices.Equal(got, want) {
		t.Errorf("pictures of %v", got)
	}
	d.Close()
	s.rs.wantFree()
}

func parameterSet(c testkit.Clip) []byte {
	for _, n := range c.Units[0] {
		if n[0]&31 == 7 {
			return n
		}
	}
	return nil
}

// A decoder whose pictures went through a converter of ranges is found out by the
// test picture, and its pictures are called what they are.
func TestFullRangeThatIsSqueezed(t *testing.T) {
	in := testkit.EncodeAs(t, "h264", "yuvj420p", "yuvj420p", "320x192", 6)
	for _, squeeze := range []int{0, 1} {
		nv := sysavtest.Build(t)
		nv.Set("squeeze", squeeze)
		s := &shown{rs: newRings(t, 1)}
		d := decoder(t, open(t, nv.Path), sysav.Options{Decoder: "h264_nvv4l2dec", Allocate: s.rs.allocate, Shape: shape(320, 192, true)})
		s.play(d, in)
		if want := fmt.Sprintf("yuv420p 320x192 full=%v matrix=1", squeeze == 0); s.all[0] != want {
			t.Errorf("picture is %s, want %s", s.all[0], want)
		}
	}
}

// Whatever call hangs, the caller goes on, and nothing is left when it comes back.
func TestACallThatHangs(t *testing.T) {
	const timeout = 2 * time.Second // the calls that do not hang need less on a busy machine, too
	in := testkit.Encode(t, "h264", "yuv420p", "320x192", 6)
	for _, c := range []struct {
		name  string
		where int
		want  string // of opening or decoding; the rest of the text is the same
	}{
		{"open", sysavtest.HangOpen, "decode on the gpu: a call did not come back within 2s"},
		{"send", sysavtest.HangSend, "decode on the gpu: a call did not come back within 2s"},
		{"receive", sysavtest.HangReceive, "decode on the gpu: a call did not come back within 2s"},
		{"close", sysavtest.HangClose, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			nv := sysavtest.Build(t)
			l := open(t, nv.Path)
			s := &shown{rs: newRings(t, 1)}
			o := sysav.Options{Decoder: "h264_nvv4l2dec", Allocate: s.rs.allocate, Shape: shape(320, 192, false)}
			first := decoder(t, l, o) // has seen the test picture
			s.play(first, in)
			o.Timeout = timeout
			nv.Set("hang", c.where)
			d, err := l.NewDecoder(o)
			if err == nil {
				err = d.Decode(unit(in, 0), s.take)
			}
			if got := fmt.Sprint(err); c.want != "" && got != c.want || c.want == "" && err != nil {
				t.Errorf("error %q, want %q", got, c.want)
			}
			var he *avcodec.HardwareError
			if c.want != "" && !errors.As(err, &he) {
				t.Errorf("error %T, want *avcodec.HardwareError", err)
			}
			if d != nil {
				// Nothing waits a second time.
				if err := d.Decode(unit(in, 1), s.take); c.want != "" && err == nil {
					t.Error("a decoder that hangs decodes")
				}
				_ = d.Drain(s.take)
				d.Close()
				d.Close()
			}
			if l.Stuck() == 0 {
				t.Error("no call is said to hang")
			}
			nv.Set("hang", 0)
			first.Close()
			eventually(t, "the calls come back and all is given back", func() bool {
				return l.Stuck() == 0 && nv.Get("alive") == 0 && nv.Get("hanging") == 0
			})
			s.rs.wantFree()
		})
	}
}

// eventually waits for what another thread does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for !is() {
		select {
		case <-deadline:
			t.Fatal("never: " + what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Where calls hang again and again the library is asked for nothing more.
func TestTooManyHang(t *testing.T) {
	nv := sysavtest.Build(t)
	l := open(t, nv.Path)
	rs := newRings(t, 1)
	o := sysav.Options{Decoder: "h264_nvv4l2dec", Allocate: rs.allocate, Shape: shape(320, 192, false)}
	decoder(t, l, o).Close()
	nv.Set("hang", sysavtest.HangOpen)
	hanging := o
	hanging.Timeout = time.Millisecond // every call hangs, however long one waits
	for range 4 {
		if _, err := l.NewDecoder(hanging); err == nil {
			t.Fatal("a decoder opened")
		}
	}
	eventually(t, "the calls hang in the library", func() bool { return nv.Get("hanging") == 4 })
	_, err := l.NewDecoder(hanging)
	if want := "decode on the gpu: 4 calls of " + l.Path() + " hang; restart the program, or the machine"; fmt.Sprint(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if n := nv.Get("hanging"); n != 4 {
		t.Errorf("%d calls hang, want 4", n)
	}
	nv.Set("hang", 0)
	eventually(t, "the calls come back", func() bool { return l.Stuck() == 0 && nv.Get("alive") == 0 })
	decoder(t, l, o).Close()
}

func TestDecodersThatDoNotServe(t *testing.T) {
	for _, c := range []struct {
		name, set string
		value     int
		want      string
	}{
		{"gives no picture", "silent", 1, "decode on the gpu: it opens and gives no picture"},
		{"cannot open its device", "refuse", 1, "open decoder h264_nvv4l2dec: libavcodec refused: Unknown error occurred"},
		{"takes no units", "fail", -5, "open decoder h264_nvv4l2dec: libavcodec refused: Input/output error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nv := sysavtest.Build(t)
			nv.Set(c.set, c.value)
			l := open(t, nv.Path)
			_, err := l.NewDecoder(sysav.Options{Decoder: "h264_nvv4l2dec", Allocate: newRings(t, 1).allocate, Shape: shape(320, 192, false)})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			// Its own words are there where it is not the library of the program.
			if !l.Ours() && c.set == "refuse" && !strings.HasSuffix(err.Error(), ": Could not open device") {
				t.Errorf("error %v does not say why", err)
			}
		})
	}
}

// Pictures that nobody can tell apart are worth nothing.
func TestPicturesWithoutTheirTime(t *testing.T) {
	in := testkit.Encode(t, "h264", "yuv420p", "320x192", 30)
	nv := sysavtest.Build(t)
	s := &shown{rs: newRings(t, 1)}
	d := decoder(t, open(t, nv.Path), sysav.Options{Decoder: "h264_nvv4l2dec", Allocate: s.rs.allocate, Shape: shape(320, 192, false)})
	nv.Set("odd_times", 1)
	var err error
	for i := 0; i < len(in.Units) && err == nil; i++ {
		err = d.Decode(unit(in, i), s.take)
	}
	if got, want := fmt.Sprint(err), "decode on the gpu: its pictures carry times that no access unit had"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if len(s.pts) != 0 {
		t.Errorf("pictures of units %v came", s.pts)
	}
}
