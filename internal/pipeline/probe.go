package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"edgecam/capture"
	"edgecam/framepool"
	"edgecam/infer"
)

// errNoFrame ends the wait for a picture of a camera that goes away.
var errNoFrame = errors.New("the camera was stopped")

// lending hands a camera's next picture to those who wait for it. Its zero value
// is ready.
type lending struct {
	waiting atomic.Int32 // mirrors len(want), so that a picture that nobody wants costs no lock

	mu    sync.Mutex
	want  []chan *framepool.Frame // guarded by mu; cap 1, closed when the camera ends
	ended bool                    // guarded by mu
}

// lend borrows f.
func (l *lending) lend(f *framepool.Frame) {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.want {
		w <- f.Retain()
	}
	l.want = nil
	l.waiting.Store(0)
}

// next waits for the next picture, which the caller releases.
func (l *lending) next(ctx context.Context) (*framepool.Frame, error) {
	w := make(chan *framepool.Frame, 1)
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil, errNoFrame
	}
	l.want = append(l.want, w)
	l.waiting.Store(int32(len(l.want))) //nolint:gosec // a handful of people
	l.mu.Unlock()
	select {
	case f, ok := <-w:
		if !ok {
			return nil, errNoFrame
		}
		return f, nil
	case <-ctx.Done():
		l.giveUp(w)
		return nil, ctx.Err()
	}
}

// giveUp releases what came at the last moment.
func (l *lending) giveUp(w chan *framepool.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.want {
		if other == w {
			l.want = append(l.want[:i], l.want[i+1:]...)
			l.waiting.Store(int32(len(l.want))) //nolint:gosec // as above
			return
		}
	}
	if f := <-w; f != nil {
		f.Release()
	}
}

// end sends everybody away.
func (l *lending) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, w := range l.want {
		close(w)
	}
	l.want = nil
	l.waiting.Store(0)
}

// probe waits for what a station finds in one picture that is no camera's.
type probe struct{ out chan probed } // cap 1

// probed is a station's answer: boxes in fractions of the picture.
type probed struct {
	found []infer.Detection
	err   error
}

// answer keeps the first one; it never waits.
func (p *probe) answer(a probed) {
	select {
	case p.out <- a:
	default:
	}
}

// try takes a picture through the station like a camera's, and gives what is found
// in it at a score that counts. It borrows f, which lies where the station can
// read it.
func (s *station) try(ctx context.Context, f *framepool.Frame, score float32) ([]infer.Detection, error) {
	a := &analysis{st: s, labels: s.model.Info().Labels, probe: &probe{out: make(chan probed, 1)}}
	a.thresholds = make([]float32, len(a.labels))
	for i := range a.thresholds {
		a.thresholds[i] = score
	}
	a.join()
	defer a.leave()
	s.sched.offer(a.lane, f.Retain(), rhythm{})
	select {
	case r := <-a.probe.out:
		return r.found, r.err
	case <-s.done:
		return nil, errors.New("the model was unloaded")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tryLive is try with the camera's next picture, and with a later one where that
// grew too old on the way. The caller releases the frame.
func (s *station) tryLive(ctx context.Context, c *camera, score float32) (*framepool.Frame, []infer.Detection, error) {
	for {
		f, err := c.lending.next(ctx)
		if err != nil {
			return nil, nil, err
		}
		found, err := s.try(ctx, f, score)
		if err == nil {
			return f, found, nil
		}
		f.Release()
		if !errors.Is(err, errTooOld) {
			return nil, nil, err
		}
	}
}

// liveOn gives a camera whose pictures the station can read, best one of those that
// are analysed; nil where there is none.
func (p *Pipeline) liveOn(s *station) *camera {
	var other *camera
	for _, c := range p.sorted() {
		at := c.station()
		if at == nil || at.gpu.host() != s.gpu.host() || c.captureStatus().State != capture.Live {
			continue
		}
		if c.lane() != nil {
			return c
		}
		if other == nil {
			other = c
		}
	}
	return other
}
