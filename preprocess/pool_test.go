package preprocess_test

import (
	"slices"
	"testing"

	"edgecam/framepool"
	"edgecam/preprocess"
)

// A decoder crops by moving the first visible sample: the picture is read where
// it lies in its slot, and what lies around it does not shine in.
func TestCPUReadsCroppedSlots(t *testing.T) {
	const w, h, left, top = 75, 53, 6, 2
	for _, format := range formats {
		t.Run(format.String(), func(t *testing.T) {
			p := newPicture(format, w, h, 9)
			whole := p.frame(t, framepool.RangeLimited, framepool.MatrixBT709)
			layout, err := framepool.NewLayout(format, 96, 64)
			if err != nil {
				t.Fatal(err)
			}
			pool, err := framepool.New(framepool.Options{Name: "gate", Layout: layout, Slots: 1, Node: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			b, ok := pool.TryGet()
			if !ok {
				t.Fatal("no slot")
			}
			m := *whole.Meta()
			for i := range format.Planes() {
				plane := b.Plane(i)
				for j := range plane {
					plane[j] = byte(0xC3 * j)
				}
				x, y, bytes := left, top, depth(format)/10+1
				if sx, sy := chroma(format); i > 0 {
					x, y = left/sx, top/sy
					if format == framepool.NV12 || format == framepool.P010 {
						bytes *= 2
					}
				}
				at := y*b.Stride(i) + x*bytes
				src, stride := whole.Plane(i), whole.Stride(i)
				for row := 0; row*stride < len(src); row++ {
					line := src[row*stride : min(row*stride+stride-24, len(src))]
					copy(plane[at+row*b.Stride(i):], line)
				}
				m.Offset[i], m.Stride[i] = layout.Offset[i]+at, b.Stride(i)
			}
			f := b.Seal(m)
			defer f.Release()
			want, got := make([]float32, 3*45*32), make([]float32, 3*45*32)
			cpu := preprocess.NewCPU(small)
			if _, err := cpu.Run(whole, want); err != nil {
				t.Fatal(err)
			}
			if _, err := cpu.Run(f, got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Error("the cropped slot gives another tensor than the picture alone")
			}
		})
	}
}
