package decode

import (
	"fmt"
	"log/slog"

	"edgecam/framepool"
	"edgecam/platform/avcodec"
)

// surfaces are the pictures that the GPU's decoder has memory for.
type surfaces struct {
	opts    *Options
	filter  *filter
	log     *slog.Logger
	readers int // pictures of the geometry of now that readers may hold
	lease   *lease
}

// size is avcodec.Options.Surfaces: like a pool's slots, counted out for the
// decoder and for readers. NVDEC gives each surface memory twice, once to decode
// into and once to read from.
func (s *surfaces) size(q avcodec.SurfaceRequest) (int, error) {
	if s.filter.grey {
		// FFmpeg would set the GPU up for colour and get rubbish.
		return 0, fmt.Errorf("pictures without colour")
	}
	// One more than software needs: a picture that the GPU works at.
	hold := s.filter.need.slots() + 1
	readers := min(s.opts.ReaderSlots, avcodec.MaxSurfaces-hold)
	if readers < min(s.opts.ReaderSlots, leanReaders) {
		return 0, fmt.Errorf("the stream holds up to %d pictures, and the GPU's decoder has %d surfaces", hold, avcodec.MaxSurfaces)
	}
	s.readers = readers
	s.log.Info("gpu decoder is ready", "width", q.Width, "height", q.Height, "format", q.Format.String(),
		"surfaces", hold+readers, "reader_surfaces", readers)
	return hold + readers, nil
}

// frame makes a frame of a surface, which goes back with the frame's last
// handle.
func (s *surfaces) frame(p *avcodec.Picture, m framepool.Meta) (f *framepool.Frame, reason string) {
	if p.Readers >= s.readers {
		return nil, DropReaders
	}
	plane := p.Plane
	kept := p.Keep()
	if kept == nil {
		return nil, DropExhausted
	}
	return framepool.NewDeviceFrame(m, plane, s.release(kept)), ""
}

// release gives the surface back to the decoder that it is of.
func (s *surfaces) release(kept *avcodec.Surface) func() {
	of := s.lease
	of.lend()
	return func() { of.back(kept.Release) }
}
