//go:build hw && cgo

package decode_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/cuda"
)

// card is the GPU, with what decodes on it and what reads from it.
type card struct {
	decodes *avcodec.HardwareDevice
	reads   *cuda.Device
	stream  cuda.Stream
	event   cuda.Event
}

func newCard(t *testing.T) *card {
	t.Helper()
	c := &card{}
	var err error
	if c.decodes, err = library(t).OpenCUDA(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.decodes.Close)
	if c.reads, err = cuda.New(cuda.Options{}).NewDevice(t.Context(), cuda.DeviceOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.reads.Close(); err != nil {
			t.Error(err)
		}
	})
	c.do(t, func(x *cuda.Context) (err error) {
		if c.stream, err = x.NewStream(); err == nil {
			c.event, err = x.NewEvent(false)
		}
		return err
	})
	return c
}

func (c *card) do(t *testing.T, f func(*cuda.Context) error) {
	t.Helper()
	if err := c.reads.Do(t.Context(), "test", f); err != nil {
		t.Error(err)
	}
}

// download reads a frame as its readers do: in a stream of their own, behind an
// event of the decoders' stream.
func (c *card) download(t *testing.T, f *framepool.Frame) []byte {
	t.Helper()
	m := f.Meta()
	var planes [][]byte
	c.do(t, func(x *cuda.Context) error {
		err := x.Record(c.event, cuda.Stream(c.decodes.Stream()))
		if err == nil {
			err = x.After(c.stream, c.event)
		}
		if err == nil {
			err = x.Wait(c.stream)
		}
		for i := 0; err == nil && i < m.Format.Planes(); i++ {
			a, _ := f.DevicePlane(i)
			cols, rows := m.Format.PlaneSize(i, m.Width, m.Height)
			b := make([]byte, m.Stride[i]*(rows-1)+cols*m.Format.SampleBytes())
			planes = append(planes, b)
			err = x.CopyOutNow(b, cuda.DevicePtr(a))
		}
		return err
	})
	h := framepool.NewHeapFrame(*m, planes)
	defer h.Release()
	return pixels(h)
}

// semi puts the chroma of planar 4:2:0 pictures as the GPU does, and 10 bits into
// the high ones.
func semi(raw []byte, m framepool.Meta) []byte {
	n := m.Format.SampleBytes()
	y := m.Width * m.Height * n
	cw, ch := m.Format.PlaneSize(1, m.Width, m.Height)
	c := cw * ch * n
	out := slices.Clone(raw[:y])
	for i := 0; i < c; i += n {
		out = append(out, raw[y+i:][:n]...)
		out = append(out, raw[y+c+i:][:n]...)
	}
	if n == 2 {
		for i := 0; i < len(out); i += 2 {
			v := (uint16(out[i]) | uint16(out[i+1])<<8) << 6
			out[i], out[i+1] = byte(v), byte(v>>8)
		}
	}
	return out
}

// software decodes the clip in software and gives its pictures in the GPU's layout.
func software(t *testing.T, clip testkit.Clip) (out [][]byte) {
	t.Helper()
	d := forClip(t, clip, decode.Options{Decoder: "software"})
	emit := func(f *framepool.Frame) { out = append(out, semi(pixels(f), *f.Meta())); f.Release() }
	for i := range clip.Units {
		if err := d.Decode(unit(clip, i), emit); err != nil {
			t.Fatal(err)
		}
	}
	au := &capture.AccessUnit{Received: start.Add(time.Hour), LossBefore: true}
	if err := d.Decode(au, emit); err != nil {
		t.Error(err)
	}
	d.Close()
	return out
}

