package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // pictures that --image takes
	"image/png"
	"os"

	"edgecam/framepool"
	"edgecam/infer"
	"edgecam/infer/ort"
	"edgecam/overlay"
	"edgecam/preprocess"
)

// mostPixels bounds the pictures that --image takes: those of cameras have up to 60
// million, and a pixel takes up to 12 bytes on the way.
const mostPixels = 64e6

// show finds objects in the picture and draws them.
func (o *inspectOptions) show(ctx context.Context, engine *ort.Engine, r *inspection) error {
	if o.camera != "" {
		return withCameraPicture(ctx, o.config, o.camera, func(f *framepool.Frame) error {
			return o.showFrame(engine, r, f, "camera "+o.camera)
		})
	}
	frame, err := openPicture(o.image)
	if err != nil {
		return fmt.Errorf("open picture %s: %w", o.image, err)
	}
	defer frame.Release()
	return o.showFrame(engine, r, frame, o.image)
}

// showFrame borrows frame.
func (o *inspectOptions) showFrame(engine *ort.Engine, r *inspection, frame *framepool.Frame, from string) error {
	dets, err := o.detect(engine, frame)
	if err != nil {
		return fmt.Errorf("run the model on %s: %w", from, err)
	}
	r.Detections = make([]found, 0, len(dets))
	items := make([]overlay.Item, 0, len(dets))
	for _, d := range dets {
		f := found{Label: r.Spec.Labels[d.Class], Score: d.Score, Box: [4]float32{d.X1, d.Y1, d.X2, d.Y2}}
		r.Detections = append(r.Detections, f)
		items = append(items, overlay.Item{Label: f.Label, Score: f.Score, Box: f.Box})
	}
	if err := drawPicture(o.out, frame, items); err != nil {
		return fmt.Errorf("draw into %s: %w", o.out, err)
	}
	r.Image = o.out
	return nil
}

// detect runs the picture through the stages that a camera's pictures go through.
func (o *inspectOptions) detect(engine *ort.Engine, frame *framepool.Frame) ([]infer.Detection, error) {
	slot, err := engine.Acquire(context.Background())
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	at, err := preprocess.NewCPU(engine.Info().Input).Run(frame, slot.Input(0))
	if err != nil {
		return nil, err
	}
	out := make([][]infer.Detection, 1)
	if err := slot.Run(1, func(int) float32 { return o.threshold }, out); err != nil {
		return nil, err
	}
	for i := range out[0] {
		out[0][i] = at.Inverse(out[0][i])
	}
	return out[0], nil
}

// openPicture reads a picture into a frame.
func openPicture(path string) (*framepool.Frame, error) {
	// Opening a pipe would wait for who writes to it.
	if info, err := os.Stat(path); err != nil {
		return nil, withoutPath(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	header, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, pictureError(err)
	}
	if header.Width < 1 || header.Height < 1 || float64(header.Width)*float64(header.Height) > mostPixels {
		return nil, fmt.Errorf("it has %dx%d pixels, wanted at most %.0f million", header.Width, header.Height, mostPixels/1e6)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, withoutPath(err)
	}
	img, _, err := image.Decode(f)
	if err != nil {
		return nil, err
	}
	return frameOf(img), nil
}

// pictureError says what is wanted where it is no picture that is known.
func pictureError(err error) error {
	if errors.Is(err, image.ErrFormat) {
		return errors.New("it is neither a JPEG nor a PNG")
	}
	return err
}

func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// frameOf copies a picture into a frame of the same kind as cameras give.
func frameOf(img image.Image) *framepool.Frame {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	planes := [][]byte{make([]byte, w*h), make([]byte, w*h), make([]byte, w*h)}
	// By way of one kind of picture: turning round each pixel of any kind by itself takes ten times as long.
	row := image.NewRGBA(image.Rect(0, 0, w, 1))
	for y := range h {
		draw.Draw(row, row.Rect, img, image.Pt(b.Min.X, b.Min.Y+y), draw.Src)
		for x := range w {
			p, i := row.Pix[4*x:4*x+4], y*w+x
			planes[0][i], planes[1][i], planes[2][i] = color.RGBToYCbCr(p[0], p[1], p[2])
		}
	}
	m := framepool.Meta{
		Width: w, Height: h, Format: framepool.I444, Stride: [3]int{w, w, w},
		Range: framepool.RangeFull, Matrix: framepool.MatrixBT601,
	}
	return framepool.NewHeapFrame(m, planes)
}

// drawPicture writes a PNG with boxes and labels.
func drawPicture(path string, frame *framepool.Frame, items []overlay.Item) error {
	r, err := overlay.NewRenderer(overlay.Options{})
	if err != nil {
		return err
	}
	c, err := r.Render(frame, items, true)
	if err != nil {
		return err
	}
	img := &image.YCbCr{
		Y: c.Y, Cb: c.Cb, Cr: c.Cr, YStride: c.StrideY, CStride: c.StrideC,
		SubsampleRatio: image.YCbCrSubsampleRatio420, Rect: image.Rect(0, 0, c.Width, c.Height),
	}
	f, err := os.Create(path)
	if err != nil {
		return withoutPath(err)
	}
	err = png.Encode(f, img)
	return errors.Join(err, f.Close())
}
