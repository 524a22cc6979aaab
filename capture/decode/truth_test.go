//go:build cgo

package decode_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"slices"
	"strings"
	"testing"

	"edgecam/capture/decode"
	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/internal/testkit"
	"edgecam/overlay"
	"edgecam/preprocess"
)

// chart is a picture whose colours are known: a white line of one sample around
// it, bars above, a grey ramp below, on black.
type chart struct {
	width, height int
	grey          bool
}

// margin keeps the bars from the white line, and their edges on even samples.
const margin = 8

var bars = [][3]float64{
	{255, 255, 255},
	{255, 255, 0},
	{0, 255, 255},
	{0, 255, 0},
	{255, 0, 255},
	{255, 0, 0},
	{0, 0, 255},
	{0, 0, 0},
	{128, 128, 128},
	{191, 64, 32},
	{16, 120, 200},
	{235, 240, 230},
}

// bar gives the bar that column x is in, and whether it is far from its edges.
func (c chart) bar(x int) (i int, inside bool) {
	wide := (c.width - 2*margin) / len(bars) / 8 * 8
	i = (x - margin) / wide
	return i, x >= margin && i < len(bars) && (x-margin)%wide >= 8 && (x-margin)%wide < wide-8
}

// at is the colour of a sample, RGB of 0 to 255.
func (c chart) at(x, y int) [3]float64 {
	v := func(g float64) [3]float64 { return [3]float64{g, g, g} }
	switch {
	case x == 0 || y == 0 || x == c.width-1 || y == c.height-1:
		return v(255)
	case x < margin || y < margin || x >= c.width-margin || y >= c.height-margin || c.width < 200:
		return v(0)
	case y >= c.height/2/8*8:
		return v(math.Round(float64(x-margin) * 255 / float64(c.width-2*margin-1)))
	}
	i, _ := c.bar(x)
	if x < margin || i >= len(bars) {
		return v(0)
	}
	if b := bars[i]; c.grey {
		return v(math.Round(0.299*b[0] + 0.587*b[1] + 0.114*b[2]))
	}
	return bars[i]
}

// known says where colours are exact in spite of shared chroma and the JPEG's
// blocks: inside bars, and in the ramp.
func (c chart) known(x, y int) bool {
	if c.width < 200 || y < 2*margin || y >= c.height-2*margin {
		return false
	}
	half := c.height / 2 / 8 * 8
	if y >= half {
		return y >= half+16 && x >= 2*margin && x < c.width-2*margin
	}
	_, inside := c.bar(x)
	return inside && y < half-16
}

// coding is how a stream stores colours.
type coding struct {
	format string // FFmpeg's
	full   bool
	kr, kb float64
}

func (k coding) depth() int {
	if strings.Contains(k.format, "10") {
		return 10
	}
	return 8
}

// shift is by how much chroma is smaller.
func (k coding) shift() (x, y int) {
	switch {
	case strings.Contains(k.format, "420"):
		return 1, 1
	case strings.Contains(k.format, "422"):
		return 1, 0
	}
	return 0, 0
}

// codes are Y, Cb and Cr of a colour, by Rec. ITU-T H.273 8.3.
func (k coding) codes(c [3]float64) (out [3]float64) {
	y := k.kr*c[0] + (1-k.kr-k.kb)*c[1] + k.kb*c[2]
	cb, cr := (c[2]-y)/(2*(1-k.kb)), (c[0]-y)/(2*(1-k.kr))
	unit := float64(int(1) << (k.depth() - 8))
	if k.full {
		peak := (256*unit - 1) / 255
		return [3]float64{y * peak, cb*peak + 128*unit, cr*peak + 128*unit}
	}
	return [3]float64{(y*219/255 + 16) * unit, (cb*224/255 + 128) * unit, (cr*224/255 + 128) * unit}
}

