//go:build cgo

package avcodec_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/internal/testkit"
	"edgecam/platform/avcodec"
	"edgecam/platform/nvdectest"
)

func TestOpenCUDAWithoutADriver(t *testing.T) {
	if _, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW); err == nil {
		t.Skip("this machine has NVIDIA's driver")
	}
	dev, err := library(t).OpenCUDA(0)
	var he *avcodec.HardwareError
	want := "decode on the gpu: no NVIDIA driver: libcuda.so.1: cannot open shared object file: No such file or directory"
	if dev != nil || !errors.As(err, &he) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
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

// surfaces is an answer to how many there shall be.
func surfaces(n int) func(avcodec.SurfaceRequest) (int, error) {
	return func(avcodec.SurfaceRequest) (int, error) { return n, nil }
}

// kept is a picture with its surface.
type kept struct {
	avcodec.Picture
	*avcodec.Surface
}

func keepAll(to *[]kept) func(p *avcodec.Picture) {
	return func(p *avcodec.Picture) { *to = append(*to, kept{*p, p.Keep()}) }
}

// checkPattern compares a picture with what the fake decoded as number; coded is
// the height where chroma begins, left and top what is cropped there.
func checkPattern(t *testing.T, n *nvdectest.Driver, p *avcodec.Picture, number, coded, left, top int) {
	t.Helper()
	for plane := range 2 {
		first, rows := top, p.Height
		if plane == 1 {
			first, rows = coded+top/2, p.Height/2
		}
		for y := range rows {
			row := n.Bytes(p.Plane[plane]+uintptr(y*p.Stride[plane]), p.Width*2)
			for _, x := range []int{0, 1, p.Width - 1} {
				got, want := int(row[x]), int(n.Luma(number, left+x, first+y))
				if p.Format == avcodec.P010 {
					got, want = int(row[2*x])|int(row[2*x+1])<<8, int(n.Luma10(number, left+x, first+y))
				}
				if got != want {
					t.Errorf("picture %d plane %d sample %d, %d: %d, want %d", number, plane, x, y, got, want)
					return
				}
			}
		}
	}
}

func TestNVDECPictures(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	noB := []string{"-bf", "0"}
	for _, c := range []struct {
		name, codec, format, size string
		args                      []string
		want                      string
		coded, left, top          int
	}{
		{"h264", "h264", "yuv420p", "320x180", noB, "nv12 320x180 full=false matrix=2", 192, 0, 0},
		{"h264 full range", "h264", "yuvj420p", "320x192", append(noB, "-colorspace", "bt709"), "nv12 320x192 full=true matrix=1", 192, 0, 0},
		{
			"h264 cropped all round", "h264", "yuv420p", "320x192",
			append(noB, "-bsf:v", "h264_metadata=aud=insert:crop_left=6:crop_top=4:crop_right=2:crop_bottom=8"),
			"nv12 312x180 full=false matrix=2", 192, 6, 4,
		},
		{"hevc", "hevc", "yuv420p", "320x184", []string{"-x265-params", "log-level=none:aud=1:bframes=0"}, "nv12 320x184 full=false matrix=2", 192, 0, 0},
		{"hevc 10 bit", "hevc", "yuv420p10le", "320x184", []string{"-x265-params", "log-level=none:aud=1:bframes=0"}, "p010le 320x184 full=false matrix=2", 192, 0, 0},
		{"mjpeg", "mjpeg", "yuvj420p", "320x192", nil, "nv12 320x192 full=true matrix=5", 192, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			const frames = 6
			in := testkit.EncodeAs(t, c.codec, c.format, "", c.size, frames, c.args...)
			dev := gpu(t)
			var asked avcodec.SurfaceRequest
			d := open(t, avcodec.Options{Decoder: c.codec, Codec: c.codec, Hardware: dev, Surfaces: func(q avcodec.SurfaceRequest) (int, error) {
				asked = q
				return 12, nil
			}})
			var got []kept
			for i := range in.Units {
				if err := d.Decode(unit(in, i), keepAll(&got)); err != nil {
					t.Fatalf("unit %d: %v", i, err)
				}
			}
			if err := d.Drain(keepAll(&got)); err != nil || len(got) != frames {
				t.Fatalf("%d pictures, %v", len(got), err)
			}
			for i := range got {
				p := &got[i].Picture
				if describe(p) != c.want || p.PTS != int64(i) || p.Readers != i || !got[0].Key || p.Corrupt || p.Damaged {
					t.Errorf("picture %d is %s pts %d readers %d key %v, want %s", i, describe(p), p.PTS, p.Readers, p.Key, c.want)
				}
				checkPattern(t, n, p, i, c.coded, c.left, c.top)
			}
			if n.Count("last_surfaces") != 12 || asked.Height != c.coded || asked.Estimate < 3 || asked.Format != got[0].Format {
				t.Errorf("%d surfaces for %+v", n.Count("last_surfaces"), asked)
			}
			for _, k := range got {
				k.Release()
			}
			d.Close()
			dev.Close()
			n.CheckIdle(t)
		})
	}
}

