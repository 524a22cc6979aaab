package pipeline

import (
	"sync"

	"edgecam/framepool"
	"edgecam/internal/event"
)

// picture is a frame on its way to viewers, with the objects found in it where
// the frame was inferred.
type picture struct {
	frame   *framepool.Frame
	gpu     *GPU // the card whose memory the frame may lie in; nil without
	objects []event.Object
}

// pictureBox holds the newest picture that waits to be drawn. It is a mailbox
// like framepool.Mailbox, for a frame together with its objects.
type pictureBox struct {
	ready chan struct{} // cap 1

	mu     sync.Mutex
	latest picture
	full   bool
	seq    uint64 // of the newest picture so far
	closed bool
}

func newPictureBox() *pictureBox { return &pictureBox{ready: make(chan struct{}, 1)} }

// put consumes the picture's frame; what it replaces is released. A picture
// that comes after a newer one is dropped: time does not run backwards for a
// viewer.
func (b *pictureBox) put(p picture) {
	seq := p.frame.Meta().Seq
	b.mu.Lock()
	old, drop := b.latest, b.full
	if b.closed || seq <= b.seq {
		old, drop = p, true
	} else {
		b.latest, b.full, b.seq = p, true, seq
	}
	b.mu.Unlock()
	if drop {
		old.frame.Release()
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take gives the newest picture to the caller, who releases its frame.
func (b *pictureBox) take() (picture, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.full {
		return picture{}, false
	}
	p := b.latest
	b.latest, b.full = picture{}, false
	return p, true
}

// close releases what waits; later puts release at once.
func (b *pictureBox) close() {
	b.mu.Lock()
	old, drop := b.latest, b.full
	b.latest, b.full, b.closed = picture{}, false, true
	b.mu.Unlock()
	if drop {
		old.frame.Release()
	}
}