// TestHardwareEqualsSoftware: both standards define every sample.
func TestHardwareEqualsSoftware(t *testing.T) {
	c := newCard(t)
	cases := append(streamCases(), streamCase{name: "demo", format: framepool.I420, device: framepool.NV12, width: 768, height: 576, pictures: 200})
	for _, sc := range cases {
		t.Run(sc.name, func(t *testing.T) {
			clip := testkit.Clip{}
			if sc.name == "demo" {
				clip = demo(t)
			} else {
				clip = stream(t, sc.name)
			}
			var want [][]byte
			if sc.refused == "" {
				want = software(t, clip)
			}
			d := forClip(t, clip, decode.Options{CUDA: c.decodes})
			n, wrong := 0, 0
			emit := func(f *framepool.Frame) {
				defer f.Release()
				if sc.refused == "" {
					m := f.Meta()
					if f.Memory() != framepool.MemoryDevice || m.Format != sc.device || m.Width != sc.width || m.Height != sc.height || (m.Range == framepool.RangeFull) != sc.full {
						t.Errorf("frame %d in %v: %+v", n, f.Memory(), *m)
						return
					}
					if got := c.download(t, f); n >= len(want) || !bytes.Equal(got, want[n]) {
						wrong++
					}
				}
				n++
			}
			for i := range clip.Units {
				if err := d.Decode(unit(clip, i), emit); err != nil {
					t.Fatalf("unit %d: %v", i, err)
				}
			}
			if err := d.Decode(&capture.AccessUnit{Received: start.Add(time.Hour), LossBefore: true}, emit); err != nil {
				t.Error(err)
			}
			i := d.Info()
			if n > sc.pictures || n < sc.pictures-3 || wrong > 0 { // what is held back for reordering stays there after a loss
				t.Errorf("%d frames of %d, %d of them not software's", n, sc.pictures, wrong)
			}
			if note := "not decoded by h264 (nvdec): " + sc.refused; sc.refused != "" && (i.Note != note || i.Memory == "device") || sc.refused == "" && i.Note != "" {
				t.Errorf("info %+v", i)
			}
			t.Logf("%d frames by %s in %s %s", n, i.Name, i.Memory, i.PixelFormat)
		})
	}
}

