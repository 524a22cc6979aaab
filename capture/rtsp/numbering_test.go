package rtsp_test

import (
	"errors"
	"testing"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// Cameras whose sequence numbers do not count their packets.
var numberings = []struct {
	name string
	seq  func(n int, picture uint32) uint16 // of the nth packet
}{
	{"always the same", func(int, uint32) uint16 { return 7 }},
	{"by two", func(n int, _ uint32) uint16 { return uint16(2 * n) }},
	{"backwards", func(n int, _ uint32) uint16 { return uint16(-n) }},
	{"each number twice", func(n int, _ uint32) uint16 { return uint16(n / 2) }},
	{"by picture", func(_ int, picture uint32) uint16 { return uint16(picture) }},
}

func sendNumbered(w *wire, from, to uint32, number func(n int, picture uint32) uint16) {
	s := newStream(capture.H264)
	n := 0
	for picture := from; picture < to; picture++ {
		for _, p := range s.simple(picture) {
			p.SequenceNumber = number(n, picture)
			w.send(p)
			n++
		}
	}
}

// Over TCP, which keeps the order, such a stream plays whole after a moment.
func TestNumbersThatDoNotCount(t *testing.T) {
	t.Parallel()
	for _, tt := range numberings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := startWire(t, capture.H264, func(w *wire) { sendNumbered(w, 0, 400, tt.seq) })
			src, err := rtsp.New(rtsp.Options{URL: url, Transport: rtsp.TCP})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := contextWithPatience(t)
			defer cancel()
			whole := 0 // pictures in a row
			sink := unitSink(func(au *capture.AccessUnit) {
				if whole++; au.LossBefore {
					whole = 0
				}
				if whole >= 100 {
					cancel()
				}
			})
			if err := src.Run(ctx, sink); whole < 100 {
				t.Errorf("%d pictures in a row were whole at the end, which came with %v", whole, err)
			}
		})
	}
}

// Over UDP a loss would go unseen: the reason says so, and auto takes TCP.
func TestNumbersThatDoNotCountOverUDP(t *testing.T) {
	t.Parallel()
	for _, tt := range numberings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := startWire(t, capture.H264, func(w *wire) { sendNumbered(w, 0, 400, tt.seq) })
			_, err := attempt(t, rtsp.Options{URL: url, Transport: rtsp.UDP}, 1000)
			var unsupported *capture.UnsupportedError
			if !errors.As(err, &unsupported) || unsupported.What != "transport udp" {
				t.Errorf("the session ended with %v", err)
			}
		})
	}
}

type unitSink func(*capture.AccessUnit)

func (unitSink) Stream(capture.StreamInfo) error     { return nil }
func (s unitSink) AccessUnit(au *capture.AccessUnit) { s(au) }
