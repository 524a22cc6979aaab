package overlay_test

import (
	"flag"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"edgecam/framepool"
	"edgecam/overlay"
)

var update = flag.Bool("update", false, "write the golden pictures anew; look at them before committing")

// yard is a picture with edges, ramps and colours, made by arithmetic alone.
func yard(c, x, y int) int {
	switch c {
	case 0:
		v := 40 + (x+2*y)%150
		if (x/16+y/16)%5 == 0 {
			v = 225
		}
		return v
	case 1:
		return 100 + x%60
	default:
		return 100 + y%60
	}
}

func TestGolden(t *testing.T) {
	crowd := []overlay.Item{
		{Label: "person", Track: 1, Score: 0.91, Box: [4]float32{0.1, 0.3, 0.22, 0.8}},
		{Label: "person", Track: 2, Score: 0.64, Box: [4]float32{0.15, 0.32, 0.28, 0.78}},
		{Label: "Müllfahrzeug", Track: 4711, Score: 0.5, Box: [4]float32{0.6, 0.02, 0.99, 0.4}},
		{Label: "велосипед", Score: 0.77, Box: [4]float32{0.45, 0.55, 0.7, 0.97}},
		{Label: "自転車", Track: 9, Box: [4]float32{0.85, 0.6, 1, 1}},
	}
	cases := []struct {
		name     string
		format   framepool.PixelFormat
		w, h     int
		r        framepool.Range
		m        framepool.Matrix
		maxWidth int
	}{
		{"i420-709", framepool.I420, 480, 270, framepool.RangeLimited, framepool.MatrixBT709, 0},
		{"nv12-shrunk", framepool.NV12, 961, 541, framepool.RangeLimited, framepool.MatrixBT601, 400},
		{"grey-small", framepool.Gray8, 150, 110, framepool.RangeFull, framepool.MatrixBT601, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newPicture(c.format, c.w, c.h, yard).frame(t, c.r, c.m)
			got := rgba(render(t, newRenderer(t, c.maxWidth), f, crowd, true))
			path := filepath.Join("testdata", c.name+".png")
			if *update {
				writePNG(t, path, got)
			}
			// The tolerance covers other roundings of the letters' edges by processors
			// that fuse multiplication and addition.
			const tolerance, strays = 4, 20
			want := readPNG(t, path)
			if got.Bounds() != want.Bounds() {
				t.Fatalf("picture is %v, want %v", got.Bounds(), want.Bounds())
			}
			off := 0
			for y := range got.Rect.Dy() {
				for x := range got.Rect.Dx() {
					if distance(got.At(x, y), want.At(x, y)) > tolerance {
						off++
					}
				}
			}
			if off > strays {
				t.Errorf("%d pixels differ from %s", off, path)
			}
		})
	}
}

func rgba(c overlay.Canvas) *image.RGBA {
	from := image.YCbCr{
		Y: c.Y, Cb: c.Cb, Cr: c.Cr, YStride: c.StrideY, CStride: c.StrideC,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rect(0, 0, c.Width, c.Height),
	}
	out := image.NewRGBA(from.Rect)
	for y := range c.Height {
		for x := range c.Width {
			out.Set(x, y, from.YCbCrAt(x, y))
		}
	}
	return out
}

func distance(a, b color.Color) int {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	d := func(p, q uint32) int { return max(int(p>>8)-int(q>>8), int(q>>8)-int(p>>8)) }
	return max(d(ar, br), d(ag, bg), d(ab, bb))
}

func writePNG(t *testing.T, path string, img image.Image) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