// TestHardwareJPEG says what the GPU makes of JPEG, for which the standard allows
// rounding. Auto leaves it to software.
func TestHardwareJPEG(t *testing.T) {
	c := newCard(t)
	clip := stream(t, "jpeg.mjpeg")
	want := software(t, clip)
	d := forClip(t, clip, decode.Options{CUDA: c.decodes, Decoder: "nvdec"})
	n := 0
	for i := range clip.Units {
		err := d.Decode(unit(clip, i), func(f *framepool.Frame) {
			got := c.download(t, f)
			sum, most := 0, 0
			for k := range got {
				diff := max(int(got[k])-int(want[n][k]), int(want[n][k])-int(got[k]))
				sum, most = sum+diff, max(most, diff)
			}
			t.Logf("frame %d: mean difference %.3f, most %d", n, float64(sum)/float64(len(got)), most)
			if float64(sum)/float64(len(got)) > 1 || most > 8 {
				t.Errorf("frame %d is another picture", n)
			}
			n++
			f.Release()
		})
		if errors.As(err, new(*capture.UnsupportedError)) {
			t.Logf("refused: %v", err)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n != len(want) {
		t.Errorf("%d frames of %d", n, len(want))
	}
}

// TestHardwareHolds: frames stay whole while their decoder goes on, and after it
// and the device are closed.
func TestHardwareHolds(t *testing.T) {
	c := newCard(t)
	clip := demo(t)
	want := software(t, clip)
	d := forClip(t, clip, decode.Options{CUDA: c.decodes})
	var held []*framepool.Frame
	for i := range clip.Units {
		if err := d.Decode(unit(clip, i), func(f *framepool.Frame) {
			if len(held) < 5 {
				held = append(held, f)
				return
			}
			f.Release()
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.Stats().Frames; n < 195 {
		t.Errorf("%d frames with 5 held, dropped %v", n, d.Stats().Dropped)
	}
	check := func(when string) {
		for i, f := range held {
			if !bytes.Equal(c.download(t, f), want[i]) {
				t.Errorf("frame %d changed %s", i, when)
			}
		}
	}
	check("while the decoder went on")
	d.Close()
	check("when the decoder was closed")
	began := time.Now()
	var wg sync.WaitGroup
	for _, f := range held {
		wg.Go(f.Release)
	}
	wg.Wait()
	t.Logf("five releases, the last one ending the driver's decoder, took %v", time.Since(began))
}

// TestHardwareMany runs 32 decoders at once, each checked.
func TestHardwareMany(t *testing.T) {
	c := newCard(t)
	clip := demo(t)
	clip.Units = clip.Units[:60]
	var want []uint32
	for _, p := range software(t, clip) {
		want = append(want, crc32.ChecksumIEEE(p))
	}
	var wg sync.WaitGroup
	var wrong, frames atomic.Int64
	for range 32 {
		d := forClip(t, clip, decode.Options{CUDA: c.decodes})
		wg.Go(func() {
			n := 0
			for i := range clip.Units {
				if err := d.Decode(unit(clip, i), func(f *framepool.Frame) {
					if crc32.ChecksumIEEE(c.download(t, f)) != want[n] {
						wrong.Add(1)
					}
					n++
					f.Release()
				}); err != nil {
					t.Error(err)
				}
			}
			frames.Add(int64(n))
			if i := d.Info(); i.Memory != "device" {
				t.Errorf("info %+v", i)
			}
			d.Close()
		})
	}
	wg.Wait()
	if wrong.Load() > 0 || frames.Load() < 32*57 {
		t.Errorf("%d frames, %d of them not software's", frames.Load(), wrong.Load())
	}
}

// TestHardwareSessions opens decoders until the GPU takes no more. That one goes
// on in software, and the others where they are.
func TestHardwareSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("a card takes hundreds of decoders, one after the other")
	}
	const most = 330
	c := newCard(t)
	clip := stream(t, "bframes.h264")
	var open []*decode.Decoder
	drop := func(f *framepool.Frame) { f.Release() }
	began := time.Now()
	note := ""
	for len(open) < most && note == "" {
		d := forClip(t, clip, decode.Options{CUDA: c.decodes})
		open = append(open, d)
		for i := range 4 {
			if err := d.Decode(unit(clip, i), drop); err != nil {
				t.Fatal(err)
			}
		}
		note = d.Info().Note
	}
	t.Logf("%d decoders in %v, the last: %q", len(open), time.Since(began), note)
	for i, d := range open {
		before := d.Stats().Frames
		for k := 4; k < len(clip.Units); k++ {
			if err := d.Decode(unit(clip, k), drop); err != nil {
				t.Errorf("decoder %d: %v", i, err)
			}
		}
		if d.Stats().Frames <= before || note != "" && (d.Info().Memory == "device") != (i < len(open)-1) {
			t.Errorf("decoder %d: %+v, %d frames", i, d.Info(), d.Stats().Frames)
		}
		d.Close()
	}
}

// TestHardwareTable prints how fast the card decodes and what CPU it costs,
// units fed as fast as they go, one thread a stream. Its short form only shows that
// it works.
func TestHardwareTable(t *testing.T) {
	window, crowds := 3*time.Second, []int{1, 8, 32}
	if testing.Short() {
		window, crowds = 300*time.Millisecond, []int{1, 8}
	}
	c := newCard(t)
	var table strings.Builder
	fmt.Fprintf(&table, "| video | streams | frames/s | CPU ms/frame |\n|---|---|---|---|\n")
	for _, v := range []struct {
		name string
		clip testkit.Clip
	}{
		{"768×576 H.264", demo(t)}, {"1080p H.264", stream(t, "1080p.h264")}, {"1080p H.265", stream(t, "1080p.hevc")},
	} {
		for _, n := range crowds {
			frames, cpu, took := c.rate(t, v.clip, n, window)
			fmt.Fprintf(&table, "| %s | %d | %.0f | %.2f |\n", v.name, n, float64(frames)/took.Seconds(), cpu.Seconds()*1e3/float64(frames))
		}
	}
	t.Logf("\n%s", table.String())
}

// rate runs n decoders for a while, once all of them are set up.
func (c *card) rate(t *testing.T, clip testkit.Clip, n int, window time.Duration) (frames int64, cpu, took time.Duration) {
	t.Helper()
	var ready, done sync.WaitGroup
	var count atomic.Int64
	var stop atomic.Bool
	begin := make(chan struct{})
	ready.Add(n)
	for range n {
		d := forClip(t, clip, decode.Options{CUDA: c.decodes, Decoder: "nvdec"})
		done.Go(func() {
			defer d.Close()
			emit := func(f *framepool.Frame) { count.Add(1); f.Release() }
			round := func() {
				for i := range clip.Units {
					if err := d.Decode(unit(clip, i), emit); err != nil {
						t.Error(err)
						stop.Store(true)
					}
				}
			}
			d.Decode(unit(clip, 0), emit) //nolint:errcheck // round says it
			ready.Done()
			<-begin
			for !stop.Load() {
				round()
			}
		})
	}
	ready.Wait()
	before, at, cpuBefore := count.Load(), time.Now(), cpuTime()
	close(begin)
	<-time.After(window)
	frames, cpu, took = count.Load()-before, cpuTime()-cpuBefore, time.Since(at)
	stop.Store(true)
	done.Wait()
	return max(frames, 1), cpu, took
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
