package sim

import (
	"net"
	"sync"
)

// coalesce is the most that is kept before it is sent: most key frames of
// 1080p fit.
const coalesce = 64 << 10

// pictureConn keeps the RTP packets of a picture and sends them with one call:
// the calls for each packet are most of what a healthy camera costs. The last
// packet of a picture carries the marker, so nothing is kept for longer than it
// takes to queue a picture.
type pictureConn struct {
	net.Conn

	mu   sync.Mutex
	kept []byte
}

// Write implements net.Conn. The library writes one whole message a call.
func (c *pictureConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := isRTP(b) && !hasMarker(b)
	if len(c.kept) == 0 && !more {
		return c.Conn.Write(b)
	}
	c.kept = append(c.kept, b...)
	if more && len(c.kept) < coalesce {
		return len(b), nil
	}
	_, err := c.Conn.Write(c.kept)
	c.kept = c.kept[:0]
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// An interleaved frame is '$', its channel, two bytes of length, and the packet.
const frameHeader = 4

// isRTP tells packets of pictures from RTCP, which has odd channels, and RTSP.
func isRTP(b []byte) bool { return len(b) > frameHeader+1 && b[0] == '$' && b[1]%2 == 0 }

func hasMarker(b []byte) bool { return b[frameHeader+1]&0x80 != 0 }
