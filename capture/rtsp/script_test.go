package rtsp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// goodSDP is a description that any client takes.
const goodSDP = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=cam\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\n" +
	"m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n" +
	"a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z2QAFqzZQKAv+XARAAADAAEAAAMAFA8WLZY=,aOvjyyLA\r\na=control:trackID=0\r\n"

// script is a camera whose answers a test writes by hand, for what no library
// would send.
type scriptConn struct {
	t *testing.T
	net.Conn
	r       *textproto.Reader
	control func(packet []byte) // told of RTCP from the client; may be nil
}

// contextWithPatience ends with a test that takes too long.
func contextWithPatience(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), patience)
}

type scriptRequest struct {
	method, url string
	header      textproto.MIMEHeader
}

// startScript serves each connection with talk until the test ends.
func startScript(t *testing.T, talk func(*scriptConn)) (addr string) {
	t.Helper()
	return startScriptAt(t, "127.0.0.1:0", talk)
}

// startScriptAt is startScript at an address of the test's choice.
func startScriptAt(t *testing.T, at string, talk func(*scriptConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	return serveScript(t, l, talk)
}

func serveScript(t *testing.T, l net.Listener, talk func(*scriptConn)) (addr string) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer conn.Close()
				talk(&scriptConn{t: t, Conn: conn, r: textproto.NewReader(bufio.NewReader(conn))})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// read gives the next request; false at the end of the connection. Interleaved
// packets from the client come before it, and so do answers.
func (c *scriptConn) read() (scriptRequest, bool) {
	for {
		b, err := c.r.R.Peek(1)
		if err != nil {
			return scriptRequest{}, false
		}
		if b[0] != '$' {
			break
		}
		frame := make([]byte, 4)
		if _, err := io.ReadFull(c.r.R, frame); err != nil {
			return scriptRequest{}, false
		}
		packet := make([]byte, int(frame[2])<<8+int(frame[3]))
		if _, err := io.ReadFull(c.r.R, packet); err != nil {
			return scriptRequest{}, false
		}
		if c.control != nil && frame[1]%2 == 1 {
			c.control(packet)
		}
	}
	line, err := c.r.ReadLine()
	if err != nil {
		return scriptRequest{}, false
	}
	fields := strings.Fields(line)
	if strings.HasPrefix(line, "RTSP/") { // to a request of the camera's
		header, err := c.r.ReadMIMEHeader()
		if err != nil {
			return scriptRequest{}, false
		}
		return scriptRequest{method: "answer " + fields[1], header: header}, true
	}
	if len(fields) != 3 {
		c.t.Errorf("request line %q", line)
		return scriptRequest{}, false
	}
	header, err := c.r.ReadMIMEHeader()
	if err != nil {
		return scriptRequest{}, false
	}
	return scriptRequest{method: fields[0], url: fields[1], header: header}, true
}

// reply answers; header lines are joined by "\r\n".
func (c *scriptConn) reply(req scriptRequest, code int, header, body string) {
	var b strings.Builder
	fmt.Fprintf(&b, "RTSP/1.0 %d Words\r\nCSeq: %s\r\n", code, req.header.Get("CSeq"))
	if header != "" {
		b.WriteString(header + "\r\n")
	}
	if body != "" {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	b.WriteString("\r\n" + body)
	_, _ = c.Write([]byte(b.String())) // a client that is gone ends read
}

// playForever is a camera that does all right, over TCP, and floods the client
// with packets from PLAY on. It tells the methods that it sees, and "gone".
func (c *scriptConn) playForever(methods chan<- string) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer func() {
		close(stop)
		wg.Wait()
		methods <- "gone"
	}()
	for {
		req, ok := c.read()
		if !ok {
			return
		}
		methods <- req.method
		switch req.method {
		case "DESCRIBE":
			c.reply(req, 200, "Content-Type: application/sdp", goodSDP)
		case "SETUP":
			c.reply(req, 200, "Session: 1234;timeout=60\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1", "")
		case "PLAY":
			c.reply(req, 200, "Session: 1234", "")
			wg.Go(func() { c.flood(stop) })
		case "TEARDOWN":
			c.reply(req, 200, "", "")
			return
		default:
			c.reply(req, 200, "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN", "")
		}
	}
}

// flood sends packets of 1400 bytes, each a whole frame.
func (c *scriptConn) flood(stop <-chan struct{}) {
	for seq := uint16(0); ; seq++ {
		select {
		case <-stop:
			return
		default:
		}
		p := make([]byte, 4+12+1388)
		p[0], p[2], p[3] = '$', byte((len(p)-4)>>8), byte((len(p)-4)&0xff)
		rtp := p[4:]
		rtp[0], rtp[1] = 0x80, 0x80|96
		rtp[2], rtp[3] = byte(seq>>8), byte(seq)
		ts := uint32(seq) * 3000
		rtp[4], rtp[5], rtp[6], rtp[7] = byte(ts>>24), byte(ts>>16), byte(ts>>8), byte(ts)
		rtp[12], rtp[13] = 0x65, 0x80
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := c.Write(p); err != nil {
			return
		}
	}
}
