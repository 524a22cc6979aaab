//go:build cgo

package decode_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
)

// received are the times of the pictures that a sink saw, in units of the clip.
func (s *sink) received() (units []int) {
	for _, m := range s.metas {
		units = append(units, int(m.Received.Sub(start)/(100*time.Millisecond)))
	}
	return units
}

// keysOf are the random access points of a clip.
func keysOf(c testkit.Clip) (keys []int) {
	for i := range c.Units {
		if randomAccess(c, i) {
			keys = append(keys, i)
		}
	}
	return keys
}

// With SkipNonKey exactly the key pictures come out, each at once and the same as
// without; all pictures come again from the next key picture on.
func TestSkipNonKey(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			args := []string{"-g", "8", "-bf", "0"}
			if codec == "hevc" {
				args = []string{"-x265-params", "log-level=none:aud=1:keyint=8:min-keyint=8:bframes=0:scenecut=0:open-gop=0"}
			}
			c := testkit.Encode(t, codec, "yuv420p", "160x96", 72, args...)
			all := &sink{t: t}
			play(t, forClip(t, c, decode.Options{}), c, all)
			size := len(all.raw) / len(all.metas)

			d, s := forClip(t, c, decode.Options{}), &sink{t: t}
			for i := range c.Units {
				switch i {
				case 10:
					d.SetSkip(decode.SkipNonKey)
				case 45: // a viewer
					d.SetSkip(decode.SkipNothing)
				}
				seen := len(s.metas)
				if err := d.Decode(unit(c, i), s.emit); err != nil {
					t.Fatalf("unit %d: %v", i, err)
				}
				if sparse, want := d.Sparse(), i >= 10 && i < 48; sparse != want {
					t.Errorf("unit %d: sparse %v", i, sparse)
				}
				if i >= 10 && i < 48 && randomAccess(c, i) != (len(s.metas) > seen) {
					t.Errorf("unit %d: %d pictures", i, len(s.metas)-seen)
				}
			}
			var want []int
			for i := range c.Units {
				if i < 10 || i >= 48 || randomAccess(c, i) {
					want = append(want, i)
				}
			}
			if got := s.received(); !slices.Equal(got, want) {
				t.Errorf("pictures of units %v, want %v", got, want)
			}
			for k, i := range s.received() {
				if !slices.Equal(s.raw[k*size:(k+1)*size], all.raw[i*size:(i+1)*size]) {
					t.Errorf("the picture of unit %d is another one", i)
				}
			}
			wantDropped(t, d, "map[]")
			if r := d.Rates(); r.All < 9.9 || r.All > 10.1 || r.Reference != r.All || r.Key < 1.2 || r.Key > 1.26 {
				t.Errorf("rates %+v", r)
			}
		})
	}
}

// A stream that shows its key pictures late, as it reorders, is decoded whole: half
// a minute between picture and detection helps nobody.
func TestSkipNonKeyOfAReorderedStream(t *testing.T) {
	c := testkit.Encode(t, "h264", "yuv420p", "160x96", 64, "-g", "8", "-bf", "3")
	d, s := forClip(t, c, decode.Options{}), &sink{t: t, discard: true}
	d.SetSkip(decode.SkipNonKey)
	play(t, d, c, s)
	// It takes one group of pictures to find out.
	if n := len(s.metas); n < 64-2*8-4 {
		t.Errorf("%d pictures of 64", n)
	}
	if d.Sparse() {
		t.Error("it still waits for key pictures")
	}
}

// With SkipNonReference the pictures that are left are the same as without.
func TestSkipNonReference(t *testing.T) {
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			args := []string{"-g", "16", "-bf", "1", "-x264-params", "b-pyramid=none"}
			if codec == "hevc" {
				args = []string{"-x265-params", "log-level=none:aud=1:keyint=16:bframes=1:b-adapt=0:b-pyramid=0"}
			}
			c := testkit.Encode(t, codec, "yuv420p", "160x96", 48, args...)
			all := &sink{t: t}
			play(t, forClip(t, c, decode.Options{}), c, all)
			size := len(all.raw) / len(all.metas)
			whole := map[time.Time][]byte{}
			for k, m := range all.metas {
				whole[m.Received] = all.raw[k*size : (k+1)*size]
			}
			d, s := forClip(t, c, decode.Options{}), &sink{t: t}
			d.SetSkip(decode.SkipNonReference)
			play(t, d, c, s)
			if n := len(s.metas); n < 20 || n > 30 {
				t.Errorf("%d pictures of 48, every other is a reference", n)
			}
			for k, m := range s.metas {
				if before, ok := whole[m.Received]; ok && !slices.Equal(s.raw[k*size:(k+1)*size], before) {
					t.Errorf("picture %d differs", k)
				}
			}
			wantDropped(t, d, "map[]")
			if d.Sparse() {
				t.Error("it waits for key pictures")
			}
		})
	}
}

// What was lost before a unit that is left out is lost for those after it.
func TestSkipKeepsLossesInMind(t *testing.T) {
	c := testkit.Encode(t, "h264", "yuv420p", "160x96", 32, "-g", "16", "-bf", "1", "-x264-params", "b-pyramid=none")
	d, s := forClip(t, c, decode.Options{}), &sink{t: t, discard: true}
	d.SetSkip(decode.SkipNonReference)
	lost := false
	for i := range c.Units {
		u := unit(c, i)
		if !lost && i > 4 && !reference(c, i) {
			u.LossBefore, lost = true, true
		}
		_ = d.Decode(u, s.emit) //nolint:errcheck // damage is what this is about
	}
	keys := keysOf(c)
	for _, i := range s.received() {
		if i > 6 && i < keys[1] {
			t.Errorf("the picture of unit %d came out behind a loss", i)
		}
	}
	if !lost || fmt.Sprint(d.Stats().Dropped) == "map[]" {
		t.Errorf("dropped %v", d.Stats().Dropped)
	}
}

func reference(c testkit.Clip, i int) bool {
	return slices.ContainsFunc(c.Units[i], func(n []byte) bool {
		return (n[0]&31 == 1 || n[0]&31 == 5) && n[0]>>5&3 != 0
	})
}

// MJPEG pictures all stand for themselves.
func TestSkipMJPEG(t *testing.T) {
	c := testkit.Encode(t, "mjpeg", "yuvj420p", "160x96", 70)
	d, n := forClip(t, c, decode.Options{}), 0
	d.SetSkip(decode.SkipNonKey)
	for i := range c.Units {
		if err := d.Decode(unit(c, i), func(f *framepool.Frame) { n++; f.Release() }); err != nil {
			t.Fatal(err)
		}
	}
	if r := d.Rates(); n != 70 || d.Sparse() || r.Key < 9 || r.Key > 11 {
		t.Errorf("%d pictures, rates %+v", n, r)
	}
}

var _ capture.Sparing = (*decode.Decoder)(nil)
