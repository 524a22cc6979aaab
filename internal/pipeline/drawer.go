package pipeline

import (
	"context"
	"fmt"

	"edgecam/framepool"
	"edgecam/overlay"
	"edgecam/platform/avcodec"
	"edgecam/web"
)

// Viewers get pictures of at most this width: a dashboard tile or a phone shows
// no more, and drawing and encoding cost by the pixel.
const viewerWidth = 1280

// jpegQuality keeps a 1280-wide street scene near 150 kB.
const jpegQuality = 82

// drawer turns frames into JPEG files, re-making its encoder when the size of
// the picture changes.
type drawer struct {
	ctx           context.Context //nolint:containedctx // of the feed's goroutine, whose life the drawer shares
	codecs        *avcodec.Library
	copied        hostPicture // of a frame in the card's memory
	renderer      *overlay.Renderer
	encoder       *avcodec.JPEGEncoder
	width, height int
	items         []overlay.Item
}

// draw borrows p's frame.
func (d *drawer) draw(p picture, annotate bool) (web.Picture, error) {
	m := p.frame.Meta()
	c, err := d.render(p, annotate)
	if err != nil {
		return web.Picture{}, err
	}
	if err := d.fit(c.Width, c.Height); err != nil {
		return web.Picture{}, err
	}
	// The file is shared by the viewers and outlives this call: it is the one
	// allocation of the drawing.
	jpeg, err := d.encoder.Encode(nil, c.Y, c.Cb, c.Cr, [3]int{c.StrideY, c.StrideC, c.StrideC})
	if err != nil {
		return web.Picture{}, err
	}
	return web.Picture{Camera: m.Camera, Seq: m.Seq, CapturedAt: m.CapturedAt, Width: c.Width, Height: c.Height, JPEG: jpeg}, nil
}

func (d *drawer) render(p picture, annotate bool) (overlay.Canvas, error) {
	if d.renderer == nil {
		r, err := overlay.NewRenderer(overlay.Options{MaxWidth: viewerWidth})
		if err != nil {
			return overlay.Canvas{}, fmt.Errorf("open renderer: %w", err)
		}
		d.renderer = r
	}
	d.items = d.items[:0]
	for _, o := range p.objects {
		d.items = append(d.items, overlay.Item{Label: o.Label, Track: o.Track, Score: o.Score, Box: o.Box})
	}
	f, err := d.within(p)
	if err != nil {
		return overlay.Canvas{}, err
	}
	defer f.Release()
	return d.renderer.Render(f, d.items, annotate)
}

// within gives a frame that the processor reads: p's own, or a small copy of one
// in the card's memory. It borrows p's; the caller releases what it returns.
func (d *drawer) within(p picture) (*framepool.Frame, error) {
	if p.frame.Memory() != framepool.MemoryDevice || p.gpu == nil {
		return p.frame.Retain(), nil
	}
	return p.gpu.picture(d.ctx, p.frame, &d.copied)
}

// fit makes an encoder for pictures of a size.
func (d *drawer) fit(width, height int) error {
	if d.encoder != nil && d.width == width && d.height == height {
		return nil
	}
	d.close()
	e, err := d.codecs.NewJPEGEncoder(width, height, jpegQuality)
	if err != nil {
		return err
	}
	d.encoder, d.width, d.height = e, width, height
	return nil
}

func (d *drawer) close() {
	if d.encoder != nil {
		d.encoder.Close()
		d.encoder = nil
	}
}
