package rtsp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/capture/rtsp"
)

// wire is how a camera, whose packets a test makes by hand, sends them.
type wire struct {
	t    *testing.T
	conn *scriptConn  // TCP
	udp  *net.UDPConn // nil = TCP
	sent int          // over UDP
	rtp  *net.UDPAddr // where to
}

// raw sends bytes in the RTSP connection.
func (w *wire) raw(b []byte) {
	_, _ = w.conn.Write(b) // a client that has enough is gone
}

// bytes sends one packet of a channel, 0 for RTP and 1 for RTCP.
func (w *wire) bytes(channel int, b []byte) {
	if w.udp == nil {
		w.raw(append([]byte{'$', byte(channel), byte(len(b) >> 8), byte(len(b))}, b...))
		return
	}
	to := *w.rtp
	to.Port += channel
	_, _ = w.udp.WriteTo(b, &to)
	if w.sent++; w.sent%16 == 0 {
		<-time.After(5 * time.Millisecond) // no camera sends faster, and sockets have little room
	}
}

func (w *wire) send(packets ...*rtp.Packet) {
	for _, p := range packets {
		b, err := p.Marshal()
		if err != nil {
			w.t.Error(err)
			return
		}
		w.bytes(0, b)
	}
}

func (w *wire) report(r rtcp.Packet) {
	b, err := r.Marshal()
	if err != nil {
		w.t.Error(err)
		return
	}
	w.bytes(1, b)
}

// describeAs is the description of a camera of a codec.
func describeAs(codec capture.Codec) string {
	switch codec {
	case capture.H265:
		return strings.Replace(bareSDP, "H264", "H265", 1)
	case capture.MJPEG:
		return strings.Replace(strings.Replace(bareSDP, "rtpmap:96 H264", "rtpmap:26 JPEG", 1), "AVP 96", "AVP 26", 1)
	default:
		return bareSDP
	}
}

// bareSDP says nothing of parameter sets: they come with the video.
const bareSDP = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=cam\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\n" +
	"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:trackID=0\r\n"

// startWire is a camera that sends what play does after PLAY, and then keeps
// the session.
func startWire(t *testing.T, codec capture.Codec, play func(*wire)) (url string) {
	t.Helper()
	return "rtsp://" + startScript(t, func(c *scriptConn) {
		w := &wire{t: t, conn: c}
		var wg sync.WaitGroup
		defer wg.Wait()
		for {
			req, ok := c.read()
			if !ok {
				return
			}
			switch req.method {
			case "DESCRIBE":
				c.reply(req, 200, "Content-Type: application/sdp", describeAs(codec))
			case "SETUP":
				c.reply(req, 200, "Session: 1234;timeout=60\r\nTransport: "+w.setUp(req.header.Get("Transport")), "")
			case "PLAY":
				c.reply(req, 200, "Session: 1234", "")
				wg.Go(func() { play(w) })
			default:
				c.reply(req, 200, "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN", "")
			}
		}
	}) + "/video"
}

// setUp answers a Transport header. It names an SSRC that no packet has.
func (w *wire) setUp(asked string) string {
	if strings.Contains(asked, "TCP") {
		return "RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=937239728"
	}
	_, ports, _ := strings.Cut(asked, "client_port=")
	ports, _, _ = strings.Cut(ports, ";")
	first, _, _ := strings.Cut(ports, "-")
	port, err := strconv.Atoi(first)
	if err != nil {
		w.t.Errorf("transport %q: %v", asked, err)
	}
	w.rtp = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	if w.udp, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		w.t.Error(err)
	}
	w.t.Cleanup(func() { w.udp.Close() })
	from := w.udp.LocalAddr().(*net.UDPAddr).Port
	// Reports come from the same port as video: this client does not mind, as
	// it is asked for none.
	return fmt.Sprintf("RTP/AVP;unicast;client_port=%s;server_port=%d-%d;ssrc=GARBAGE", ports, from, from)
}

// watchWire plays a hand-made camera until n access units have come.
func watchWire(t *testing.T, codec capture.Codec, transport rtsp.Transport, n int, play func(*wire)) *recorder {
	t.Helper()
	r := receive(t, rtsp.Options{URL: startWire(t, codec, play), Transport: transport}, n)
	if len(r.infos) != 1 {
		t.Errorf("the stream was described %d times", len(r.infos))
	}
	return r
}