// raw is the chart as rawvideo. Chroma is the mean of the samples that share it.
func (k coding) raw(c chart) []byte {
	var b []byte
	put := func(v float64) {
		n := int(math.Round(min(max(v, 0), float64(int(1)<<k.depth()-1))))
		b = append(b, byte(n))
		if k.depth() > 8 {
			b = append(b, byte(n>>8))
		}
	}
	for y := range c.height {
		for x := range c.width {
			put(k.codes(c.at(x, y))[0])
		}
	}
	if k.format[0] == 'g' {
		return b
	}
	sx, sy := k.shift()
	for i := 1; i < 3; i++ {
		for y := 0; y < c.height; y += 1 << sy {
			for x := 0; x < c.width; x += 1 << sx {
				sum := 0.0
				for dy := range 1 << sy {
					for dx := range 1 << sx {
						sum += k.codes(c.at(min(x+dx, c.width-1), min(y+dy, c.height-1)))[i]
					}
				}
				put(sum / float64(int(1)<<(sx+sy)))
			}
		}
	}
	return b
}

// encode makes a stream of the chart without any loss but the coding's own.
func (k coding) encode(t *testing.T, codec string, c chart, args ...string) testkit.Clip {
	t.Helper()
	const frames = 4
	raw := testkit.File(t, "chart.raw", bytes.Repeat(k.raw(c), frames))
	matrix, rg := "smpte170m", "tv"
	if k.kr == bt709.kr {
		matrix = "bt709"
	}
	if k.full {
		rg = "pc"
	}
	tags := []string{"-colorspace", matrix, "-color_range", rg}
	all := slices.Concat([]string{
		"-f", "rawvideo", "-pix_fmt", k.format, "-video_size", fmt.Sprintf("%dx%d", c.width, c.height), "-framerate", "10",
	}, tags, []string{"-i", raw, "-pix_fmt", k.format}, tags)
	switch codec {
	case "h264":
		all = append(all, "-c:v", "libx264", "-preset", "ultrafast", "-qp", "0", "-bf", "0", "-bsf:v", "h264_metadata=aud=insert")
	case "hevc":
		all = append(all, "-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:aud=1:lossless=1:bframes=0")
	case "mjpeg":
		all = append(all, "-c:v", "mjpeg", "-q:v", "1", "-qmin", "1", "-huffman", "default", "-f", "mjpeg")
	}
	return testkit.LoadClip(t, codec, testkit.FFmpegFile(t, "chart."+codec, append(all, args...)...), "")
}

var (
	bt601 = coding{kr: 0.299, kb: 0.114}
	bt709 = coding{kr: 0.2126, kb: 0.0722}
)

func (k coding) as(format string, full bool) coding {
	k.format, k.full = format, full
	return k
}

// tensorOf is the frame as an engine of its own size gets it: values of 0 to 255.
func tensorOf(t testing.TB, f *framepool.Frame) [3][]float32 {
	t.Helper()
	m := f.Meta()
	spec := infer.InputSpec{Width: m.Width, Height: m.Height, Std: [3]float32{1, 1, 1}}
	dst := make([]float32, 3*m.Width*m.Height)
	tr, err := preprocess.NewCPU(spec).Run(f, dst)
	if err != nil {
		t.Fatal(err)
	}
	if int(tr.Width) != m.Width || int(tr.Height) != m.Height {
		t.Errorf("the picture lies in the tensor as %+v", tr)
	}
	n := m.Width * m.Height
	return [3][]float32{dst[:n], dst[n : 2*n], dst[2*n:]}
}

