//go:build unix

package preprocess_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"edgecam/framepool"
	"edgecam/preprocess"
)

func BenchmarkCPU(b *testing.B) {
	cases := []struct {
		name string
		w, h int
		f    framepool.PixelFormat
	}{
		{"576p", 768, 576, framepool.I420},
		{"1080p", 1920, 1080, framepool.I420},
		{"1080p", 1920, 1080, framepool.NV12},
		{"1080p", 1920, 1080, framepool.I422},
		{"1080p", 1920, 1080, framepool.I444},
		{"1080p", 1920, 1080, framepool.Gray8},
		{"1080p", 1920, 1080, framepool.I420P10},
		{"1080p", 1920, 1080, framepool.P010},
		{"4K", 3840, 2160, framepool.I420},
		{"4K", 3840, 2160, framepool.NV12},
	}
	for _, size := range []int{416, 640} {
		for _, c := range cases {
			b.Run(fmt.Sprintf("%s/%s/%d", c.name, c.f, size), func(b *testing.B) {
				p := newPicture(c.f, c.w, c.h, 1)
				f := p.frame(b, framepool.RangeLimited, framepool.MatrixBT709)
				spec := nanodet
				spec.Width, spec.Height = size, size
				cpu := preprocess.NewCPU(spec)
				dst := make([]float32, 3*size*size)
				b.ReportAllocs()
				start := processorTime(b)
				for b.Loop() {
					if _, err := cpu.Run(f, dst); err != nil {
						b.Fatal(err)
					}
				}
				used := processorTime(b) - start
				b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/op")
			})
		}
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