// watchUntil plays a hand-made camera until the access unit of an RTP time has
// come, which is left out.
func watchUntil(t *testing.T, codec capture.Codec, transport rtsp.Transport, last uint32, play func(*wire)) *recorder {
	t.Helper()
	src, err := rtsp.New(rtsp.Options{URL: startWire(t, codec, play), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sink := &untilSink{last: last, end: cancel}
	if err := src.Run(ctx, sink); !sink.ended {
		t.Fatalf("session ended with %v after %d access units", err, len(sink.r.units))
	}
	return &sink.r
}

type untilSink struct {
	r     recorder
	last  uint32
	ended bool
	end   func()
}

func (s *untilSink) Stream(info capture.StreamInfo) error { return s.r.Stream(info) }

func (s *untilSink) AccessUnit(au *capture.AccessUnit) {
	if s.ended = s.ended || au.RTPTime == s.last; s.ended {
		s.end()
		return
	}
	s.r.AccessUnit(au)
}

// stream numbers packets as a camera does.
type stream struct {
	codec  capture.Codec
	ssrc   uint32
	seq    uint16
	rtp    uint32
	step   uint32 // of rtp, from one picture to the next
	mtu    int    // of payloads
	always bool   // the marker is on each NAL unit
	never  bool   // there is no marker
}

func newStream(codec capture.Codec) *stream {
	return &stream{codec: codec, ssrc: 0x11223344, seq: 65000, rtp: 0xfffff000, step: 9000, mtu: 1200}
}

// picture makes the packets of an access unit, and goes on to the next time.
func (s *stream) picture(nalus ...[]byte) []*rtp.Packet {
	packets := s.parts(true, nalus...)
	s.rtp += s.step
	return packets
}

// parts makes packets of NAL units with the time of now.
func (s *stream) parts(last bool, nalus ...[]byte) []*rtp.Packet {
	var packets []*rtp.Packet
	for i, nalu := range nalus {
		payloads := s.payloads(nalu)
		for k, payload := range payloads {
			marker := k == len(payloads)-1 && (s.always || last && i == len(nalus)-1) && !s.never
			packets = append(packets, s.packet(payload, marker))
		}
	}
	return packets
}

func (s *stream) packet(payload []byte, marker bool) *rtp.Packet {
	p := &rtp.Packet{Payload: payload}
	p.Version, p.PayloadType, p.SSRC, p.SequenceNumber, p.Timestamp, p.Marker = 2, 96, s.ssrc, s.seq, s.rtp, marker
	s.seq++
	return p
}

// payloads cuts a NAL unit into fragments where it is large.
func (s *stream) payloads(nalu []byte) [][]byte {
	if len(nalu) <= s.mtu {
		return [][]byte{nalu}
	}
	head, rest := []byte{nalu[0]&0xe0 | 28, nalu[0] & 0x1f}, nalu[1:]
	if s.codec == capture.H265 {
		head, rest = []byte{nalu[0]&0x81 | 49<<1, nalu[1], nalu[0] >> 1 & 0x3f}, nalu[2:]
	}
	var out [][]byte
	for part := range slices.Chunk(rest, s.mtu) {
		out = append(out, slices.Concat(head, part))
	}
	out[0][len(head)-1] |= 0x80
	out[len(out)-1][len(head)-1] |= 0x40
	return out
}

// slice is a NAL unit that looks like the slice of an H.264 picture to all but a
// decoder: its size, and a number to know it by.
func slice(kind byte, number uint32, size int) []byte {
	b := make([]byte, max(size, 6))
	b[0], b[1] = h264Units[kind][0], h264Units[kind][1]
	binary.BigEndian.PutUint32(b[2:], 0x80808080|number) // no start code
	for i := 6; i < len(b); i++ {
		b[i] = 0xa5
	}
	return b
}

// number reads back what slice wrote into the last NAL unit.
func number(au *capture.AccessUnit) uint32 {
	last := au.NALUs[len(au.NALUs)-1]
	if len(last) < 6 {
		return 0xffff
	}
	return binary.BigEndian.Uint32(last[2:]) &^ 0x80808080
}

// wantUnits checks that access units came in order and whole, one for each
// number. Flagged are the numbers of those that tell of a loss.
func wantUnits(t *testing.T, r *recorder, from, to uint32, flagged ...uint32) {
	t.Helper()
	if len(r.units) != int(to-from) {
		t.Errorf("%d access units, want %d", len(r.units), to-from)
	}
	for i, au := range r.units {
		want := from + uint32(i)
		if number(au) != want {
			t.Fatalf("access unit %d is number %d, want %d", i, number(au), want)
		}
		if loss := slices.Contains(flagged, want); au.LossBefore != loss {
			t.Errorf("access unit %d: loss %v, want %v", want, au.LossBefore, loss)
		}
	}
}
