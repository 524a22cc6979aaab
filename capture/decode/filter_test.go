package decode

import (
	"fmt"
	"testing"

	"edgecam/capture"
)

func TestFilterParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		codec capture.Codec
		units [][]string
		want  string
	}{
		{"supplemental information stays out", capture.H264, [][]string{{"\x09\xf0", "\x06\x05x", "\x65a"}}, `[["ea"]]`},
		{"recovery points go through", capture.H264, [][]string{{"\x06\x06\x01", "\x41a"}}, `[["\x06\x06\x01" "Aa"]]`},
		{
			"sets wait for the picture", capture.H264,
			[][]string{{"\x67a"}, {"\x06\x01x"}, {"\x68b"}, {"\x65c"}, {"\x41d"}},
			`[[] [] [] ["ga" "hb" "ec"] ["Ad"]]`,
		},
		{"empty and short units", capture.H264, [][]string{{"", "\x65"}, {}}, `[[] []]`},
		{"filler and reserved types", capture.H264, [][]string{{"\x0c\xff", "\x1fx", "\x14x", "\x41a"}}, `[["Aa"]]`},
		{
			"h265", capture.H265,
			[][]string{{"\x40\x01v", "\x42\x01s", "\x44\x01p", "\x4e\x01x", "\x26\x01i"}, {"\x50\x01x", "\x02\x01t"}},
			`[["@\x01v" "B\x01s" "D\x01p" "&\x01i"] ["\x02\x01t"]]`,
		},
		{"h265 layers above the base", capture.H265, [][]string{{"\x26\x01i", "\x26\x09i", "\x27\x01i"}}, `[["&\x01i"]]`},
		{"mjpeg", capture.MJPEG, [][]string{{"\xff\xd8"}}, `[["\xff\xd8"]]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFilter(c.codec)
			got := [][][]byte{}
			for _, u := range c.units {
				var in [][]byte
				for _, n := range u {
					in = append(in, []byte(n))
				}
				got = append(got, append([][]byte{}, f.parts(in)...))
			}
			if s := fmt.Sprintf("%q", got); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

func TestFilterHoldsFewSets(t *testing.T) {
	f := newFilter(capture.H264)
	for i := range 1000 {
		if f.parts([][]byte{{0x67, byte(i)}}) != nil {
			t.Fatal("a unit without a picture went through")
		}
	}
	if n := len(f.parts([][]byte{{0x65, 1}})); n != maxHeld+1 {
		t.Errorf("%d parts, want %d", n, maxHeld+1)
	}
}

func TestSetID(t *testing.T) {
	for _, c := range []struct {
		name string
		kind kind
		nalu string
		want string
	}{
		{"sps 0", kindSPS, "\x67\x64\x00\x1f\x80", "0 true"},
		{"sps 1", kindSPS, "\x67\x64\x00\x1f\x40", "1 true"},
		{"sps 32", kindSPS, "\x67\x64\x00\x1f\x04\x20", "32 false"},
		{"sps cut", kindSPS, "\x67\x64\x00\x1f", "0 false"},
		{"pps 0", kindPPS, "\x68\xce", "0 true"},
		{"pps 2", kindPPS, "\x68\x60", "2 true"},
		{"pps 255", kindPPS, "\x68\x00\x80\x00", "255 true"},
		{"pps cut in the number", kindPPS, "\x68\x01", "0 false"},
		{"pps of zeros", kindPPS, "\x68\x00\x00\x00\x00\x00", "0 false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, ok := setID(c.kind, []byte(c.nalu))
			if got := fmt.Sprint(id, ok); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSetsInForce(t *testing.T) {
	f := newFilter(capture.H264)
	f.parts([][]byte{[]byte("\x68\x60A"), []byte("\x67\x64\x00\x1f\x80A"), []byte("\x68\xceA"), []byte("\x65\x01")})
	f.parts([][]byte{[]byte("\x68\x60B"), []byte("\x65\x01")})
	if got, want := fmt.Sprintf("%q", f.sets()), `["gd\x00\x1f\x80A" "h`+"`"+`B" "h\xceA"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(false, []byte("\x67\x64\x00\x1f\x80"), []byte("\x65\x01"))
	f.Add(true, []byte("\x42\x01\x01"), []byte("\x26\x01\x01"))
	f.Fuzz(func(t *testing.T, h265 bool, a, b []byte) {
		codec := capture.H264
		if h265 {
			codec = capture.H265
		}
		fl := newFilter(codec)
		for range 3 {
			fl.parts([][]byte{a, b})
			fl.parameterSets([][]byte{b, a})
		}
		if n := fl.need.slots(); n < working || n > 2*maxRefs+working {
			t.Errorf("%d slots", n)
		}
		if len(fl.sets()) > 2 {
			t.Errorf("%d sets of 2 units", len(fl.sets()))
		}
	})
}
