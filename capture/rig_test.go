package capture_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"edgecam/capture"
	"edgecam/framepool"
)

// scriptSource is a camera of which a test writes the behaviour.
type scriptSource func(ctx context.Context, sink capture.Sink) error

func (s scriptSource) Run(ctx context.Context, sink capture.Sink) error { return s(ctx, sink) }

// pictureDecoder gives a frame for each access unit, and what fail says.
type pictureDecoder struct {
	rig   *rig
	delay time.Duration
	fail  func(n int) error // by number of the access unit, from 1
	n     int
	mute  bool // decode nothing
}

func (d *pictureDecoder) Decode(au *capture.AccessUnit, emit func(*framepool.Frame)) error {
	d.n++
	d.rig.mu.Lock()
	d.rig.decoded = append(d.rig.decoded, *au)
	d.rig.mu.Unlock()
	if d.delay > 0 {
		<-time.After(d.delay) // bubble time: the work of a slow decoder
	}
	if d.fail != nil {
		if err := d.fail(d.n); err != nil {
			return err
		}
	}
	if !d.mute {
		emit(framepool.NewHeapFrame(framepool.Meta{Format: framepool.Gray8, Width: 4, Height: 2, Stride: [3]int{64}}, [][]byte{make([]byte, 128)}))
	}
	return nil
}

func (d *pictureDecoder) Info() capture.DecoderInfo {
	return capture.DecoderInfo{Name: "fake", Memory: "heap", Width: 4, Height: 2, PixelFormat: "gray"}
}

func (d *pictureDecoder) Close() {
	d.rig.mu.Lock()
	defer d.rig.mu.Unlock()
	d.rig.open--
}

// rig is a supervisor under test.
type rig struct {
	*capture.Supervisor
	o       capture.Options
	log     bytes.Buffer
	decoder func(*pictureDecoder)

	mu      sync.Mutex
	open    int // decoders
	decoded []capture.AccessUnit
	states  []capture.Status
	starts  []time.Duration // of sessions, since begin
	begin   time.Time
	done    chan error
	cancel  context.CancelFunc
}

// start runs a supervisor whose session n does sessions(n).
func start(t *testing.T, sessions func(n int) scriptSource, change func(*rig)) *rig {
	t.Helper()
	r := &rig{begin: time.Now(), done: make(chan error, 1)}
	r.o = capture.Options{
		Camera: "gate",
		Open: func(n int) (capture.Source, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.starts = append(r.starts, time.Since(r.begin))
			return sessions(n), nil
		},
		NewDecoder: func(capture.StreamInfo) (capture.Decoder, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.open++
			d := &pictureDecoder{rig: r}
			if r.decoder != nil {
				r.decoder(d)
			}
			return d, nil
		},
		Emit: func(f *framepool.Frame) { f.Release() },
		OnChange: func(st capture.Status) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.states = append(r.states, st)
		},
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	capture.SetJitter(&r.o, func() float64 { return 0.5 })
	capture.SetDial(&r.o, func(context.Context, string) error { return errors.New("refused") })
	if change != nil {
		change(r)
	}
	var err error
	if r.Supervisor, err = capture.NewSupervisor(r.o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- r.Run(ctx) }()
	return r
}

// stop ends the supervisor and checks that nothing is left.
func (r *rig) stop(t *testing.T) {
	t.Helper()
	before := time.Now()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Errorf("Run gives %v", err)
	}
	if took := time.Since(before); took > 2*time.Second {
		t.Errorf("Run took %v to end", took)
	}
	if r.open != 0 {
		t.Errorf("%d decoders are still open", r.open)
	}
	if st := r.Status(); st.State != capture.Disabled {
		t.Errorf("state is %s after the end", st.State)
	}
}

// history lists the states that were entered, in order.
func (r *rig) history() []capture.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var h []capture.State
	for _, st := range r.states {
		h = append(h, st.State)
	}
	return h
}

var info = capture.StreamInfo{Codec: capture.H264, ClockRate: 90000, Transport: "tcp", Track: capture.TrackInfo{Index: 1, Of: 1, Codec: capture.H264}}

// unit makes an access unit of the size of a small picture.
func unit(random bool) *capture.AccessUnit {
	return &capture.AccessUnit{NALUs: [][]byte{make([]byte, 1000)}, Received: time.Now(), CapturedAt: time.Now(), RandomAccess: random}
}

// video plays at a rate, with a key frame every so many, until ctx ends or n
// frames have come (0 = for ever).
func video(ctx context.Context, sink capture.Sink, interval time.Duration, gop, n int) error {
	for i := 0; n == 0 || i < n; i++ {
		sink.AccessUnit(unit(i%gop == 0))
		if err := rest(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func playing(interval time.Duration, gop, n int, then error) scriptSource {
	return func(ctx context.Context, sink capture.Sink) error {
		if err := sink.Stream(info); err != nil {
			return err
		}
		if err := video(ctx, sink, interval, gop, n); err != nil {
			return err
		}
		return then
	}
}

func failing(err error) scriptSource {
	return func(context.Context, capture.Sink) error { return err }
}

func hanging(ctx context.Context, _ capture.Sink) error {
	<-ctx.Done()
	return ctx.Err()
}

const frame = 40 * time.Millisecond // 25 frames a second
