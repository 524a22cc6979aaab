package preprocess_test

import (
	"fmt"
	"math"
	"testing"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/preprocess"
)

var (
	ranges   = map[string]framepool.Range{"limited": framepool.RangeLimited, "full": framepool.RangeFull}
	matrices = map[string]framepool.Matrix{
		"bt601": framepool.MatrixBT601, "bt709": framepool.MatrixBT709, "bt2020": framepool.MatrixBT2020,
	}
)

// small is an input that is neither square nor even, so that rows and columns
// cannot be taken for each other.
var small = infer.InputSpec{
	Width: 45, Height: 32, Order: infer.RGB,
	Mean: [3]float32{100, 110, 120}, Std: [3]float32{50, 60, 70}, Pad: 114,
}

// tolerance of one value, of 255. A twin may be off by 1; the fixed-point arithmetic
// is by less than 0.2, most of it from positions of 1/2048 of a sample.
const tolerance = 0.3

func TestCPUFollowsTheReference(t *testing.T) {
	sizes := [][2]int{{64, 48}, {61, 37}, {33, 90}, {20, 11}, {1, 1}, {2, 1}, {1, 40}, {3, 200}, {200, 3}}
	for _, format := range formats {
		for rn, rg := range ranges {
			for mn, mx := range matrices {
				t.Run(fmt.Sprintf("%s/%s/%s", format, rn, mn), func(t *testing.T) {
					for i, s := range sizes {
						p := newPicture(format, s[0], s[1], uint64(i))
						f := p.frame(t, rg, mx)
						for _, align := range []infer.Align{infer.Center, infer.TopLeft} {
							for _, order := range []infer.ColorOrder{infer.RGB, infer.BGR} {
								spec := small
								spec.Align, spec.Order = align, order
								got, _ := run(t, spec, f)
								want := p.tensor(spec, rg, mx)
								if d, c, at := worst(got, want); d > tolerance {
									t.Errorf("%v align %d order %d: channel %d sample %d: got %.3f, want %.3f",
										s, align, order, c, at, got[c][at], want[c][at])
								}
							}
						}
					}
				})
			}
		}
	}
}

func TestCPUOnTheBuiltInModelsInput(t *testing.T) {
	for _, s := range [][2]int{{768, 576}, {1918, 1078}, {360, 640}, {3775, 1571}} {
		t.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(t *testing.T) {
			p := newPicture(framepool.I420, s[0], s[1], 3)
			got, _ := run(t, nanodet, p.frame(t, framepool.RangeLimited, framepool.MatrixBT709))
			want := p.tensor(nanodet, framepool.RangeLimited, framepool.MatrixBT709)
			if d, c, at := worst(got, want); d > tolerance {
				t.Errorf("channel %d sample %d: got %.3f, want %.3f", c, at, got[c][at], want[c][at])
			}
		})
	}
}