// TestNVDECKeeps: pictures outlive the decoder and the device, are not written
// to, and go back once, from any goroutine.
func TestNVDECKeeps(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	in := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x192", 30, "-bf", "0")
	dev := gpu(t)
	d := open(t, avcodec.Options{Decoder: "h264", Hardware: dev, Surfaces: surfaces(10)})
	var got []kept
	for i := range in.Units {
		take := keepAll(&got)
		if i >= 5 { // the rest come and go
			take = func(p *avcodec.Picture) {
				if p.Readers != 5 {
					t.Errorf("picture %d: %d readers, want 5", i, p.Readers)
				}
			}
		}
		if err := d.Decode(unit(in, i), take); err != nil {
			t.Fatal(err)
		}
	}
	if n.Count("mapped") != 5 {
		t.Errorf("%d pictures mapped", n.Count("mapped"))
	}
	d.Close()
	dev.Close()
	if dev.Stream() != 0 || n.Count("contexts") != 1 || n.Count("decoders") != 1 {
		t.Errorf("stream %#x, %d contexts, %d decoders", dev.Stream(), n.Count("contexts"), n.Count("decoders"))
	}
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			checkPattern(t, n, &got[i].Picture, i, 192, 0, 0)
			got[i].Release()
		})
	}
	wg.Wait()
	n.CheckIdle(t)
	defer func() {
		if r := recover(); r != "avcodec: surface released twice" {
			t.Errorf("second release: %v", r)
		}
	}()
	got[0].Release()
}

// TestNVDECRunsDry: readers that keep everything cost pictures, and nothing else.
func TestNVDECRunsDry(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	for _, gop := range []string{"1", "4", "250"} {
		for _, strict := range []bool{true, false} {
			t.Run(fmt.Sprint(gop, " ", strict), func(t *testing.T) {
				in := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x192", 10, "-bf", "0", "-g", gop)
				dev := gpu(t)
				d := open(t, avcodec.Options{Decoder: "h264", Hardware: dev, Surfaces: surfaces(4)})
				d.Strict(strict)
				var got []kept
				dry := 0
				for i := range in.Units {
					if errors.Is(d.Decode(unit(in, i), keepAll(&got)), avcodec.ErrExhausted) {
						dry++
					}
				}
				if len(got) < 2 || len(got) > 4 || dry == 0 {
					t.Fatalf("%d pictures, %d times dry", len(got), dry)
				}
				for _, k := range got {
					if k.Plane[0] == 0 || k.Plane[1] == 0 {
						t.Errorf("a picture without memory: %x", k.Plane)
					}
					k.Release()
				}
				got = nil
				if err := d.Drain(keepAll(&got)); err != nil || len(got) != 0 {
					t.Errorf("drain: %d pictures, %v", len(got), err)
				}
				if err := d.Decode(unit(in, 0), keepAll(&got)); err != nil || len(got) != 1 {
					t.Fatalf("after release: %d pictures, %v", len(got), err)
				}
				got[0].Release()
				d.Close()
				dev.Close()
				n.CheckIdle(t)
			})
		}
	}
}

