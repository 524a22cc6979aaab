package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"edgecam/web"
)

// feed draws and encodes one camera's pictures for all who watch, once for all
// of them, and only while somebody does. There are two a camera: as they came,
// and annotated.
type feed struct {
	camera   string
	annotate bool
	p        *Pipeline
	logger   *slog.Logger

	mu      sync.Mutex
	viewers map[*pictureStream]struct{}
	box     *pictureBox // nil while nobody watches
	stop    context.CancelFunc
	stopped chan struct{}
	closed  bool

	reported string        // owned by the drawing goroutine
	late     atomic.Uint64 // pictures too old to be shown
}

func newFeed(camera string, annotate bool, p *Pipeline, logger *slog.Logger) *feed {
	return &feed{camera: camera, annotate: annotate, p: p, logger: logger, viewers: map[*pictureStream]struct{}{}}
}

// watched says whether anybody would see a picture offered now.
func (f *feed) watched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.box != nil
}

// offer hands a picture to the viewers, if there are any. It borrows p's frame.
func (f *feed) offer(p picture) {
	f.mu.Lock()
	box := f.box
	f.mu.Unlock()
	if box == nil {
		return
	}
	p.frame = p.frame.Retain()
	box.put(p)
}

// join adds a viewer; with the first one the drawing begins, of all the camera's
// pictures.
func (f *feed) join(v *pictureStream) {
	if f.admit(v) {
		f.p.watchedNow(f.camera)
	}
}

// admit is join, and true for the first viewer.
func (f *feed) admit(v *pictureStream) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		v.cameraGone(f.camera)
		return false
	}
	f.viewers[v] = struct{}{}
	if f.box != nil {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.box, f.stop, f.stopped = newPictureBox(), cancel, make(chan struct{})
	go f.run(ctx, f.box, f.stopped)
	return true
}

// leave removes a viewer; the last one stops the drawing and waits for its end.
func (f *feed) leave(v *pictureStream) {
	f.mu.Lock()
	delete(f.viewers, v)
	end := f.endLocked(len(f.viewers) == 0)
	f.mu.Unlock()
	end()
}

// close ends the feed for good.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	for v := range f.viewers {
		v.cameraGone(f.camera)
	}
	clear(f.viewers)
	end := f.endLocked(true)
	f.mu.Unlock()
	end()
}

// endLocked takes the drawing out of the feed and returns what waits for it.
func (f *feed) endLocked(when bool) func() {
	if !when || f.box == nil {
		return func() {}
	}
	box, stop, stopped := f.box, f.stop, f.stopped
	f.box, f.stop, f.stopped = nil, nil, nil
	return func() {
		stop()
		<-stopped
		box.close()
	}
}

func (f *feed) run(ctx context.Context, box *pictureBox, stopped chan struct{}) {
	defer close(stopped)
	d := drawer{ctx: ctx, codecs: f.p.codecs}
	defer d.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-box.ready:
		}
		p, ok := box.take()
		if !ok {
			continue
		}
		received := p.frame.Meta().Received
		if tooOld(received, f.p.now()) {
			p.frame.Release()
			f.late.Add(1)
			continue
		}
		pic, err := d.draw(p, f.annotate)
		p.frame.Release()
		if err != nil {
			f.report(err)
			continue
		}
		if tooOld(received, f.p.now()) { // drawing took so long
			f.late.Add(1)
			continue
		}
		f.deliver(pic)
	}
}

// report logs why a picture could not be drawn, once as long as the reason is
// the same: it would come with every picture.
func (f *feed) report(err error) {
	if text := err.Error(); text != f.reported {
		f.reported = text
		f.logger.Warn("draw picture", "err", err)
	}
}

func (f *feed) deliver(pic web.Picture) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for v := range f.viewers {
		v.put(pic)
	}
}
