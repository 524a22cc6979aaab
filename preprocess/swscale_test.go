package preprocess_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os/exec"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
)

func ffmpeg(t *testing.T, stdin io.Reader, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Fatal("needs ffmpeg, whose libswscale is the judge here: apt-get install ffmpeg")
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"-nostdin", "-v", "error"}, args...)...)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, complaints.String())
	}
	return out
}

// raw is the picture as libavutil lays it out, without gaps.
func (p *picture) raw() []byte {
	var b []byte
	put := func(v int) {
		switch {
		case depth(p.format) == 8:
			b = append(b, byte(v))
		case p.format == framepool.P010:
			b = append(b, byte(v<<6), byte(v>>2))
		default:
			b = append(b, byte(v), byte(v>>8))
		}
	}
	semi := p.format == framepool.NV12 || p.format == framepool.P010
	for c, rows := range p.codes {
		for y, row := range rows {
			for x, v := range row {
				switch {
				case !semi || c == 0:
					put(v)
				case c == 1:
					put(v)
					put(p.codes[2][y][x])
				}
			}
		}
	}
	return b
}

// TestCPUAgreesWithSwscale converts slow waves of all colours, which taps more than
// two do not change much, so that a wrong matrix, range or chroma site stands out:
// chroma half a luma sample elsewhere is off by 4. The flags are libswscale's
// accurate ones; bilinear would move 4:2:0 chroma half a row.
func TestCPUAgreesWithSwscale(t *testing.T) {
	const w, h = 128, 96
	for _, format := range formats {
		for rn, rg := range ranges {
			for mn, mx := range matrices {
				if rg == framepool.RangeFull && mx != framepool.MatrixBT601 {
					continue // each run starts a process; the matrices are tried in limited range
				}
				t.Run(fmt.Sprintf("%s/%s/%s", format, rn, mn), func(t *testing.T) {
					p := blank(format, w, h)
					unit := float64(int(1) << (depth(format) - 8))
					for c, rows := range p.codes {
						for y, row := range rows {
							for x := range row {
								px, py := float64(x)/float64(len(row)), float64(y)/float64(len(rows))
								wave := math.Sin(2*math.Pi*(px+float64(c)*0.3)) * math.Cos(2*math.Pi*(py+float64(c)*0.2))
								row[x] = int(math.Round((128 + [3]float64{70, 45, 45}[c]*wave) * unit))
							}
						}
					}
					swsRange := map[framepool.Range]string{framepool.RangeLimited: "tv", framepool.RangeFull: "pc"}[rg]
					sent := p
					if p.codes[1] == nil { // libswscale takes every grey picture as full range
						sent = blank(map[int]framepool.PixelFormat{8: framepool.I444, 10: framepool.I444P10}[depth(format)], w, h)
						sent.codes[0] = p.codes[0]
						sent.set(1, int(128*unit))
						sent.set(2, int(128*unit))
					}
					want := ffmpeg(t, bytes.NewReader(sent.raw()),
						"-f", "rawvideo", "-pix_fmt", sent.format.String(), "-s", fmt.Sprintf("%dx%d", w, h), "-i", "-",
						"-vf", fmt.Sprintf("scale=in_color_matrix=%s:in_range=%s:flags=accurate_rnd+full_chroma_int+full_chroma_inp+bicubic", mn, swsRange),
						"-pix_fmt", "rgb24", "-f", "rawvideo", "-")
					spec := infer.InputSpec{Width: w, Height: h, Std: [3]float32{1, 1, 1}}
					got, _ := run(t, spec, p.frame(t, rg, mx))
					sum, most := 0.0, 0.0
					for i, v := range want {
						d := math.Abs(got[i%3][i/3] - float64(v))
						sum, most = sum+d, max(most, d)
					}
					if mean := sum / float64(len(want)); len(want) != 3*w*h || mean > 0.75 || most > 2.5 {
						t.Errorf("%d samples differ by %.2f on average and %.2f at most", len(want), mean, most)
					}
				})
			}
		}
	}
}

// TestCPUAgreesWithTheReferencePath takes a frame of the clip the way that the
// models' reference boxes were made: libswscale's fast conversion to BGR (which
// alone is 1.6 off on average), then a two-tap resize of the picture's bytes.
func TestCPUAgreesWithTheReferencePath(t *testing.T) {
	const w, h = 768, 576
	source := []string{"-i", "../internal/sim/pets-s2l1-20s.mp4", "-vf", `select=eq(n\,100)`, "-frames:v", "1", "-f", "rawvideo", "-sws_flags", "bicubic", "-pix_fmt"}
	yuv := ffmpeg(t, nil, append(source, "yuv420p", "-")...)
	bgr := ffmpeg(t, nil, append(source, "bgr24", "-")...)
	if len(yuv) != w*h*3/2 || len(bgr) != w*h*3 {
		t.Fatalf("got %d and %d bytes", len(yuv), len(bgr))
	}
	f := framepool.NewHeapFrame(framepool.Meta{
		Format: framepool.I420, Width: w, Height: h, Stride: [3]int{w, w / 2, w / 2},
	}, [][]byte{yuv[:w*h], yuv[w*h : w*h*5/4], yuv[w*h*5/4:]})
	defer f.Release()
	got, tr := run(t, nanodet, f)
	nw, nh := int(tr.Width), int(tr.Height)
	sum, most := 0.0, 0.0
	for y := range nh {
		for x := range nw {
			for c := range 3 {
				sx, sy := (float64(x)+0.5)*w/float64(nw)-0.5, (float64(y)+0.5)*h/float64(nh)-0.5
				x0, y0 := math.Floor(sx), math.Floor(sy)
				at := func(ix, iy float64) float64 {
					ix, iy = min(max(ix, 0), w-1), min(max(iy, 0), h-1)
					return float64(bgr[(int(iy)*w+int(ix))*3+c])
				}
				fx, fy := sx-x0, sy-y0
				want := (at(x0, y0)*(1-fx)+at(x0+1, y0)*fx)*(1-fy) + (at(x0, y0+1)*(1-fx)+at(x0+1, y0+1)*fx)*fy
				d := math.Abs(got[c][(int(tr.PadY)+y)*416+int(tr.PadX)+x] - want)
				sum, most = sum+d, max(most, d)
			}
		}
	}
	mean := sum / float64(3*nw*nh)
	if mean > 1.5 || most > 60 {
		t.Errorf("differs by %.3f on average and %.1f at most, want no more than 1.5 and 60", mean, most)
	}
}