// Codes of colours by their standards, 8 bit limited, as the colour bars of
// test generators have them; the last values are the full-range 10-bit ends.
func TestCPUKnownColours(t *testing.T) {
	cases := []struct {
		name   string
		format framepool.PixelFormat
		r      framepool.Range
		m      framepool.Matrix
		codes  [3]int
		want   [3]float64
	}{
		{"red 601", framepool.I420, framepool.RangeLimited, framepool.MatrixBT601, [3]int{81, 90, 240}, [3]float64{255, 0, 0}},
		{"green 601", framepool.I420, framepool.RangeLimited, framepool.MatrixBT601, [3]int{145, 54, 34}, [3]float64{0, 255, 0}},
		{"blue 601", framepool.NV12, framepool.RangeLimited, framepool.MatrixBT601, [3]int{41, 240, 110}, [3]float64{0, 0, 255}},
		{"red 709", framepool.NV12, framepool.RangeLimited, framepool.MatrixBT709, [3]int{63, 102, 240}, [3]float64{255, 0, 0}},
		{"green 709", framepool.I422, framepool.RangeLimited, framepool.MatrixBT709, [3]int{173, 42, 26}, [3]float64{0, 255, 0}},
		{"blue 709", framepool.I444, framepool.RangeLimited, framepool.MatrixBT709, [3]int{32, 240, 118}, [3]float64{0, 0, 255}},
		{"red 2020, 10 bit", framepool.P010, framepool.RangeLimited, framepool.MatrixBT2020, [3]int{294, 387, 960}, [3]float64{255, 0, 0}},
		{"blue 2020, 10 bit", framepool.I420P10, framepool.RangeLimited, framepool.MatrixBT2020, [3]int{116, 960, 476}, [3]float64{0, 0, 255}},
		{"red JFIF", framepool.I420, framepool.RangeFull, framepool.MatrixBT601, [3]int{76, 85, 255}, [3]float64{255, 0, 0}},
		{"white, 10 bit", framepool.I422P10, framepool.RangeLimited, framepool.MatrixBT709, [3]int{940, 512, 512}, [3]float64{255, 255, 255}},
		{"black, 10 bit full", framepool.I444P10, framepool.RangeFull, framepool.MatrixBT709, [3]int{0, 512, 512}, [3]float64{0, 0, 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := blank(c.format, 24, 14)
			for i, code := range c.codes {
				p.set(i, code)
			}
			for order, channels := range map[infer.ColorOrder][3]int{infer.RGB: {0, 1, 2}, infer.BGR: {2, 1, 0}} {
				spec := small
				spec.Order = order
				got, tr := run(t, spec, p.frame(t, c.r, c.m))
				at := (int(tr.PadY)+5)*spec.Width + int(tr.PadX) + 5
				for i, ch := range channels {
					if v := got[ch][at]; math.Abs(v-c.want[i]) > 2 {
						t.Errorf("order %d: colour %d is %.2f, want %.0f ± 2", order, i, v, c.want[i])
					}
				}
			}
		})
	}
}

// A grey ramp from black to white gives 0.00 to 1.00 in both ranges, and what
// lies outside of the limited range is clamped, not wrapped.
func TestCPUGreyRamp(t *testing.T) {
	spec := infer.InputSpec{Width: 256, Height: 8, Std: [3]float32{255, 255, 255}}
	for _, format := range formats {
		for name, r := range ranges {
			t.Run(format.String()+"/"+name, func(t *testing.T) {
				p := blank(format, 256, 8)
				unit := 1 << (depth(format) - 8)
				black, span := 16*unit, 219*unit
				if r == framepool.RangeFull {
					black, span = 0, 256*unit-1
				}
				for _, row := range p.codes[0] {
					for x := range row {
						row[x] = black + (span*x+127)/255
					}
				}
				p.codes[0][0][0] = 0
				p.codes[0][0][255] = 256*unit - 1
				p.set(1, 128*unit)
				p.set(2, 128*unit)
				got := make([]float32, 3*256*8)
				if _, err := preprocess.NewCPU(spec).Run(p.frame(t, r, framepool.MatrixBT709), got); err != nil {
					t.Fatal(err)
				}
				for i, v := range got {
					if want := float64(i%256) / 255; math.Abs(float64(v)-want) > 2.0/255 {
						t.Fatalf("sample %d is %.4f, want %.4f ± 2/255", i, v, want)
					}
				}
			})
		}
	}
}

// Bits outside of a 10-bit code, which a broken stream may leave, change nothing:
// not the sample and not its neighbours in the sums.
func TestCPUIgnoresStrayBits(t *testing.T) {
	for _, format := range []framepool.PixelFormat{framepool.I420P10, framepool.Gray10, framepool.I444P10, framepool.P010} {
		t.Run(format.String(), func(t *testing.T) {
			f := newPicture(format, 50, 20, 3).frame(t, framepool.RangeLimited, framepool.MatrixBT709)
			want, _ := run(t, small, f)
			for i := range format.Planes() {
				plane := f.Plane(i)
				for at := 0; at+1 < len(plane); at += 2 {
					if format == framepool.P010 {
						plane[at] |= byte(at/2) & 0x3f
					} else {
						plane[at+1] |= byte(at/2) << 2
					}
				}
			}
			got, _ := run(t, small, f)
			if d, c, at := worst(got, want); d != 0 {
				t.Errorf("channel %d sample %d: got %.3f, want %.3f", c, at, got[c][at], want[c][at])
			}
		})
	}
}

