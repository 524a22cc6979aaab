//go:build cgo

package decode_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/nvdectest"
)

func TestNVDECWithoutAGPU(t *testing.T) {
	_, err := decode.New(decode.Options{
		Library: library(t), Info: capture.StreamInfo{Codec: capture.H264}, Decoder: "nvdec",
		NoCUDA: "no NVIDIA driver: libcuda.so.1 is missing",
	})
	wantUnsupported(t, err, "unsupported decoder nvdec: no NVIDIA driver: libcuda.so.1 is missing; set decoder to auto or software")
}

// TestNVDECMemory: a camera that the GPU decodes takes no pool, pinned or not, and what
// libavcodec took for its tables goes back to the system with the decoder.
func TestNVDECMemory(t *testing.T) {
	if nvdectest.Run(t) == nil {
		return
	}
	clip := testkit.Encode(t, "hevc", "yuv420p", "1920x1080", 12, "-x265-params", "log-level=none:aud=1:bframes=0:keyint=10:min-keyint=10:scenecut=0")
	dev := gpu(t)
	budget := framepool.NewBudget(1 << 30)
	once := func(n int) (open int64) {
		var decoders []*decode.Decoder
		for range n {
			d := forClip(t, clip, decode.Options{CUDA: dev, Decoder: "nvdec", Budget: budget})
			decoders = append(decoders, d)
			for i := range clip.Units {
				if err := d.Decode(unit(clip, i), func(f *framepool.Frame) { f.Release() }); err != nil {
					t.Fatal(err)
				}
			}
			if pools := d.Stats().Pools; len(pools) != 0 {
				t.Errorf("pools %+v", pools)
			}
		}
		if used := budget.Used(); used != 0 {
			t.Errorf("%d bytes of pools for %d cameras", used, n)
		}
		open = rss(t)
		for _, d := range decoders {
			d.Close()
		}
		return open
	}
	once(1) // what comes with the first one stays
	before := rss(t)
	open := once(6)
	kept, took := rss(t)-before, open-before
	t.Logf("6 decoders took %d bytes, %d of them stay", took, kept)
	if kept > took/4 {
		t.Errorf("6 decoders took %d bytes, %d of them stay", took, kept)
	}
}

