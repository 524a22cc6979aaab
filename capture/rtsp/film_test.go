package rtsp_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v4/pkg/format/rtph264"
	"github.com/bluenviron/gortsplib/v4/pkg/format/rtph265"
	"github.com/bluenviron/gortsplib/v4/pkg/format/rtpmjpeg"
	"github.com/pion/rtp"

	"edgecam/capture"
	"edgecam/internal/testkit"
)

// film is video that a field camera sends, over and over.
type film struct {
	codec capture.Codec
	units [][][]byte
	drop  func(nalu []byte) bool // NAL units that are not sent; nil = all are
}

// kindOf tells parameter sets apart: "VPS", "SPS", "PPS", or "".
func (f film) kindOf(nalu []byte) string {
	if f.codec == capture.H264 {
		return map[byte]string{7: "SPS", 8: "PPS"}[nalu[0]&31]
	}
	return map[byte]string{32: "VPS", 33: "SPS", 34: "PPS"}[nalu[0]>>1&63]
}

// set gives the film's parameter set of a kind in base64.
func (f film) set(t *testing.T, kind string) string {
	t.Helper()
	for _, n := range f.units[0] {
		if f.kindOf(n) == kind {
			return base64.StdEncoding.EncodeToString(n)
		}
	}
	t.Fatalf("the film has no %s", kind)
	return ""
}

// without is the film whose stream lacks parameter sets of these kinds.
func (f film) without(kinds ...string) film {
	f.drop = func(n []byte) bool { return f.codec != capture.MJPEG && slices.Contains(kinds, f.kindOf(n)) }
	return f
}

// films are made once: they cost an ffmpeg each.
type films struct{ h264, h265, jpeg, small film }

func makeFilms(t *testing.T) films {
	t.Helper()
	make := func(codec, format, size string, c capture.Codec, args ...string) film {
		return film{codec: c, units: testkit.Encode(t, codec, format, size, 10, args...).Units}
	}
	return films{
		h264:  make("h264", "yuv420p", "320x240", capture.H264, "-g", "5"),
		h265:  make("hevc", "yuv420p", "416x240", capture.H265, "-g", "5"),
		jpeg:  make("mjpeg", "yuvj420p", "256x160", capture.MJPEG, "-huffman", "default"), // RFC 2435 knows no others
		small: make("h264", "yuv420p", "160x96", capture.H264, "-g", "5"),
	}
}

// packer turns access units into RTP packets.
func (f film) packer(t *testing.T, payload uint8) func(unit [][]byte) []*rtp.Packet {
	t.Helper()
	var encode func([][]byte) ([]*rtp.Packet, error)
	switch f.codec {
	case capture.H264:
		e := &rtph264.Encoder{PayloadType: payload}
		if err := e.Init(); err != nil {
			t.Fatal(err)
		}
		encode = e.Encode
	case capture.H265:
		e := &rtph265.Encoder{PayloadType: payload}
		if err := e.Init(); err != nil {
			t.Fatal(err)
		}
		encode = e.Encode
	default:
		e := &rtpmjpeg.Encoder{}
		if err := e.Init(); err != nil {
			t.Fatal(err)
		}
		encode = func(unit [][]byte) ([]*rtp.Packet, error) { return e.Encode(unit[0]) }
	}
	return func(unit [][]byte) []*rtp.Packet {
		if f.drop != nil {
			unit = slices.DeleteFunc(slices.Clone(unit), f.drop)
		}
		packets, err := encode(unit)
		if err != nil {
			t.Errorf("pack: %v", err)
		}
		for _, p := range packets {
			p.PayloadType = payload
		}
		return packets
	}
}

// fieldCamera is a camera every word of which a test decides, with real video
// behind it. It sends 50 pictures a second.
type fieldCamera struct {
	t *testing.T

	sdp      string // of DESCRIBE
	header   string // of that answer; "" = Content-Type alone
	public   string // "" = the methods that cameras have
	session  string // header of SETUP's answer; "" = 1234;timeout=60
	film     func(setupURL string) (f film, payload uint8)
	change   func(c *scriptConn, req scriptRequest) (done bool) // answers first; nil = never
	allowed  int                                                // sessions at a time; 0 = any number
	control  func(packet []byte)                                // hears RTCP
	gap      int                                                // every so many packets one is left out; 0 = none is
	interval time.Duration                                      // between pictures; 0 = 20ms

	addr   string
	open   atomic.Int64 // sessions that were set up and not torn down
	paused atomic.Bool  // sends nothing

	mu       sync.Mutex
	requests []scriptRequest
	playing  []*scriptConn
}

// start serves until the test ends.
func (c *fieldCamera) start() *fieldCamera {
	c.addr = startScript(c.t, c.talk)
	return c
}

func (c *fieldCamera) url() string { return "rtsp://" + c.addr + "/s" }

// asked gives the URLs of all requests of a method.
func (c *fieldCamera) asked(method string) (urls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if r.method == method {
			urls = append(urls, strings.ReplaceAll(r.url, c.addr, "ADDR"))
		}
	}
	return urls
}

