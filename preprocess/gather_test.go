//go:build unix

package preprocess

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
)

// guarded gives n bytes with a page beside them that nobody may touch: behind
// them, or before them for front.
func guarded(t *testing.T, n int, front bool) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	size := (n + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, edge := range [][]byte{all[:page], all[page+size:]} {
		if err := syscall.Mprotect(edge, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if front {
		return all[page:][:n:n]
	}
	return all[page+size-n:][:n:n]
}

// gatherFormats are the ways in which samples lie in memory.
var gatherFormats = []framepool.PixelFormat{
	framepool.I420, framepool.I422, framepool.I444, framepool.NV12, framepool.Gray8,
	framepool.I420P10, framepool.I444P10, framepool.P010, framepool.Gray10,
}

// guardedPlan is a plan for one pair of rows, with rows that end where memory
// ends, or begin where it begins.
type guardedPlan struct {
	plan         *plan
	y, u, v      rows
	wantY, haveY []uint32
	wantC, haveC []uint64
}

func newGuardedPlan(t *testing.T, f framepool.PixelFormat, width, out int, front bool, rng *rand.Rand) guardedPlan {
	t.Helper()
	p := newPlan(shape{width, 2, f}, infer.InputSpec{Width: out, Height: 2 * out})
	g := guardedPlan{plan: p}
	row := func(n int) []byte {
		b := guarded(t, n, front)
		for i := range b {
			b[i] = byte(max(0, min(255, rng.IntN(400)-70)))
		}
		return b
	}
	g.y = rows{row(p.luma.width), row(p.luma.width)}
	g.wantY, g.haveY = make([]uint32, p.width), make([]uint32, p.width)
	if !p.colour {
		return g
	}
	g.wantC, g.haveC = make([]uint64, p.width), make([]uint64, p.width)
	g.u = rows{row(p.chroma.width), row(p.chroma.width)}
	g.v = rows{row(p.chroma.width), row(p.chroma.width)}
	if p.cb.plane == p.cr.plane {
		first, w := p.cr.first, p.chroma.width
		top, bottom := row(w+first), row(w+first)
		g.u, g.v = rows{top[:w], bottom[:w]}, rows{top[first:], bottom[first:]}
	}
	return g
}

func (g *guardedPlan) run(y []uint32, c []uint64, wy uint32) {
	g.plan.weighLuma(y, g.y, wy)
	if g.plan.colour {
		g.plan.weighChroma(c, g.u, g.v, wy)
	}
}

// All widths of the output to 200, out of rows wider and narrower, with the same
// bits and no byte read beyond a row.
func TestGatherVectorsGiveTheTwinsBits(t *testing.T) {
	if newReaderOfWideRow() == (reader{}) {
		t.Skip("this build or processor gathers without vectors")
	}
	for _, f := range gatherFormats {
		t.Run(f.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, uint64(f)))
			for out := 1; out <= 200; out++ {
				width := 1 + rng.IntN(3*out)
				if out%3 == 0 {
					width = out
				}
				g := newGuardedPlan(t, f, width, out, out%2 == 0, rng)
				for _, wy := range []uint32{0, 1, weightOne, uint32(rng.IntN(weightOne))} {
					g.plan.luma.reader, g.plan.chroma.reader = reader{}, reader{}
					g.run(g.wantY, g.wantC, wy)
					g.plan.vectorise()
					g.run(g.haveY, g.haveC, wy)
					if !slices.Equal(g.wantY, g.haveY) {
						t.Fatalf("%d to %d, weight %d: Y is %x, want %x", width, out, wy, g.haveY, g.wantY)
					}
					if !slices.Equal(g.wantC, g.haveC) {
						t.Fatalf("%d to %d, weight %d: Cb and Cr are %x, want %x", width, out, wy, g.haveC, g.wantC)
					}
				}
			}
		})
	}
}

// newReaderOfWideRow is what this build and processor read a common row with.
func newReaderOfWideRow() reader {
	p := newPlan(shape{1920, 1080, framepool.I420}, infer.InputSpec{Width: 416, Height: 416})
	if haveVectors() {
		p.vectorise()
	}
	return p.luma.reader
}

func BenchmarkGather(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range []framepool.PixelFormat{framepool.I420, framepool.NV12, framepool.I420P10} {
		for _, vectors := range []bool{false, true} {
			p := newPlan(shape{1920, 1080, f}, infer.InputSpec{Width: 416, Height: 416})
			if vectors && haveVectors() {
				p.vectorise()
			}
			line := func() rows {
				r := rows{make([]byte, 4096), make([]byte, 4096)}
				for i := range r.top {
					r.top[i], r.bottom[i] = byte(rng.IntN(256)), byte(rng.IntN(256))
				}
				return r
			}
			y, u, v := line(), line(), line()
			luma, chroma := make([]uint32, p.width), make([]uint64, p.width)
			b.Run(fmt.Sprintf("%s/Y/vectors=%v", f, vectors), func(b *testing.B) {
				for b.Loop() {
					p.weighLuma(luma, y, 1000)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.width), "ns/sample")
			})
			b.Run(fmt.Sprintf("%s/CbCr/vectors=%v", f, vectors), func(b *testing.B) {
				for b.Loop() {
					p.weighChroma(chroma, u, v, 1000)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.width), "ns/sample")
			})
		}
	}
}
