package rtsp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"edgecam/capture"
)

// dialer opens the connection of one session and can cut it from outside.
// Names are looked up anew each time, since cameras change their addresses.
type dialer struct {
	limit time.Duration // for the TCP connection alone

	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

// dial is gortsplib's DialContext. Its errors are *capture.RefusedError and
// *capture.UnreachableError.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, dialFailure(addr, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		_ = conn.Close() // the session has ended: nobody is left to tell
		return nil, net.ErrClosed
	}
	d.conns = append(d.conns, conn)
	return &framedConn{Conn: &lingerConn{Conn: conn}}, nil
}

// hangUp closes what is open, so that no read or write waits any longer.
func (d *dialer) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
	for _, c := range d.conns {
		_ = c.Close() // a second Close is harmless
	}
}

func dialFailure(addr string, err error) error {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return &capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleName, Detail: dns.Err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &capture.RefusedError{Addr: addr}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleRoute, Detail: errnoText(err)}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleTimeout}
	default:
		return &capture.UnreachableError{Addr: addr, Obstacle: capture.ObstacleNetwork, Detail: errnoText(err)}
	}
}

// errnoText is the system's own word, without the addresses that net adds.
func errnoText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return ""
}

// linger is how long a connection waits for the camera to take note of
// TEARDOWN.
const linger = 300 * time.Millisecond

// lingerConn closes gently after TEARDOWN. A plain close while video still
// comes in makes the kernel reset the connection, and a reset may reach the
// camera before it has read TEARDOWN: the session would stay open until its
// timeout, and cameras have few.
type lingerConn struct {
	net.Conn
	mu   sync.Mutex
	torn bool
}

// Write looks out for TEARDOWN, which gortsplib writes in one piece.
func (c *lingerConn) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("TEARDOWN ")) {
		c.mu.Lock()
		c.torn = true
		c.mu.Unlock()
	}
	return c.Conn.Write(b)
}

// Close closes the sending side first where a session was torn down, and takes
// what the camera still sends, for a moment.
func (c *lingerConn) Close() error {
	c.mu.Lock()
	torn := c.torn
	c.torn = false
	c.mu.Unlock()
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && torn {
		if half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(linger)) == nil {
			_, _ = io.Copy(io.Discard, c.Conn) // ends at the camera's close, a reset, or the deadline
		}
	}
	return c.Conn.Close()
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