// Whole tensors are the same to the bit with the processor's vectors and without,
// for rows of every remainder.
func TestCPUVectorsChangeNoBit(t *testing.T) {
	for _, format := range formats {
		t.Run(format.String(), func(t *testing.T) {
			for i := range 24 {
				spec := small
				spec.Width, spec.Height = 30+i, 25+i%3
				if i%2 == 1 {
					spec.Order = infer.BGR
				}
				f := newPicture(format, 20+7*i, 40, uint64(i)).frame(t, framepool.RangeLimited, framepool.MatrixBT709)
				vectors, twins := preprocess.NewCPU(spec), preprocess.NewCPU(spec)
				twins.UseTwins()
				got, want := make([]float32, 3*spec.Width*spec.Height), make([]float32, 3*spec.Width*spec.Height)
				for cpu, dst := range map[*preprocess.CPU][]float32{vectors: got, twins: want} {
					if _, err := cpu.Run(f, dst); err != nil {
						t.Fatal(err)
					}
				}
				for at := range got {
					if math.Float32bits(got[at]) != math.Float32bits(want[at]) {
						t.Fatalf("%dx%d, value %d is %v, want %v", spec.Width, spec.Height, at, got[at], want[at])
					}
				}
			}
		})
	}
}

func TestCPUAllocatesNothingOnceWarm(t *testing.T) {
	cpu := preprocess.NewCPU(small)
	dst := make([]float32, 3*small.Width*small.Height)
	var frames []*framepool.Frame
	for i, format := range formats { // more cameras than one, and changing
		frames = append(frames, newPicture(format, 40+i, 30, 1).frame(t, framepool.RangeLimited, framepool.MatrixBT601))
	}
	round := func() {
		for _, f := range frames {
			if _, err := cpu.Run(f, dst); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations in %d warm runs, want 0", n, len(frames))
	}
}

// More geometries than a CPU keeps, twice around: each is right, also after its
// tables were thrown away.
func TestCPUManyGeometries(t *testing.T) {
	spec := small
	spec.Width, spec.Height = 16, 12
	cpu := preprocess.NewCPU(spec)
	dst := make([]float32, 3*16*12)
	for range 2 {
		for i := range 80 {
			p := blank(framepool.Gray8, 1+i, 9)
			p.set(0, i)
			f := p.frame(t, framepool.RangeFull, framepool.MatrixBT601)
			tr, err := cpu.Run(f, dst)
			if err != nil {
				t.Fatal(err)
			}
			if want := preprocess.NewTransform(1+i, 9, spec); tr != want {
				t.Fatalf("width %d: transform %+v, want %+v", 1+i, tr, want)
			}
			v := dst[int(tr.PadY)*16+int(tr.PadX)]*spec.Std[0] + spec.Mean[0]
			if math.Abs(float64(v)-float64(i)) > 0.01 {
				t.Fatalf("width %d: value %.2f, want %d", 1+i, v, i)
			}
		}
	}
}

func TestCPURefuses(t *testing.T) {
	good := framepool.Meta{
		Camera: "gate", Seq: 7, Format: framepool.I420, Width: 8, Height: 4, Stride: [3]int{64, 64, 64},
	}
	empty := good
	empty.Width = 0
	cases := []struct {
		name   string
		meta   framepool.Meta
		spec   infer.InputSpec
		values int
		want   string
	}{
		{
			"tensor of another size", good, small, 100,
			"preprocess picture 7 of camera gate: tensor holds 100 values, want 4320",
		},
		{
			"input without size", good,
			infer.InputSpec{Height: 4},
			0,
			"preprocess picture 7 of camera gate: input of 0x4 has no room for a picture",
		},
		{
			"empty picture", empty, small, 4320,
			"preprocess picture 7 of camera gate: picture of 0x4 is empty",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := framepool.NewHeapFrame(c.meta, [][]byte{make([]byte, 256), make([]byte, 128), make([]byte, 128)})
			defer f.Release()
			_, err := preprocess.NewCPU(c.spec).Run(f, make([]float32, c.values))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}
