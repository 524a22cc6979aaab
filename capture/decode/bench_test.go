//go:build cgo

package decode_test

import (
	"slices"
	"sync"
	"testing"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
)

const builtinClip = "../../internal/sim/pets-s2l1-20s.mp4"

// builtin is the clip that the simulated cameras play.
func builtin(t testing.TB) testkit.Clip {
	t.Helper()
	b := testkit.FFmpegFile(t, "clip.h264", "-i", builtinClip, "-c", "copy", "-bsf:v", "h264_mp4toannexb,h264_metadata=aud=insert", "-f", "h264")
	return testkit.LoadClip(t, "h264", b, "")
}

// loop plays the clip again and again into one decoder.
type loop struct {
	units []*capture.AccessUnit
	dec   *decode.Decoder
	next  int
	got   int
	emit  func(*framepool.Frame)
}

func newLoop(t testing.TB) *loop {
	c := builtin(t)
	l := &loop{dec: forClip(t, c, decode.Options{})}
	for i := range c.Units {
		l.units = append(l.units, unit(c, i))
	}
	l.emit = func(f *framepool.Frame) { l.got++; f.Release() }
	return l
}

func (l *loop) step(t testing.TB) {
	if err := l.dec.Decode(l.units[l.next], l.emit); err != nil {
		t.Fatal(err)
	}
	l.next = (l.next + 1) % len(l.units)
}

func BenchmarkBuiltinClip(b *testing.B) {
	l := newLoop(b)
	b.ReportAllocs()
	for b.Loop() {
		l.step(b)
	}
	b.ReportMetric(float64(l.got)/b.Elapsed().Seconds(), "frames/s")
}

// TestManyDecoders runs decoders side by side whose frames are released by
// other goroutines.
func TestManyDecoders(t *testing.T) {
	const cameras, rounds = 4, 4
	clip := testkit.Encode(t, "h264", "yuv420p", "160x96", 30, "-preset", "medium", "-bf", "2", "-g", "10")
	budget := framepool.NewBudget(1 << 30)
	var wg sync.WaitGroup
	for range cameras {
		d := forClip(t, clip, decode.Options{Budget: budget})
		frames := make(chan *framepool.Frame, 2)
		wg.Go(func() {
			defer close(frames)
			for range rounds {
				for i := range clip.Units {
					au := unit(clip, i)
					au.NALUs = slices.Clone(au.NALUs)
					if err := d.Decode(au, func(f *framepool.Frame) { frames <- f }); err != nil {
						t.Error(err)
					}
				}
			}
			d.Close()
		})
		wg.Go(func() {
			var last uint64
			for f := range frames {
				if f.Meta().Seq <= last {
					t.Errorf("frame %d after %d", f.Meta().Seq, last)
				}
				last = f.Meta().Seq
				second := f.Retain()
				f.Release()
				_ = pixels(second)
				second.Release()
				_ = d.Stats()
			}
			if last < rounds*30-4 {
				t.Errorf("%d frames", last)
			}
		})
	}
	wg.Wait()
	if budget.Used() != 0 {
		t.Errorf("%d bytes are still reserved", budget.Used())
	}
}