func TestNVDECRefuses(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	errFew := errors.New("too many pictures")
	for _, c := range []struct {
		name, codec, format, size string
		set                       string
		value                     int
		surfaces                  func(avcodec.SurfaceRequest) (int, error)
		want                      string
	}{
		{name: "codec", codec: "hevc", format: "yuv420p", size: "320x192", set: "unsupported", value: 1, want: "the GPU has no decoder for this kind of hevc"},
		{name: "width", codec: "h264", format: "yuv420p", size: "32x64", want: "the picture's width of 32 is not within the GPU's 48 to 4096"},
		{name: "area", codec: "h264", format: "yuv420p", size: "320x192", set: "max_blocks", value: 200, want: "the picture has 240 macroblocks, the GPU takes at most 200"},
		{name: "chroma", codec: "h264", format: "yuv444p", size: "320x192", want: "pixel format yuv444p is not supported"},
		{name: "chroma of hevc", codec: "hevc", format: "yuv444p", size: "320x192", want: "pixel format yuv444p is not supported"},
		{name: "h264 with 10 bits", codec: "h264", format: "yuv420p10le", size: "320x192", want: "pixel format yuv420p10le is not supported"},
		{name: "no memory", codec: "h264", format: "yuv420p", size: "320x192", set: "create_fails", value: 2, want: "the GPU has no memory or no decoding session left (cuvidCreateDecoder: out of memory)"},
		{name: "driver", codec: "hevc", format: "yuv420p", size: "320x192", set: "create_fails", value: 999, want: "cuvidCreateDecoder: unknown error (CUDA_ERROR_UNKNOWN)"},
		{name: "caller", codec: "h264", format: "yuv420p", size: "320x192", surfaces: func(avcodec.SurfaceRequest) (int, error) { return 0, errFew }, want: "too many pictures"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := testkit.EncodeAs(t, c.codec, c.format, "", c.size, 2)
			if c.set != "" {
				n.Set(c.set, c.value)
				defer n.Set(c.set, 0)
			}
			if c.surfaces == nil {
				c.surfaces = surfaces(10)
			}
			dev := gpu(t)
			d := open(t, avcodec.Options{Decoder: c.codec, Codec: c.codec, Hardware: dev, Surfaces: c.surfaces})
			err := d.Decode(unit(in, 0), func(*avcodec.Picture) { t.Error("a picture came") })
			var he *avcodec.HardwareError
			if !errors.As(err, &he) || he.Reason != c.want {
				t.Errorf("error %v, want a *HardwareError %s", err, c.want)
			}
			if err := d.Drain(func(*avcodec.Picture) { t.Error("a picture came") }); err != nil {
				t.Error(err)
			}
			d.Close()
			dev.Close()
			n.CheckIdle(t)
		})
	}
}

// TestNVDECLeavesOthersAlone: where sessions end, decoders that have one go on.
func TestNVDECLeavesOthersAlone(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	n.Set("sessions", 2)
	in := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x192", 4, "-bf", "0")
	dev := gpu(t)
	var got []string
	for i := range 3 {
		d := open(t, avcodec.Options{Decoder: "h264", Hardware: dev, Surfaces: surfaces(10)})
		pictures := 0
		err := d.Decode(unit(in, 0), func(*avcodec.Picture) { pictures++ })
		got = append(got, fmt.Sprint(i, pictures, err))
		t.Cleanup(func() {
			if i == 2 {
				return
			}
			if err := d.Decode(unit(in, 1), func(*avcodec.Picture) { pictures++ }); err != nil || pictures != 2 {
				t.Errorf("decoder %d afterwards: %d pictures, %v", i, pictures, err)
			}
		})
	}
	want := "[0 1 <nil> 1 1 <nil> 2 0 decode on the gpu: the GPU has no memory or no decoding session left (cuvidCreateDecoder: out of memory)]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v\nwant %s", got, want)
	}
}

