//go:build cgo

package decode_test

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4"
	"github.com/bluenviron/gortsplib/v4/pkg/base"
	"github.com/bluenviron/gortsplib/v4/pkg/description"
	"github.com/bluenviron/gortsplib/v4/pkg/format"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/decode"
	"edgecam/capture/rtsp"
	"edgecam/framepool"
	"edgecam/internal/testkit"
)

// patience bounds what a test waits for; nothing is measured by it.
const patience = 60 * time.Second

// film is what a camera sends: packets of one access unit after the other, with
// RTP times of their own.
type film struct {
	format format.Format
	units  [][]*rtp.Packet
	every  time.Duration // between units; it defaults to 5ms
}

// filmOf makes a film of a clip, ten pictures a second by its RTP times. rank is
// the place in display order of each unit, nil = as they come.
func filmOf(t testing.TB, c testkit.Clip, rank []int) film {
	t.Helper()
	var encode func(unit [][]byte) ([]*rtp.Packet, error)
	f := film{}
	switch c.Codec {
	case "hevc":
		h := &format.H265{PayloadTyp: 96}
		e, err := h.CreateEncoder()
		if err != nil {
			t.Fatal(err)
		}
		f.format, encode = h, e.Encode
	case "mjpeg":
		j := &format.MJPEG{}
		e, err := j.CreateEncoder()
		if err != nil {
			t.Fatal(err)
		}
		f.format, encode = j, func(unit [][]byte) ([]*rtp.Packet, error) { return e.Encode(unit[0]) }
	default:
		h := &format.H264{PayloadTyp: 96, PacketizationMode: 1}
		e, err := h.CreateEncoder()
		if err != nil {
			t.Fatal(err)
		}
		f.format, encode = h, e.Encode
	}
	for i, u := range c.Units {
		pkts, err := encode(u)
		if err != nil {
			t.Fatal(err)
		}
		at := i
		if rank != nil {
			at = rank[i]
		}
		for _, p := range pkts {
			p.Timestamp = uint32(9000 * at)
		}
		f.units = append(f.units, pkts)
	}
	return f
}

// camera is an RTSP server that plays one film once to each session in turn.
type camera struct {
	film   film
	stream *gortsplib.ServerStream
	media  *description.Media
	play   chan struct{}
}

// startCamera serves a film until the test ends, and gives its URL.
func startCamera(t testing.TB, f film) string {
	t.Helper()
	if f.every == 0 {
		f.every = 5 * time.Millisecond
	}
	c := &camera{film: f, play: make(chan struct{}, 1)}
	c.media = &description.Media{Type: description.MediaTypeVideo, Formats: []format.Format{f.format}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &gortsplib.Server{Handler: c, RTSPAddress: l.Addr().String(), Listen: func(string, string) (net.Listener, error) { return l, nil }, WriteQueueSize: 4096}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	c.stream = &gortsplib.ServerStream{Server: s, Desc: &description.Session{Medias: []*description.Media{c.media}}}
	if err := c.stream.Initialize(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.run(ctx) })
	t.Cleanup(func() {
		cancel()
		c.stream.Close()
		s.Close()
		wg.Wait()
	})
	return "rtsp://" + l.Addr().String() + "/film"
}

func (c *camera) run(ctx context.Context) {
	seq := uint16(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.play:
		}
		tick := time.NewTicker(c.film.every)
		for _, pkts := range c.film.units {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			for _, p := range pkts {
				q := *p
				q.SequenceNumber = seq
				seq++
				_ = c.stream.WritePacketRTP(c.media, &q) // a session that has left is no fault
			}
		}
		tick.Stop()
	}
}

func (c *camera) OnDescribe(*gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, c.stream, nil
}

func (c *camera) OnSetup(*gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, c.stream, nil
}

func (c *camera) OnPlay(*gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	select {
	case c.play <- struct{}{}:
	default:
	}
	return &base.Response{StatusCode: base.StatusOK}, nil
}

// watched is a camera that is captured as the appliance does it.
type watched struct {
	*capture.Supervisor
	log    *testkit.Journal
	mu     sync.Mutex
	dec    *decode.Decoder // of the session of now
	frames chan *framepool.Frame
	states chan capture.Status
}

// watch captures a camera until the test ends. Frames that nobody takes are let
// go.
func watch(t testing.TB, url string, o decode.Options) *watched {
	t.Helper()
	w := &watched{log: &testkit.Journal{}, frames: make(chan *framepool.Frame, 60), states: make(chan capture.Status, 256)}
	logger := slog.New(slog.NewTextHandler(w.log, nil))
	o.Camera, o.Library, o.Node, o.Logger, o.ReaderSlots = "gate", library(t), -1, logger, 64
	var err error
	w.Supervisor, err = capture.NewSupervisor(capture.Options{
		Camera: "gate",
		Open: func(int) (capture.Source, error) {
			return rtsp.New(rtsp.Options{URL: url, Transport: rtsp.TCP})
		},
		NewDecoder: func(info capture.StreamInfo) (capture.Decoder, error) {
			o.Info = info
			d, err := decode.New(o)
			if err != nil {
				return nil, err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dec = d
			return d, nil
		},
		Emit: func(f *framepool.Frame) {
			select {
			case w.frames <- f:
			default:
				f.Release()
			}
		},
		OnChange: func(st capture.Status) { w.states <- st },
		Logger:   logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(w.frames)
		for f := range w.frames {
			f.Release()
		}
		if t.Failed() {
			t.Log(w.log)
		}
	})
	return w
}

// next gives the next frame.
func (w *watched) next(t testing.TB) *framepool.Frame {
	t.Helper()
	select {
	case f := <-w.frames:
		return f
	case <-time.After(patience):
		t.Fatalf("no picture; %+v", w.Status())
		return nil
	}
}

// await gives the first status in the state.
func (w *watched) await(t testing.TB, state capture.State) capture.Status {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case st := <-w.states:
			if st.State == state {
				return st
			}
		case <-limit:
			t.Fatalf("never %s; now %+v", state, w.Status())
		}
	}
}

func (w *watched) stats() decode.Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dec == nil {
		return decode.Stats{}
	}
	return w.dec.Stats()
}

// sides reads a size as in "640x360".
func sides(t testing.TB, size string) (w, h int) {
	t.Helper()
	var err error
	for i, c := range size {
		if c == 'x' {
			w, err = strconv.Atoi(size[:i])
			if err == nil {
				h, err = strconv.Atoi(size[i+1:])
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return w, h
}