// say sends text to all that play.
func (c *fieldCamera) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.playing {
		_, _ = conn.Write([]byte(text)) // one that is gone ends its own loop
	}
}

// cameraSession is one connection's.
type cameraSession struct {
	setup string // URL; "" = none
	send  func(p *rtp.Packet) error
	close func()
	wg    sync.WaitGroup
	stop  chan struct{}
}

func (c *fieldCamera) talk(conn *scriptConn) {
	s := &cameraSession{stop: make(chan struct{}), close: func() {}, send: func(p *rtp.Packet) error { return interleave(conn, p) }}
	conn.control = c.control
	defer func() {
		close(s.stop)
		s.wg.Wait()
		s.close()
	}()
	for {
		req, ok := conn.read()
		if !ok {
			return
		}
		c.mu.Lock()
		c.requests = append(c.requests, req)
		c.mu.Unlock()
		if c.change != nil && c.change(conn, req) {
			continue
		}
		c.answer(conn, s, req)
	}
}

func (c *fieldCamera) answer(conn *scriptConn, s *cameraSession, req scriptRequest) {
	or := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	switch {
	case req.method == "OPTIONS":
		conn.reply(req, 200, "Public: "+or(c.public, "OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN"), "")
	case req.method == "DESCRIBE":
		conn.reply(req, 200, or(c.header, "Content-Type: application/sdp"), c.sdp)
	case req.method == "SETUP":
		if c.allowed > 0 && c.open.Load() >= int64(c.allowed) {
			conn.reply(req, 453, "", "")
			return
		}
		c.open.Add(1)
		s.setup = req.url
		conn.reply(req, 200, "Session: "+or(c.session, "1234;timeout=60")+"\r\nTransport: "+c.transport(conn, s, req.header.Get("Transport")), "")
	case req.method == "PLAY":
		c.mu.Lock()
		c.playing = append(c.playing, conn)
		c.mu.Unlock()
		conn.reply(req, 200, "Session: 1234", "")
		if c.film != nil {
			f, payload := c.film(s.setup)
			s.wg.Go(func() { c.stream(s, f, payload) })
		}
	case req.method == "TEARDOWN":
		if s.setup != "" {
			s.setup = ""
			c.open.Add(-1)
		}
		conn.reply(req, 200, "", "")
	case strings.HasPrefix(req.method, "answer"):
	default:
		conn.reply(req, 200, "", "")
	}
}

// transport opens the way that SETUP asks for.
func (c *fieldCamera) transport(conn *scriptConn, s *cameraSession, asked string) string {
	if strings.Contains(asked, "TCP") {
		s.send = func(p *rtp.Packet) error { return interleave(conn, p) }
		return "RTP/AVP/TCP;unicast;interleaved=0-1"
	}
	_, ports, _ := strings.Cut(asked, "client_port=")
	var rtpPort, rtcpPort int
	if _, err := fmt.Sscanf(ports, "%d-%d", &rtpPort, &rtcpPort); err != nil {
		c.t.Errorf("transport %q: %v", asked, err)
	}
	media, control := listenPair(c.t)
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: rtpPort}
	s.send = func(p *rtp.Packet) error {
		b, err := p.Marshal()
		if err != nil {
			return err
		}
		_, err = media.WriteTo(b, to)
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 2048)
		for {
			n, _, err := control.ReadFrom(b)
			if err != nil {
				return
			}
			if c.control != nil {
				c.control(slices.Clone(b[:n]))
			}
		}
	})
	s.close = func() {
		media.Close()
		control.Close()
		wg.Wait()
	}
	port := func(p net.PacketConn) int { return p.LocalAddr().(*net.UDPAddr).Port }
	return fmt.Sprintf("RTP/AVP;unicast;client_port=%d-%d;server_port=%d-%d", rtpPort, rtcpPort, port(media), port(control))
}

// listenPair opens two ports in a row.
func listenPair(t *testing.T) (media, control net.PacketConn) {
	for range 100 {
		a, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return nil, nil
		}
		b, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", a.LocalAddr().(*net.UDPAddr).Port+1))
		if err == nil {
			return a, b
		}
		a.Close()
	}
	t.Error("no two ports in a row")
	return nil, nil
}

func interleave(conn *scriptConn, p *rtp.Packet) error {
	b, err := p.Marshal()
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience)) // an error comes with the write
	_, err = conn.Write(append([]byte{'$', 0, byte(len(b) >> 8), byte(len(b))}, b...))
	return err
}

func (c *fieldCamera) stream(s *cameraSession, f film, payload uint8) {
	pack := f.packer(c.t, payload)
	interval := c.interval
	if interval == 0 {
		interval = 20 * time.Millisecond
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	sent := 0
	for i := 0; ; i++ {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		if c.paused.Load() {
			continue
		}
		for _, p := range pack(f.units[i%len(f.units)]) {
			p.Timestamp = uint32(i) * 9000
			if sent++; c.gap > 0 && sent%c.gap == 0 {
				continue
			}
			if s.send(p) != nil {
				return
			}
		}
	}
}
