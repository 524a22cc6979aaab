//go:build unix

package overlay_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/overlay"
)

func BenchmarkRender(b *testing.B) {
	cases := []struct {
		name   string
		format framepool.PixelFormat
		w, h   int
		r      framepool.Range
		m      framepool.Matrix
		limit  int
	}{
		{"576p", framepool.I420, 768, 576, framepool.RangeLimited, framepool.MatrixBT601, 0},
		{"1080p JFIF", framepool.I420, 1920, 1080, framepool.RangeFull, framepool.MatrixBT601, 0},
		{"1080p 601", framepool.I420, 1920, 1080, framepool.RangeLimited, framepool.MatrixBT601, 0},
		{"1080p 709", framepool.I420, 1920, 1080, framepool.RangeLimited, framepool.MatrixBT709, 0},
		{"1080p 709", framepool.NV12, 1920, 1080, framepool.RangeLimited, framepool.MatrixBT709, 0},
		{"1080p 709", framepool.P010, 1920, 1080, framepool.RangeLimited, framepool.MatrixBT709, 0},
		{"1080p 709", framepool.I420, 1920, 1080, framepool.RangeLimited, framepool.MatrixBT709, 960},
		{"1080p 709", framepool.I420, 1920, 1080, framepool.RangeLimited, framepool.MatrixBT709, 800},
		{"4K 709", framepool.I420, 3840, 2160, framepool.RangeLimited, framepool.MatrixBT709, 960},
	}
	for _, c := range cases {
		b.Run(fmt.Sprintf("%s/%s/%d", c.name, c.format, c.limit), func(b *testing.B) {
			f := newPicture(c.format, c.w, c.h, noise(1)).frame(b, c.r, c.m)
			r := newRenderer(b, c.limit)
			items := []overlay.Item{person, {Label: "car", Track: 2, Score: 0.5, Box: [4]float32{0.6, 0.4, 0.9, 0.8}}}
			render(b, r, f, items, true)
			b.ReportAllocs()
			start := processorTime(b)
			for b.Loop() {
				render(b, r, f, items, true)
			}
			used := processorTime(b) - start
			b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime is what the process used so far. On a busy machine it says more
// than the wall clock does.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
