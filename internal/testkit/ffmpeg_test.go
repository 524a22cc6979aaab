package testkit_test

import (
	"fmt"
	"testing"

	"edgecam/internal/testkit"
)

func TestNALUs(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "[]"},
		{"no start code", "abc", "[]"},
		{"one", "\x00\x00\x01a", `["a"]`},
		{"both start codes", "\x00\x00\x00\x01ab\x00\x00\x01c", `["ab" "c"]`},
		{"trailing zeros", "\x00\x00\x01a\x00\x00\x00\x00\x01b\x00\x00", `["a" "b"]`},
		{"nothing between", "\x00\x00\x01\x00\x00\x01a\x00\x00\x01", `["a"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprintf("%q", testkit.NALUs([]byte(c.in))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAccessUnits(t *testing.T) {
	h264 := "\x00\x00\x01\x09\xf0\x00\x00\x01\x67a\x00\x00\x01\x65b\x00\x00\x01\x09\xf0\x00\x00\x01\x41c"
	if got, want := fmt.Sprintf("%q", testkit.AccessUnitsH264([]byte(h264))), `[["ga" "eb"] ["Ac"]]`; got != want {
		t.Errorf("h264: got %s, want %s", got, want)
	}
	h265 := "\x00\x00\x01\x46\x01\x50\x00\x00\x01\x26\x01a\x00\x00\x01\x46\x01\x50\x00\x00\x01\x02\x01b"
	if got, want := fmt.Sprintf("%q", testkit.AccessUnitsH265([]byte(h265))), `[["&\x01a"] ["\x02\x01b"]]`; got != want {
		t.Errorf("h265: got %s, want %s", got, want)
	}
}

func TestJPEGs(t *testing.T) {
	if got, want := fmt.Sprintf("%q", testkit.JPEGs([]byte("\xff\xd8\xffa\xff\xd9\xff\xd8\xffb"))),
		`["\xff\xd8\xffa\xff\xd9" "\xff\xd8\xffb"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
