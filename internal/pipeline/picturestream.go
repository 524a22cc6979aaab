package pipeline

import (
	"context"
	"errors"
	"sync"

	"edgecam/web"
)

// errStreamClosed ends a viewer's Next after Close.
var errStreamClosed = errors.New("picture stream closed")

// pictureStream is one viewer's view of some cameras: the newest undelivered
// picture of each, in turn. A slow viewer skips pictures and costs nobody else
// anything.
type pictureStream struct {
	feeds []*feed
	ready chan struct{} // cap 1

	mu      sync.Mutex
	order   []string // cameras that have a picture waiting, oldest wait first
	waiting map[string]web.Picture
	live    int // feeds that may still deliver
	closed  bool
}

var _ web.PictureStream = (*pictureStream)(nil)

func newPictureStream(feeds []*feed) *pictureStream {
	s := &pictureStream{feeds: feeds, ready: make(chan struct{}, 1), waiting: map[string]web.Picture{}, live: len(feeds)}
	for _, f := range feeds {
		f.join(s)
	}
	return s
}

// put takes the newest picture of a camera; it never waits.
func (s *pictureStream) put(p web.Picture) {
	s.mu.Lock()
	if _, had := s.waiting[p.Camera]; !had {
		s.order = append(s.order, p.Camera)
	}
	s.waiting[p.Camera] = p
	s.mu.Unlock()
	s.signal()
}

// cameraGone tells the viewer that a camera was removed.
func (s *pictureStream) cameraGone(string) {
	s.mu.Lock()
	s.live--
	s.mu.Unlock()
	s.signal()
}

// Next waits for the next picture. It fails when ctx ends, the stream is closed
// or all of its cameras have been removed.
func (s *pictureStream) Next(ctx context.Context) (web.Picture, error) {
	for {
		p, ok, err := s.pop()
		if ok || err != nil {
			return p, err
		}
		select {
		case <-ctx.Done():
			return web.Picture{}, ctx.Err()
		case <-s.ready:
		}
	}
}

func (s *pictureStream) pop() (web.Picture, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || (s.live <= 0 && len(s.order) == 0) {
		return web.Picture{}, false, errStreamClosed
	}
	if len(s.order) == 0 {
		return web.Picture{}, false, nil
	}
	id := s.order[0]
	s.order = append(s.order[:0], s.order[1:]...)
	p := s.waiting[id]
	delete(s.waiting, id)
	if len(s.order) > 0 {
		s.signal()
	}
	return p, true, nil
}

func (s *pictureStream) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Close leaves every feed. It may be called twice.
func (s *pictureStream) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return
	}
	for _, f := range s.feeds {
		f.leave(s)
	}
	s.signal()
}