// TestNVDECChangesSize: each geometry has a decoder of its own in the driver, and
// pictures of the one before stay.
func TestNVDECChangesSize(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	clips := []testkit.Clip{
		testkit.EncodeAs(t, "h264", "yuv420p", "", "320x192", 3, "-bf", "0"),
		testkit.EncodeAs(t, "h264", "yuv420p", "", "160x96", 3, "-bf", "0"),
	}
	dev := gpu(t)
	d := open(t, avcodec.Options{Decoder: "h264", Hardware: dev, Surfaces: surfaces(8)})
	var first []kept
	for round := range 6 {
		in := clips[round%2]
		var got []kept
		for i := range in.Units {
			if err := d.Decode(unit(in, i), keepAll(&got)); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 3 || got[0].Readers != 0 {
			t.Fatalf("round %d: %d pictures, %d readers at the first", round, len(got), got[0].Readers)
		}
		for i, k := range got {
			checkPattern(t, n, &k.Picture, i, k.Height, 0, 0)
			if round == 0 {
				first = append(first, k)
				continue
			}
			k.Release()
		}
	}
	if n.Count("created") != 6 || n.Count("decoders") != 2 {
		t.Errorf("%d decoders made, %d alive", n.Count("created"), n.Count("decoders"))
	}
	for i, k := range first {
		checkPattern(t, n, &k.Picture, i, 192, 0, 0)
		k.Release()
	}
	d.Close()
	dev.Close()
	n.CheckIdle(t)
}

// TestNVDECFailures: what breaks while it runs is an error of the unit.
func TestNVDECFailures(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	in := testkit.EncodeAs(t, "h264", "yuv420p", "", "320x192", 4, "-bf", "0", "-g", "1")
	for _, setting := range []string{"decode_fails", "map_fails"} {
		t.Run(setting, func(t *testing.T) {
			dev := gpu(t)
			d := open(t, avcodec.Options{Decoder: "h264", Hardware: dev, Surfaces: surfaces(8)})
			var got []kept
			if err := d.Decode(unit(in, 0), keepAll(&got)); err != nil || len(got) != 1 {
				t.Fatalf("%d pictures, %v", len(got), err)
			}
			n.Set(setting, 999)
			defer n.Set(setting, 0)
			d.Strict(true)
			err := d.Decode(unit(in, 1), keepAll(&got))
			var ae *avcodec.Error
			if !errors.As(err, &ae) || !ae.External() || ae.Invalid() || len(got) != 1 {
				t.Errorf("error %v, %d pictures", err, len(got))
			}
			for _, k := range got {
				k.Release()
			}
			d.Close()
			dev.Close()
			n.CheckIdle(t)
		})
	}
}

func TestOpenCUDAFails(t *testing.T) {
	n := nvdectest.Run(t)
	if n == nil {
		return
	}
	for _, c := range []struct {
		name, set      string
		value, ordinal int
		want           string
	}{
		{"no such gpu", "", 0, 3, "no GPU number 3, the driver shows 1"},
		{"negative", "", 0, -1, "no GPU number -1, the driver shows 1"},
		{"no device", "init_fails", 100, 0, "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"},
		{"context", "retain_fails", 2, 0, "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.set != "" {
				n.Set(c.set, c.value)
				defer n.Set(c.set, 0)
			}
			dev, err := library(t).OpenCUDA(c.ordinal)
			var he *avcodec.HardwareError
			if dev != nil || !errors.As(err, &he) || he.Reason != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			n.CheckIdle(t)
		})
	}
	dev := gpu(t)
	if dev.Stream() == 0 || n.Count("streams") != 1 {
		t.Errorf("stream %#x of %d", dev.Stream(), n.Count("streams"))
	}
	dev.Close()
	dev.Close()
	n.CheckIdle(t)
	_, err := library(t).NewDecoder(avcodec.Options{Decoder: "h264", Hardware: dev, Surfaces: surfaces(8)})
	if fmt.Sprint(err) != "decode on the gpu: the device was closed" {
		t.Errorf("decoder on a closed device: %v", err)
	}
}

// TestCopies: pictures of decoders with memory of their own come into slots too.
func TestCopies(t *testing.T) {
	for _, c := range []struct{ codec, format, size string }{
		{"h264", "yuv420p", "638x358"}, {"hevc", "yuv420p10le", "320x184"}, {"mjpeg", "yuvj422p", "321x181"},
	} {
		t.Run(c.codec, func(t *testing.T) {
			const frames = 6
			in := testkit.Encode(t, c.codec, c.format, c.size, frames)
			rs := newRings(t, 3)
			d := open(t, avcodec.Options{Decoder: c.codec, Allocate: rs.allocate}.Copying())
			var got []byte
			copied := int64(0)
			take := func(p *avcodec.Picture) {
				got = append(got, rs.pixels(p)...)
				copied += p.Copied
			}
			for i := range in.Units {
				if err := d.Decode(unit(in, i), take); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Drain(take); err != nil {
				t.Fatal(err)
			}
			if !samePixels(c.codec, got, in.Raw) || copied != int64(len(in.Raw)) {
				t.Errorf("%d bytes, %d of them copied, want ffmpeg's %d", len(got), copied, len(in.Raw))
			}
			d.Close()
			if n := rs.all[0].inUse(); len(rs.all) != 1 || n != 0 {
				t.Errorf("%d rings, %d slots in use after Close", len(rs.all), n)
			}
		})
	}
}
