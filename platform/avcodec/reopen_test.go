//go:build cgo

package avcodec_test

import (
	"bytes"
	"slices"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
)

// TestReopen: a broken slice leaves nothing behind, parameter sets stay, and so
// does the ring.
func TestReopen(t *testing.T) {
	const frames = 20
	in := testkit.Encode(t, "h264", "yuv420p", "320x180", frames, "-bf", "0", "-g", "10")
	isSet := func(n []byte) bool { return n[0]&31 == 7 || n[0]&31 == 8 }
	sets := slices.DeleteFunc(slices.Clone(in.Units[0]), func(n []byte) bool { return !isSet(n) })
	rs := newRings(t, 20)
	d := open(t, avcodec.Options{Decoder: "h264", Extradata: sets, Allocate: rs.allocate})
	size := len(in.Raw) / frames
	broken := 0
	for round := range 8 {
		u := unit(in, 1+round)
		u.Parts = [][]byte{u.Parts[0][:len(u.Parts[0])*(round+1)/9]}
		d.Strict(true)
		if d.Decode(u, func(*avcodec.Picture) {}) != nil {
			broken++
		}
		if err := d.Drain(func(*avcodec.Picture) {}); err != nil {
			t.Error(err)
		}
		if err := d.Reopen(sets); err != nil {
			t.Fatal(err)
		}
		key := unit(in, 10)
		key.Parts = slices.DeleteFunc(slices.Clone(key.Parts), isSet)
		n := 0
		if err := d.Decode(key, func(p *avcodec.Picture) {
			n++
			if !bytes.Equal(rs.pixels(p), in.Raw[10*size:][:size]) {
				t.Errorf("round %d: the key picture is not ffmpeg's", round)
			}
		}); err != nil || n != 1 {
			t.Errorf("round %d: %d pictures, %v", round, n, err)
		}
	}
	if broken == 0 {
		t.Error("no cut slice was an error")
	}
	if len(rs.all) != 1 {
		t.Errorf("%d rings, want 1", len(rs.all))
	}
	d.Close()
	if n := rs.all[0].inUse(); n != 0 {
		t.Errorf("%d slots are in use after Close", n)
	}
}
