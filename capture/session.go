package capture

import (
	"context"
	"errors"
	"sync"
	"time"

	"edgecam/framepool"
)

// session is one connection with the camera, from Open to its end. It is the
// source's sink.
type session struct {
	s       *Supervisor
	ring    *ring
	watch   watchdog
	late    lateness // the source's goroutine
	cancel  context.CancelCauseFunc
	opened  func() // told when the camera has described its stream
	started func() // told at the first picture

	// decoding goroutine
	decoder   Decoder
	meta      framepool.PixelFormat
	width     int
	height    int
	firstSeen time.Time
	lastSeen  time.Time
}

// runSession gives why the session ended; stable says that pictures came for
// long enough to start anew with the waits.
func (s *Supervisor) runSession(ctx context.Context, attempt int, opened, started func()) (stable bool, err error) {
	source, err := s.o.Open(attempt)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ses := &session{s: s, ring: newRing(s.drops.add), cancel: cancel, opened: opened, started: started, watch: watchdog{
		connect: s.o.ConnectTimeout, first: s.o.FirstFrameTimeout, stall: s.o.StallTimeout, patience: s.patience,
	}}
	ses.watch.start(time.Now())

	var wg sync.WaitGroup
	wg.Go(func() { ses.watch.run(ctx, cancel) })
	wg.Go(func() { ses.decode(ctx) })
	err = source.Run(ctx, ses)
	if cause := context.Cause(ctx); cause != nil {
		err = cause // the watchdog's or the decoder's word
	}
	if err == nil {
		err = &ClosedError{}
	}
	cancel(err)
	wg.Wait()
	s.patience = ses.watch.longer(err)
	for _, d := range ses.ring.close() {
		d.Close()
	}
	return ses.lastSeen.Sub(ses.firstSeen) >= stableAfter, err
}

// Stream implements Sink: it makes the decoder for what comes.
func (ses *session) Stream(info StreamInfo) error {
	decoder, err := ses.s.o.NewDecoder(info)
	if err != nil {
		return err
	}
	if !ses.ring.pushDecoder(decoder) {
		decoder.Close()
		return context.Canceled
	}
	ses.opened()
	ses.watch.described(time.Now(), info.Transport, decoder)
	ses.s.described(info)
	return nil
}

// AccessUnit implements Sink. It never waits.
func (ses *session) AccessUnit(au *AccessUnit) {
	ses.watch.unit(au)
	// What was held up on its way is as old as it is late: everything behind
	// reckons with that.
	au.Received = au.Received.Add(-ses.late.of(au.PTS, au.Received))
	ses.ring.push(au)
}

// decode is the decoding goroutine.
func (ses *session) decode(ctx context.Context) {
	defer func() {
		if ses.decoder != nil {
			ses.decoder.Close()
		}
	}()
	for {
		item, ok := ses.ring.pop(ctx)
		if !ok {
			return
		}
		if item.decoder != nil {
			if ses.decoder != nil {
				ses.decoder.Close()
			}
			ses.decoder = item.decoder
			continue
		}
		if ses.decoder == nil {
			panic("capture: a source gave an access unit before its stream")
		}
		began := time.Now()
		err := ses.decoder.Decode(item.au, ses.emit)
		ses.ring.decoded(time.Since(began))
		if err != nil {
			if errors.As(err, new(*UnsupportedError)) || errors.As(err, new(*CardLostError)) {
				ses.cancel(err)
				return
			}
			ses.s.drops.add(DropDamaged, 1)
		}
	}
}

// emit passes a picture on and notes that the session lives.
func (ses *session) emit(f *framepool.Frame) {
	now := time.Now()
	m := f.Meta()
	changed := m.Format != ses.meta || m.Width != ses.width || m.Height != ses.height
	ses.meta, ses.width, ses.height = m.Format, m.Width, m.Height
	if changed {
		ses.s.decoding(ses.decoder.Info(), m.Width, m.Height)
	}
	if ses.firstSeen.IsZero() {
		ses.firstSeen = now
	}
	ses.lastSeen = now
	ses.s.frames.Add(1)
	ses.s.rate.add(now)
	first := ses.watch.picture(now)
	ses.s.o.Emit(f)
	if first {
		ses.started()
		ses.s.enter(Live, "Receiving video", nil, time.Time{})
	}
}