// snapshot is the JPEG that a viewer gets, at the given quality.
func snapshot(t testing.TB, f *framepool.Frame, quality int) image.Image {
	t.Helper()
	r, err := overlay.NewRenderer(overlay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Render(f, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	e, err := library(t).NewJPEGEncoder(c.Width, c.Height, quality)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := e.Encode(nil, c.Y, c.Cb, c.Cr, [3]int{c.StrideY, c.StrideC, c.StrideC})
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

const pixelTolerance = 2 // of 255

// checkChart compares what engine and viewer get with the chart. A white line of
// one sample beside black is more than a JPEG holds without loss: there the
// viewer's may be lossy, and the engine's where the camera itself sends JPEG.
func checkChart(t *testing.T, c chart, f *framepool.Frame, lossy bool) {
	t.Helper()
	tensor, shot := tensorOf(t, f), snapshot(t, f, 100)
	if b := shot.Bounds(); b.Dx() != c.width || b.Dy() != c.height {
		t.Errorf("the snapshot is %v", b)
	}
	var worst [2]float64
	var where [2]string
	n := 0
	for y := range c.height {
		for x := range c.width {
			border := x == 0 || y == 0 || x == c.width-1 || y == c.height-1
			if !border && !c.known(x, y) {
				continue
			}
			n++
			want := c.at(x, y)
			r, g, b, _ := shot.At(x, y).RGBA()
			for i, got := range [3]float64{float64(r >> 8), float64(g >> 8), float64(b >> 8)} {
				for k, d := range [2]float64{math.Abs(float64(tensor[i][y*c.width+x]) - want[i]), math.Abs(got - want[i])} {
					if border && (k == 1 || lossy) {
						d = max(d-16, 0)
					}
					if d > worst[k] {
						worst[k], where[k] = d, fmt.Sprintf("%d,%d colour %d: want %v", x, y, i, want[i])
					}
				}
			}
		}
	}
	t.Logf("%d samples, most off: tensor %.2f (%s), snapshot %.2f (%s)", n, worst[0], where[0], worst[1], where[1])
	if n < 2*(c.width+c.height)-4 || worst[0] > pixelTolerance || worst[1] > pixelTolerance {
		t.Errorf("tensor is off by %.2f at %s, snapshot by %.2f at %s", worst[0], where[0], worst[1], where[1])
	}
}

// TestPixelTruth takes charts of known colours the whole way: through an RTSP
// session, the decoder and the pool to the engine's tensor and the viewer's JPEG.
func TestPixelTruth(t *testing.T) {
	for _, c := range []struct {
		codec string
		coding
	}{
		{"h264", bt601.as("yuv420p", false)},
		{"h264", bt709.as("yuv420p", false)},
		{"h264", bt601.as("yuvj420p", true)},
		{"h264", bt709.as("yuvj420p", true)},
		{"h264", bt601.as("yuv422p", false)},
		{"h264", bt709.as("yuvj422p", true)},
		{"h264", bt709.as("yuv444p", false)},
		{"h264", bt601.as("yuvj444p", true)},
		{"h264", bt601.as("gray", true)},
		{"h264", bt709.as("yuv420p10le", false)},
		{"h264", bt709.as("yuv420p10le", true)},
		{"h264", bt601.as("yuv422p10le", false)},
		{"hevc", bt601.as("yuv420p", false)},
		{"hevc", bt709.as("yuvj420p", true)},
		{"hevc", bt709.as("yuv420p10le", false)},
		{"hevc", bt601.as("yuv420p10le", true)},
		{"hevc", bt601.as("gray", true)},
		{"mjpeg", bt601.as("yuvj420p", true)},
	} {
		t.Run(fmt.Sprintf("%s %s kr=%v full=%v", c.codec, c.format, c.kr, c.full), func(t *testing.T) {
			ch := chart{width: 640, height: 360, grey: c.format[0] == 'g'}
			clip := c.encode(t, c.codec, ch)
			w := watch(t, startCamera(t, filmOf(t, clip, nil)), decode.Options{})
			f := w.next(t)
			defer f.Release()
			checkChart(t, ch, f, c.codec == "mjpeg")
			if m := f.Meta(); (m.Range == framepool.RangeFull) != c.full {
				t.Errorf("frame is %+v", m)
			}
		})
	}
	// Kinds of JPEG that RTP has no type for, as files.
	for _, format := range []string{"yuvj422p", "yuvj444p"} {
		t.Run("mjpeg "+format, func(t *testing.T) {
			ch := chart{width: 640, height: 360}
			clip := bt601.as(format, true).encode(t, "mjpeg", ch)
			d := forClip(t, clip, decode.Options{})
			s := &sink{t: t, keep: true, discard: true}
			play(t, d, clip, s)
			checkChart(t, ch, s.frames[0], true)
			s.release()
		})
	}
}

// TestBordersAreWhole: sizes that are no multiple of what codecs work in.
func TestBordersAreWhole(t *testing.T) {
	for _, c := range []struct {
		codec, size, format string
	}{
		{codec: "h264", size: "1918x1078"},
		{codec: "hevc", size: "1918x1078"},
		{codec: "h264", size: "1026x768"},
		{codec: "h264", size: "1030x770"},
		{codec: "hevc", size: "1030x770"},
		{codec: "mjpeg", size: "1030x770", format: "yuvj420p"},
		{codec: "h264", size: "16x16"},
		{codec: "hevc", size: "16x16"},
		{codec: "h264", size: "634x366"},
		{codec: "hevc", size: "634x366"},
	} {
		t.Run(c.codec+" "+c.size, func(t *testing.T) {
			w, h := sides(t, c.size)
			ch := chart{width: w, height: h}
			k := bt709.as("yuv420p", false)
			if c.format != "" {
				k = bt601.as(c.format, true)
			}
			var args []string
			if c.codec == "hevc" && w == 16 {
				args = []string{"-x265-params", "log-level=none:aud=1:lossless=1:bframes=0:ctu=16:min-cu-size=8"}
			}
			clip := k.encode(t, c.codec, ch, args...)
			d := forClip(t, clip, decode.Options{})
			s := &sink{t: t, keep: true, discard: true}
			play(t, d, clip, s)
			if m := s.metas[0]; m.Width != w || m.Height != h {
				t.Fatalf("frame is %dx%d", m.Width, m.Height)
			}
			checkChart(t, ch, s.frames[0], c.codec == "mjpeg")
			checkLetterbox(t, s.frames[0])
			s.release()
		})
	}
}

// checkLetterbox: the engine's input holds the picture as it is seen, not as it
// is coded.
func checkLetterbox(t *testing.T, f *framepool.Frame) {
	t.Helper()
	const side = 416
	m := f.Meta()
	tr, err := preprocess.NewCPU(infer.InputSpec{Width: side, Height: side, Std: [3]float32{1, 1, 1}}).Run(f, make([]float32, 3*side*side))
	if err != nil {
		t.Fatal(err)
	}
	scale := min(side/float64(m.Width), side/float64(m.Height))
	w, h := math.RoundToEven(float64(m.Width)*scale), math.RoundToEven(float64(m.Height)*scale)
	if float64(tr.Width) != w || float64(tr.Height) != h {
		t.Errorf("%dx%d lies in the input as %+v, want %vx%v", m.Width, m.Height, tr, w, h)
	}
}

// TestCropOffset: a stream that crops at the left and at the top. The drawing has
// its white line where the crop ends.
func TestCropOffset(t *testing.T) {
	const left, top = 6, 2
	for _, codec := range []string{"h264", "hevc"} {
		t.Run(codec, func(t *testing.T) {
			whole := chart{width: 640, height: 368}
			k := bt601.as("yuv420p", false)
			filter := fmt.Sprintf("%s_metadata=aud=insert:crop_left=%d:crop_top=%d:crop_right=0:crop_bottom=0", codec, left, top)
			clip := k.encode(t, codec, whole, "-bsf:v", filter)
			w := watch(t, startCamera(t, filmOf(t, clip, nil)), decode.Options{})
			f := w.next(t)
			defer f.Release()
			if m := f.Meta(); m.Width != 634 || m.Height != 366 {
				t.Fatalf("frame is %dx%d", m.Width, m.Height)
			}
			tensor, shot := tensorOf(t, f), snapshot(t, f, 100)
			n := 0
			for y := range 366 {
				for x := range 634 {
					// The JPEG's blocks lie elsewhere in the drawing.
					if !whole.known(x+left-8, y+top-8) || !whole.known(x+left+8, y+top+8) {
						continue
					}
					n++
					want := whole.at(x+left, y+top)
					r, g, b, _ := shot.At(x, y).RGBA()
					for i, got := range [3]float64{float64(r >> 8), float64(g >> 8), float64(b >> 8)} {
						if math.Abs(float64(tensor[i][y*634+x])-want[i]) > pixelTolerance || math.Abs(got-want[i]) > pixelTolerance+1 {
							t.Fatalf("%d,%d: tensor %v, snapshot %v, want %v", x, y, tensor[i][y*634+x], got, want[i])
						}
					}
				}
			}
			if n < 10000 {
				t.Errorf("%d samples compared", n)
			}
			if c := shot.At(0, 100); whole.at(0, 100) == [3]float64{255, 255, 255} && color.GrayModel.Convert(c).(color.Gray).Y > 32 {
				t.Error("what is cropped off at the left shows")
			}
		})
	}
}
