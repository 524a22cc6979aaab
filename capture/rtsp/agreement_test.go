package rtsp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// Video that comes on another channel, as another payload type, or with headers
// that break the rules plays over TCP.
func TestVideoThatComesOtherwise(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		send func(w *wire, n uint32, p *rtp.Packet, raw []byte)
	}{
		{"on the channel for reports", func(w *wire, _ uint32, _ *rtp.Packet, raw []byte) { w.bytes(1, raw) }},
		{"on a channel that nobody named", func(w *wire, _ uint32, _ *rtp.Packet, raw []byte) { w.bytes(6, raw) }},
		{"as another type", func(w *wire, _ uint32, p *rtp.Packet, _ []byte) {
			p.PayloadType = 110
			w.send(p)
		}},
		{"as another type from some picture on", func(w *wire, n uint32, p *rtp.Packet, _ []byte) {
			if n >= 20 {
				p.PayloadType = 97
			}
			w.send(p)
		}},
		{"beside audio that nobody asked for", func(w *wire, n uint32, p *rtp.Packet, raw []byte) {
			audio := append([]byte{}, raw...)
			audio[1], audio[11] = 8, audio[11]+1
			w.bytes(0, audio)
			w.bytes(2, audio)
			w.send(p)
		}},
		{"with an extension whose elements run over its end", func(w *wire, _ uint32, _ *rtp.Packet, raw []byte) {
			w.bytes(0, extended(raw, 0xbe, 0xde, 0, 1, 0x7f, 1, 2, 3))
		}},
		{"with an extension of the other kind", func(w *wire, _ uint32, _ *rtp.Packet, raw []byte) {
			w.bytes(0, extended(raw, 0x10, 0x00, 0, 1, 7, 9, 2, 3))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := startWire(t, capture.H264, func(w *wire) {
				s := newStream(capture.H264)
				for n := range uint32(60) {
					for _, p := range s.simple(n) {
						raw, err := p.Marshal()
						if err != nil {
							t.Error(err)
							return
						}
						tt.send(w, n, p, raw)
					}
				}
			})
			r, err := attempt(t, rtsp.Options{URL: url, Transport: rtsp.TCP}, 50)
			if !errors.Is(err, errEnough) {
				t.Fatalf("the session ended with %v after %d units", err, len(r.units))
			}
			for i, au := range r.units[30:] { // the first packets tell where the video is
				if au.LossBefore {
					t.Errorf("unit %d is flagged", i+30)
				}
			}
		})
	}
}

// extended puts a header extension into a packet.
func extended(raw []byte, extension ...byte) []byte {
	out := append([]byte{}, raw[:12]...)
	out[0] |= 0x10
	return append(append(out, extension...), raw[12:]...)
}

// Answers to DESCRIBE that hold no description, or not all of it, are named.
func TestAnswersWithoutADescription(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, head, body, want string
	}{
		{"no length", "Content-Type: application/sdp", goodSDP, "the answer has no description: its Content-Length is missing, 0 or not a number"},
		{"another type", "Content-Type: text/html\r\nContent-Length: 6", "<html>", "the answer is of type text/html, not application/sdp"},
		{"coded", "Content-Encoding: gzip\r\nContent-Length: 6", "\x1f\x8b....", "the description is coded (gzip)"},
		{"too short", fmt.Sprintf("Content-Length: %d", len(goodSDP)+7), goodSDP, "does not finish its answer to DESCRIBE within 500ms: of the length that it gave, 7 bytes do not come"},
		{"no answer", "-", "", "does not answer DESCRIBE within 500ms, after it answered other requests"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
				if req.method == "DESCRIBE" && tt.head != "-" {
					_, _ = fmt.Fprintf(c, "RTSP/1.0 200 OK\r\nCSeq: %s\r\n%s\r\n\r\n%s", req.header.Get("CSeq"), tt.head, tt.body)
				}
				return req.method == "DESCRIBE"
			}))
			_, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP, ReadTimeout: 500 * time.Millisecond}, 1)
			var failure capture.Failure
			if !errors.As(err, &failure) || !strings.Contains(failure.Reason(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

// Versions, codes and lengths that are not quite right cost nothing.
func TestSuccessByOtherWords(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"RTSP/2.0 200 OK", "RTSP/1.1 200 OK", "RTSP/1.0 201 Created", "RTSP/1.0 250 Low on Storage Space"} {
		addr := startScript(t, obedient(func(c *scriptConn, req scriptRequest) bool {
			if req.method == "DESCRIBE" {
				_, _ = fmt.Fprintf(c, "%s\r\nCSeq: %s\r\nContent-Length: +%d\r\n\r\n%s", head, req.header.Get("CSeq"), len(goodSDP), goodSDP)
			}
			return req.method == "DESCRIBE"
		}))
		if _, err := attempt(t, rtsp.Options{URL: "rtsp://" + addr + "/x", Transport: rtsp.TCP}, 3); !errors.Is(err, errEnough) {
			t.Errorf("%s: the session ended with %v", head, err)
		}
	}
}

// Markers anywhere, also within a slice, cost a picture or two at the start.
func TestMarkersAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
		url := startWire(t, capture.H264, func(w *wire) {
			s := newStream(capture.H264)
			for n := range uint32(60) {
				for _, p := range s.simple(n) {
					p.Marker = random.IntN(2) == 0
					w.send(p)
				}
			}
		})
		r, err := attempt(t, rtsp.Options{URL: url, Transport: rtsp.TCP}, 50)
		if !errors.Is(err, errEnough) {
			t.Fatalf("seed %d: the session ended with %v", seed, err)
		}
		for i, au := range r.units[5:] {
			if au.LossBefore {
				t.Errorf("seed %d: unit %d is flagged", seed, i+5)
			}
		}
	}
}
