//go:build cgo

package decode_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
)

func TestMain(m *testing.M) { testkit.CheckFrames(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func codecOf(c testkit.Clip) capture.Codec {
	switch c.Codec {
	case "hevc":
		return capture.H265
	case "mjpeg":
		return capture.MJPEG
	}
	return capture.H264
}

// unit is access unit i of the clip, ten a second, in decoding order.
func unit(c testkit.Clip, i int) *capture.AccessUnit {
	at := time.Duration(i) * 100 * time.Millisecond
	return &capture.AccessUnit{
		NALUs: c.Units[i], PTS: at, RTPTime: uint32(9000 * i), Received: start.Add(at), CapturedAt: start.Add(at - time.Second),
		RandomAccess: randomAccess(c, i),
	}
}

func randomAccess(c testkit.Clip, i int) bool {
	return slices.ContainsFunc(c.Units[i], func(n []byte) bool {
		switch c.Codec {
		case "h264":
			return n[0]&31 == 5
		case "hevc":
			return n[0]>>1&63 >= 16 && n[0]>>1&63 <= 21
		}
		return true
	})
}

// sink is a reader that keeps nothing but what it saw.
type sink struct {
	t       testing.TB
	metas   []framepool.Meta
	raw     []byte
	frames  []*framepool.Frame // if keep
	keep    bool
	discard bool // no pixels
}

func (s *sink) emit(f *framepool.Frame) {
	s.metas = append(s.metas, *f.Meta())
	if !s.discard {
		s.raw = append(s.raw, pixels(f)...)
	}
	if s.keep {
		s.frames = append(s.frames, f)
		return
	}
	f.Release()
}

func (s *sink) release() {
	for _, f := range s.frames {
		f.Release()
	}
	s.frames = nil
}

// pixels are the visible samples of f as ffmpeg writes rawvideo.
func pixels(f *framepool.Frame) []byte {
	var out []byte
	m := f.Meta()
	for i := range m.Format.Planes() {
		cols, rows := m.Format.PlaneSize(i, m.Width, m.Height)
		b := f.Plane(i)
		for y := range rows {
			o := y * f.Stride(i)
			out = append(out, b[o:o+cols*m.Format.SampleBytes()]...)
		}
	}
	return out
}

func library(t testing.TB) *avcodec.Library {
	t.Helper()
	lib, err := avcodec.Open()
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func newDecoder(t testing.TB, o decode.Options) *decode.Decoder {
	t.Helper()
	if o.Camera == "" {
		o.Camera = "gate"
	}
	o.Library, o.Node = library(t), -1
	d, err := decode.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func forClip(t testing.TB, c testkit.Clip, o decode.Options) *decode.Decoder {
	t.Helper()
	o.Info.Codec = codecOf(c)
	return newDecoder(t, o)
}

func play(t testing.TB, d *decode.Decoder, c testkit.Clip, s *sink) {
	t.Helper()
	for i := range c.Units {
		if err := d.Decode(unit(c, i), s.emit); err != nil {
			t.Fatalf("unit %d: %v", i, err)
		}
	}
}

func wantDropped(t *testing.T, d *decode.Decoder, want string) {
	t.Helper()
	if got := fmt.Sprint(d.Stats().Dropped); got != want {
		t.Errorf("dropped %s, want %s", got, want)
	}
	if n := d.Stats().CopiedBytes; n != 0 {
		t.Errorf("%d bytes of pixels lie outside of the pool", n)
	}
}

func wantUnsupported(t *testing.T, err error, want string) {
	t.Helper()
	var ue *capture.UnsupportedError
	if !errors.As(err, &ue) || ue.Error() != want {
		t.Errorf("error %v, want *capture.UnsupportedError %s", err, want)
	}
}
