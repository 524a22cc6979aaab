package rtsp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"edgecam/capture"
)

// linger is how long a connection waits for the camera to take note of
// TEARDOWN.
const linger = 300 * time.Millisecond

// cameraConn is the connection of one session, above TLS where there is any.
type cameraConn struct {
	net.Conn
	addr      string
	encrypted bool
	torn      atomic.Bool // TEARDOWN is on its way
	heard     bool        // owned by the reader: the camera has spoken

	agreed atomic.Pointer[agreement] // nil before the camera has described its video
	owed   atomic.Int64              // bytes of an answer that were announced and have not come
}

// Read looks at what the other side says first. gortsplib looks for the
// beginning of an answer in whatever comes, so that a server of another kind
// would end in a timeout or in an answer that cannot be read.
func (c *cameraConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.heard {
		return n, err
	}
	if n > 0 {
		c.heard = true
		if foreign := c.foreign(b[:n]); foreign != nil {
			return 0, foreign
		}
		return n, err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return 0, &capture.ClosedError{Detail: "before any answer: check that " + c.addr + " is its RTSP port" + c.otherScheme()}
	}
	return n, err
}

func (c *cameraConn) otherScheme() string {
	if c.encrypted {
		return ""
	}
	return ", and not one for rtsps://"
}

// foreign tells other services by the first bytes that they send.
func (c *cameraConn) foreign(head []byte) error {
	const hint = "check the port of the URL"
	switch {
	case bytes.HasPrefix(head, []byte("HTTP/")):
		return &capture.ForeignError{Addr: c.addr, Speaks: "HTTP, not RTSP", Hint: hint}
	case bytes.HasPrefix(head, []byte("SSH-")):
		return &capture.ForeignError{Addr: c.addr, Speaks: "SSH, not RTSP", Hint: hint}
	case len(head) >= 3 && head[0] >= 20 && head[0] <= 23 && head[1] == 3 && head[2] <= 4: // a record of TLS, RFC 8446 5.1
		return &capture.ForeignError{Addr: c.addr, Speaks: "TLS", Hint: "write rtsps:// in the URL, or use the camera's port for rtsp://"}
	}
	return nil
}

// Close closes the sending side first where a session was torn down, and takes
// what the camera still sends, for a moment. A plain close while video still
// comes in makes the kernel reset the connection, and a reset may reach the
// camera before it has read TEARDOWN: the session would stay open until its
// timeout, and cameras have few.
func (c *cameraConn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.torn.Swap(false) {
		if half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(linger)) == nil {
			_, _ = io.Copy(io.Discard, c.Conn) // ends at the camera's close, a reset, or the deadline
		}
	}
	return c.Conn.Close()
}
