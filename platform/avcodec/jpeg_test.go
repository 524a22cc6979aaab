//go:build cgo

package avcodec_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"edgecam/platform/avcodec"
)

// picture is an I420 gradient with padding of 5 bytes a row.
func picture(w, h int) (planes [3][]byte, strides [3]int) {
	for i := range planes {
		cols, rows := w, h
		if i > 0 {
			cols, rows = (w+1)/2, (h+1)/2
		}
		strides[i] = cols + 5
		planes[i] = make([]byte, strides[i]*rows)
		for y := range rows {
			for x := range cols {
				v := 255 * x / max(cols-1, 1)
				if i > 0 {
					v = 64 + 128*y/max(rows-1, 1)
				}
				planes[i][y*strides[i]+x] = byte(v)
			}
		}
	}
	return planes, strides
}

func TestJPEG(t *testing.T) {
	for _, size := range []image.Point{{640, 360}, {641, 361}, {16, 16}, {2, 2}, {1918, 1078}} {
		t.Run(fmt.Sprintf("%dx%d", size.X, size.Y), func(t *testing.T) {
			e, err := library(t).NewJPEGEncoder(size.X, size.Y, 95)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			p, strides := picture(size.X, size.Y)
			for range 3 {
				got, err := e.Encode([]byte("head"), p[0], p[1], p[2], strides)
				if err != nil {
					t.Fatal(err)
				}
				checkJPEG(t, bytes.TrimPrefix(got, []byte("head")), p, strides, size)
			}
		})
	}
}

func checkJPEG(t *testing.T, file []byte, p [3][]byte, strides [3]int, size image.Point) {
	t.Helper()
	if !bytes.HasPrefix(file, []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00")) || !bytes.HasSuffix(file, []byte{0xff, 0xd9}) {
		t.Fatalf("no JFIF file: % x … % x", file[:min(len(file), 12)], file[max(0, len(file)-2):])
	}
	if bytes.Contains(file[:min(len(file), 600)], []byte("Lavc")) {
		t.Error("the file carries a comment")
	}
	img, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := img.(*image.YCbCr)
	if !ok || got.Rect.Size() != size || got.SubsampleRatio != image.YCbCrSubsampleRatio420 {
		t.Fatalf("decoded as %T %v", img, img.Bounds())
	}
	worst := 0
	for y := range size.Y {
		for x := range size.X {
			worst = max(worst, diff(got.Y[got.YOffset(x, y)], p[0][y*strides[0]+x]),
				diff(got.Cb[got.COffset(x, y)], p[1][y/2*strides[1]+x/2]))
		}
	}
	// Tall steps of a 2×2 gradient and the quantiser of quality 95 stay below this.
	if worst > 24 {
		t.Errorf("a sample is off by %d", worst)
	}
}

func diff(a, b byte) int { return max(int(a), int(b)) - min(int(a), int(b)) }

func TestJPEGQuality(t *testing.T) {
	p, strides := picture(320, 240)
	for i := range p[0] {
		p[0][i] ^= byte(i * 7919 >> 3)
	}
	last := 0
	for _, q := range []int{1, 25, 50, 75, 100} {
		e, err := library(t).NewJPEGEncoder(320, 240, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Encode(nil, p[0], p[1], p[2], strides)
		if err != nil || len(got) <= last {
			t.Errorf("quality %d: %d bytes after %d, %v", q, len(got), last, err)
		}
		last = len(got)
		e.Close()
		e.Close()
		if _, err := e.Encode(nil, p[0], p[1], p[2], strides); err == nil || err.Error() != "encode jpeg: closed" {
			t.Errorf("encode after close: %v", err)
		}
	}
}

func TestJPEGRefuses(t *testing.T) {
	for _, c := range []struct {
		w, h int
		want string
	}{
		{0, 10, "open jpeg encoder 0x10: size must be 1 to 65535"},
		{10, 65536, "open jpeg encoder 10x65536: size must be 1 to 65535"},
	} {
		if _, err := library(t).NewJPEGEncoder(c.w, c.h, 80); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	e, err := library(t).NewJPEGEncoder(64, 64, 80)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p, strides := picture(64, 64)
	if _, err := e.Encode(nil, p[0], p[1][:100], p[2], strides); err == nil || err.Error() != "encode jpeg: plane 1: 100 bytes, 1179 needed" {
		t.Errorf("short plane: %v", err)
	}
	if _, err := e.Encode(nil, p[0], p[1], p[2], [3]int{69, 37, 31}); err == nil || err.Error() != "encode jpeg: plane 2: stride 31 is less than its 32 columns" {
		t.Errorf("short stride: %v", err)
	}
}

func TestLibrary(t *testing.T) {
	l := library(t)
	v := l.Versions()
	if strings.Count(v.Codec, ".") != 2 || strings.Split(v.Codec, ".")[0] != strings.Split(v.CodecBuilt, ".")[0] {
		t.Errorf("versions %+v", v)
	}
	if l.License() == "" || !strings.Contains(l.Configuration(), "--") {
		t.Errorf("license %q, configuration %q", l.License(), l.Configuration())
	}
	have := map[string]avcodec.DecoderInfo{}
	for _, d := range l.Decoders() {
		have[d.Name] = d
	}
	for _, name := range []string{"h264", "hevc", "mjpeg"} {
		if d := have[name]; d.Codec != name || !d.Direct || d.LongName == "" {
			t.Errorf("decoder %s: %+v", name, d)
		}
	}
}

func BenchmarkJPEG(b *testing.B) {
	e, err := library(b).NewJPEGEncoder(768, 576, 80)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	p, strides := picture(768, 576)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = e.Encode(buf[:0], p[0], p[1], p[2], strides); err != nil {
			b.Fatal(err)
		}
	}
}