// gpu opens the fake GPU.
func gpu(t *testing.T) *avcodec.HardwareDevice {
	t.Helper()
	dev, err := library(t).OpenCUDA(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	return dev
}

// numbered checks that f lies in device memory and is what the fake decoded as
// number.
func numbered(t *testing.T, n *nvdectest.Driver, f *framepool.Frame, number int) {
	t.Helper()
	m := f.Meta()
	if f.Memory() != framepool.MemoryDevice || f.Plane(0) != nil {
		t.Fatalf("frame %d is in memory of kind %v, with host bytes %v", m.Seq, f.Memory(), f.Plane(0) != nil)
	}
	for i := range m.Format.Planes() {
		a, ok := f.DevicePlane(i)
		if !ok {
			t.Fatalf("frame %d has no plane %d", m.Seq, i)
		}
		row := n.Bytes(a, m.Width) // chroma lies below luma
		y := i * (m.Height + 15) / 16 * 16
		if row[0] != n.Luma(number, 0, y) || row[m.Width-1] != n.Luma(number, m.Width-1, y) {
			t.Errorf("frame %d is not picture %d: plane %d starts with %d", m.Seq, number, i, row[0])
		}
	}
}

// deviceSink notes frames, and those in device memory by the number of their picture.
type deviceSink struct {
	t      *testing.T
	fake   *nvdectest.Driver
	device []int // units
	host   []int
	seqs   []uint64
	keep   bool
	held   []*framepool.Frame
}

func (s *deviceSink) emit(f *framepool.Frame) {
	m := f.Meta()
	n := int(m.RTPTime / 9000)
	s.seqs = append(s.seqs, m.Seq)
	if f.Memory() == framepool.MemoryDevice {
		s.device = append(s.device, n)
	} else {
		s.host = append(s.host, n)
	}
	if s.keep {
		s.held = append(s.held, f)
		return
	}
	f.Release()
}

func TestNVDECFrames(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip := gops(t, "h264", 20)
	for _, wish := range []string{"", "auto", "nvdec"} {
		dev := gpu(t)
		d := forClip(t, clip, decode.Options{CUDA: dev, Decoder: wish})
		var last *framepool.Frame
		n := 0
		for i := range clip.Units {
			if err := d.Decode(unit(clip, i), func(f *framepool.Frame) {
				numbered(t, fake, f, n)
				m := f.Meta()
				if m.Seq != uint64(n+1) || m.Format != framepool.NV12 || m.Width != 320 || m.Height != 180 || m.Stride[0] != 512 || m.KeyFrame != (n%10 == 0) {
					t.Errorf("frame %d: %+v", n, m)
				}
				n++
				if last != nil {
					last.Release()
				}
				last = f
			}); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprintf("%d %+v %v", n, d.Info(), d.Stats().Dropped); got != "20 {Name:h264 (nvdec) Memory:device Width:320 Height:180 PixelFormat:nv12 Note:} map[]" {
			t.Errorf("decoder %q: %s", wish, got)
		}
		// The surfaces are those that the stream needs and the readers' six, not 32.
		if got := fake.Count("last_surfaces"); got > 16 {
			t.Errorf("%d surfaces", got)
		}
		d.Close()
		dev.Close()
		numbered(t, fake, last, n-1)
		second := last.Retain()
		last.Release()
		numbered(t, fake, second, n-1)
		second.Release()
		fake.CheckIdle(t)
	}
}

// TestNVDECGates: what is not whole does not pass, as from software, and losses
// do not cost the GPU's decoder.
func TestNVDECGates(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			clip := gops(t, codec, 60)
			before := fake.Count("created")
			dev := gpu(t)
			d := forClip(t, clip, decode.Options{CUDA: dev})
			s := &deviceSink{t: t, fake: fake}
			for i := 3; i < 60; i++ {
				if i == 27 || i == 44 {
					continue
				}
				au := unit(clip, i)
				au.LossBefore = i == 28 || i == 45
				if err := d.Decode(au, s.emit); err != nil {
					t.Errorf("unit %d: %v", i, err)
				}
			}
			if want := slices.Concat(span(10, 27), span(30, 44), span(50, 60)); !slices.Equal(s.device, want) || len(s.host) > 0 {
				t.Errorf("frames of units %v on the gpu and %v elsewhere, want %v", s.device, s.host, want)
			}
			d.Close()
			if got := fmt.Sprint(d.Stats().Dropped); got != fmt.Sprintf("map[%s:14]", decode.DropWaiting) {
				t.Errorf("dropped %s", got)
			}
			if n := fake.Count("created") - before; n != 1 {
				t.Errorf("%d decoders were set up", n)
			}
			dev.Close()
			fake.CheckIdle(t)
		})
	}
}

