package pipeline

import (
	"context"
	"errors"

	"edgecam/framepool"
	"edgecam/platform/cuda"
	"edgecam/preprocess"
)

// gpuViewers makes viewers' pictures of frames that lie in the card's memory, on
// a stream of its own beside inference. It belongs to the device's goroutine.
type gpuViewers struct {
	stream  cuda.Stream
	preview *preprocess.Preview
	buffer  preprocess.PreviewBuffer
	done    cuda.Event
}

func (v *gpuViewers) open(c *cuda.Context) (err error) {
	if v.stream, err = c.NewStream(); err != nil {
		return err
	}
	if v.done, err = c.NewEvent(false); err != nil {
		return err
	}
	v.preview, err = preprocess.NewPreview(c, preprocess.PreviewOptions{MaxWidth: viewerWidth})
	return err
}

func (v *gpuViewers) close(c *cuda.Context) error {
	if v.stream == 0 {
		return nil
	}
	errs := []error{c.Wait(v.stream), v.buffer.Close(c)}
	if v.preview != nil {
		errs = append(errs, v.preview.Close(c))
	}
	if v.done != 0 {
		errs = append(errs, c.FreeEvent(v.done))
	}
	errs = append(errs, c.FreeStream(v.stream))
	*v = gpuViewers{}
	return errors.Join(errs...)
}

// picture makes a small copy of a frame in device memory: only that crosses the
// bus. The copy is written to into, whose planes grow as needed, and described by
// the frame that it returns, which is into's until the next call. It borrows f.
func (g *GPU) picture(ctx context.Context, f *framepool.Frame, into *hostPicture) (*framepool.Frame, error) {
	src, ok := preprocess.SourceOf(f) // not f itself: a call that hangs outlives the loan
	if !ok {
		return nil, errors.New("the frame has no address on the device")
	}
	err := g.dev.Do(ctx, "draw for viewers", func(c *cuda.Context) error {
		v := &g.viewers
		if err := g.decoded.after(c, v.stream); err != nil {
			return err
		}
		p, err := v.preview.Launch(c, v.stream, src, &v.buffer)
		if err != nil {
			return err
		}
		if err := c.Record(v.done, v.stream); err != nil {
			return err
		}
		if err := c.WaitEvent(v.done); err != nil {
			return err
		}
		into.take(p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return into.frame(f.Meta()), nil
}

// hostPicture is a small picture in ordinary memory, recycled by its owner.
type hostPicture struct {
	picture preprocess.Picture
	planes  [3][]byte
}

// take copies p, whose memory belongs to the device's goroutine.
func (h *hostPicture) take(p preprocess.Picture) {
	h.picture = p
	for i, from := range [3][]byte{p.Y, p.Cb, p.Cr} {
		h.planes[i] = append(h.planes[i][:0], from...)
	}
}

// frame describes the picture as a frame, to be released by the caller.
func (h *hostPicture) frame(of *framepool.Meta) *framepool.Frame {
	m := *of
	m.Format, m.Range, m.Matrix = framepool.I420, framepool.RangeFull, framepool.MatrixBT601
	m.Width, m.Height, m.Offset = h.picture.Width, h.picture.Height, [3]int{}
	m.Stride = [3]int{h.picture.StrideY, h.picture.StrideC, h.picture.StrideC}
	return framepool.NewHeapFrame(m, h.planes[:])
}