// TestNVDECIntraRefresh: a stream without key frames comes back after a loss.
func TestNVDECIntraRefresh(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	const frames = 120
	clip := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x180", frames, "-bf", "0", "-x264opts", "keyint=20:intra-refresh=1")
	d := forClip(t, clip, decode.Options{CUDA: gpu(t)})
	s := &deviceSink{t: t, fake: fake}
	for i := range frames {
		if i == 30 {
			continue
		}
		au := unit(clip, i)
		au.LossBefore = i == 31
		if err := d.Decode(au, s.emit); err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	back := slices.IndexFunc(s.device, func(n int) bool { return n > 30 })
	if back < 0 || s.device[back] < 40 || s.device[back] > 90 || s.device[len(s.device)-1] != frames-1 {
		t.Errorf("frames of units %v", s.device)
	}
}

// TestNVDECReordering: the frames come in the order of display.
func TestNVDECReordering(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x180", 40, "-preset", "medium", "-bf", "3", "-b_strategy", "0", "-g", "20")
	d := forClip(t, clip, decode.Options{CUDA: gpu(t)})
	var order []int
	for i := range clip.Units {
		if err := d.Decode(unit(clip, i), func(f *framepool.Frame) {
			// Pictures are numbered as they are decoded, as the units are.
			numbered(t, fake, f, int(f.Meta().RTPTime/9000))
			order = append(order, int(f.Meta().RTPTime/9000))
			f.Release()
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(order) < 35 || slices.IsSorted(order) {
		t.Errorf("frames of units %v", order)
	}
}

// TestNVDECReaders: readers that hold what they may lose frames, and the
// decoder does not run dry.
func TestNVDECReaders(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip := gops(t, "h264", 40)
	dev := gpu(t)
	d := forClip(t, clip, decode.Options{CUDA: dev, ReaderSlots: 4})
	s := &deviceSink{t: t, fake: fake, keep: true}
	for i := range 20 {
		if err := d.Decode(unit(clip, i), s.emit); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(d.Stats().Dropped); len(s.held) != 4 || got != fmt.Sprintf("map[%s:16]", decode.DropReaders) {
		t.Errorf("%d frames held, dropped %s", len(s.held), got)
	}
	for i, f := range s.held {
		numbered(t, fake, f, i)
		f.Release()
	}
	s.held, s.keep = nil, false
	for i := 20; i < 40; i++ {
		if err := d.Decode(unit(clip, i), s.emit); err != nil {
			t.Fatal(err)
		}
	}
	if want := slices.Concat(span(0, 4), span(20, 40)); !slices.Equal(s.device, want) {
		t.Errorf("frames of units %v, want %v", s.device, want)
	}
	d.Close()
	dev.Close()
	fake.CheckIdle(t)
}

// TestNVDECFallsBack: a GPU that does not take the stream costs no frame.
func TestNVDECFallsBack(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	for _, c := range []struct {
		name, codec, format string
		set                 string
		value               int
		args                []string
		reason              string
	}{
		{"chroma", "h264", "yuv444p", "", 0, nil, "pixel format yuv444p is not supported"},
		{"no colour", "h264", "gray", "", 0, nil, "pictures without colour"},
		{"depth", "h264", "yuv420p10le", "", 0, nil, "pixel format yuv420p10le is not supported"},
		{"codec", "hevc", "yuv420p", "unsupported", 1, nil, "the GPU has no decoder for this kind of hevc"},
		{"sessions", "h264", "yuv420p", "create_fails", 2, nil, "the GPU has no memory or no decoding session left (cuvidCreateDecoder: out of memory)"},
		{"reordering", "h264", "yuv420p", "sessions", -1, []string{"-preset", "medium", "-bf", "3"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := c.format
			if out == "gray" {
				out = "yuvj420p"
			}
			const frames = 30
			clip := testkit.EncodeAs(t, c.codec, c.format, out, "320x180", frames, append([]string{"-g", "10"}, c.args...)...)
			if c.value > 0 {
				fake.Set(c.set, c.value)
				defer fake.Set(c.set, 0)
			}
			dev := gpu(t)
			d := forClip(t, clip, decode.Options{CUDA: dev})
			s := &sink{t: t}
			if c.reason == "" {
				s.discard = true
			}
			play(t, d, clip, s)
			name := map[string]string{"h264": "h264", "hevc": "hevc"}[c.codec]
			want := "not decoded by " + name + " (nvdec): " + c.reason
			if c.reason == "" {
				want = ""
			}
			if i := d.Info(); i.Note != want || (want != "") != (i.Name == name) {
				t.Errorf("info %+v, want the note %s", i, want)
			}
			if want != "" && string(s.raw) != string(clip.Raw[:len(s.raw)]) || len(s.metas) < frames-4 {
				t.Errorf("%d frames, not ffmpeg's", len(s.metas))
			}
			// The GPU or nothing.
			if want != "" {
				only := forClip(t, clip, decode.Options{CUDA: dev, Decoder: "nvdec"})
				err := only.Decode(unit(clip, 0), s.emit)
				wantUnsupported(t, err, "unsupported decoder nvdec: "+c.reason+"; set decoder to auto or software")
				only.Close()
			}
			d.Close()
			dev.Close()
			fake.CheckIdle(t)
		})
	}
}

// TestNVDECFallsBackInBetween: the stream becomes one that the GPU does not take.
func TestNVDECFallsBackInBetween(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	b := []string{"-preset", "medium", "-bf", "2", "-b_strategy", "0", "-g", "10"}
	large := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x192", 20, b...)
	small := testkit.EncodeAs(t, "h264", "yuv420p", "", "32x32", 20, b...)
	clip := testkit.Clip{Codec: "h264", Units: slices.Concat(large.Units, small.Units)}
	dev := gpu(t)
	d := forClip(t, clip, decode.Options{CUDA: dev})
	s := &deviceSink{t: t, fake: fake}
	for i := range clip.Units {
		if err := d.Decode(unit(clip, i), s.emit); err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	slices.Sort(s.device)
	if !slices.Equal(s.device, span(0, 20)) || len(s.host) < 16 {
		t.Errorf("frames of units %v on the gpu, %v by software", s.device, s.host)
	}
	if i := d.Info(); i.Name != "h264" || i.Note != "not decoded by h264 (nvdec): the picture's width of 32 is not within the GPU's 48 to 4096" {
		t.Errorf("info %+v", i)
	}
	d.Close()
	dev.Close()
	fake.CheckIdle(t)
}

// TestNVDECFailsInBetween: a GPU that breaks down is left at once where it says that
// its context serves no more calls, "unknown" among them, and at the second group of
// pictures where the stream may be at fault.
func TestNVDECFailsInBetween(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	for _, c := range []struct {
		how        string
		code, from int
	}{{"decode_fails", 719, 20}, {"map_fails", 719, 20}, {"map_fails", 999, 20}, {"map_fails", 1, 30}} {
		how := c.how
		t.Run(fmt.Sprint(how, c.code), func(t *testing.T) {
			clip := gops(t, "h264", 50)
			dev := gpu(t)
			d := forClip(t, clip, decode.Options{CUDA: dev})
			s := &deviceSink{t: t, fake: fake}
			for i := range clip.Units {
				if i == 14 {
					fake.Set(how, c.code)
					defer fake.Set(how, 0)
				}
				err := d.Decode(unit(clip, i), s.emit)
				if err != nil && errors.As(err, new(*capture.UnsupportedError)) {
					t.Fatal(err)
				}
			}
			if !slices.Equal(s.device, span(0, 14)) || !slices.Equal(s.host, span(c.from, 50)) {
				t.Errorf("frames of units %v on the gpu, %v by software", s.device, s.host)
			}
			if i := d.Info(); i.Name != "h264" || !strings.HasPrefix(i.Note, "not decoded by h264 (nvdec): ") {
				t.Errorf("info %+v", i)
			}
			d.Close()
			dev.Close()
			fake.CheckIdle(t)
		})
	}
}

// TestNVDECLost: a GPU that its owner gave up is not called any more, even if it
// hangs, and software goes on.
func TestNVDECLost(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip := gops(t, "h264", 40)
	dev, on := gpu(t), newLentCard()
	closer := on.closer(t, decode.NewQueue(4, nil))
	d := forClip(t, clip, decode.Options{CUDA: dev, Lost: on.Lost(), Closer: closer})
	s := &deviceSink{t: t, fake: fake, keep: true}
	for i := range clip.Units {
		if i == 4 {
			s.keep = false
			fake.Set("hangs", 1)
			on.Lose(errTest)
			for _, f := range s.held {
				f.Release()
			}
		}
		au := unit(clip, i)
		au.LossBefore = i == 4
		if err := d.Decode(au, s.emit); err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
	}
	d.Close()
	if !slices.Equal(s.device, span(0, 4)) || !slices.Equal(s.host, span(10, 40)) {
		t.Errorf("frames of units %v on the gpu, %v by software", s.device, s.host)
	}
	if i := d.Info(); i.Note != "not decoded by h264 (nvdec): the GPU was lost" {
		t.Errorf("info %+v", i)
	}
	closer.Close(dev.Close, time.Minute)
	if fake.Count("decoders") != 1 || closer.Open() != 1 || on.held() == 0 {
		t.Errorf("%d decoders are open, %d are counted", fake.Count("decoders"), closer.Open())
	}
	fake.Set("hangs", 0)
	on.free(t)
	fake.CheckIdle(t)
}

// turnstile counts who goes through.
type turnstile struct{ setUps, in, out int }

func (s *turnstile) Enter(t decode.Turn, _ <-chan struct{}) (leave func()) {
	s.in++
	if t.SetUp {
		s.setUps++
	}
	return func() { s.out++ }
}

// Each call goes through the turnstile of what decodes; the first one to the GPU
// is its set-up.
func TestNVDECQueue(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip := gops(t, "h264", 10)
	for wish, want := range map[string][2]turnstile{
		"nvdec":    {{setUps: 1, in: 10, out: 10}, {}},
		"software": {{}, {in: 10, out: 10}},
	} {
		var card, cpu turnstile
		d := forClip(t, clip, decode.Options{CUDA: gpu(t), Decoder: wish, Queue: &card, CPU: &cpu})
		play(t, d, clip, &sink{t: t, discard: true})
		if got := [2]turnstile{card, cpu}; got != want {
			t.Errorf("%s: %+v, want %+v", wish, got, want)
		}
	}
}

// A hundred cameras start at once and share a GPU: all come up, and none of them
// has a thread of its own.
func TestNVDECCrowd(t *testing.T) {
	fake := nvdectest.Run(t)
	if fake == nil {
		return
	}
	clip, dev, q := gops(t, "h264", 10), gpu(t), decode.NewQueue(4, nil)
	before := threads(t)
	crowd(t, 100, clip, decode.Options{CUDA: dev, Decoder: "nvdec", Queue: q})
	if more := threads(t) - before; more > 20 {
		t.Errorf("100 cameras took %d threads more", more)
	}
	if q.SetUps().Takes() <= 0 {
		t.Error("no set-up was timed")
	}
}
