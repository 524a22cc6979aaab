package rtsp

import (
	"context"
	"errors"
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
	target   Target
	limit    time.Duration // for the TCP connection alone
	resolver *net.Resolver // nil = the system's
	tls      TLS

	mu   sync.Mutex
	conn *cameraConn // nil before there is one
	raw  net.Conn    // beneath conn
	cut  bool
}

// dial is gortsplib's DialContext. It goes to the target, whatever the library
// takes for the default port, and encrypts by itself: the library would do so
// above it, where nothing of ours could see the session. Its errors are of
// package capture.
func (d *dialer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	addr := d.target.Addr()
	raw, err := d.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := &cameraConn{Conn: raw, addr: addr}
	if d.target.encrypted() {
		if conn.Conn, err = d.tls.handshake(ctx, raw, d.target); err != nil {
			_ = raw.Close() // the handshake's error tells
			return nil, err
		}
		conn.encrypted = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = conn
	return &framedConn{Conn: conn, framer: framer{agreed: &conn.agreed}, owed: &conn.owed}, nil
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	conn, err := (&net.Dialer{Resolver: d.resolver}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, dialFailure(addr, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		_ = conn.Close() // the session has ended: nobody is left to tell
		return nil, net.ErrClosed
	}
	d.raw = conn
	return conn, nil
}

// open gives the connection, or nil.
func (d *dialer) open() *cameraConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn
}

// hangUp closes what is open, so that no read or write waits any longer.
func (d *dialer) hangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
	if d.raw != nil {
		_ = d.raw.Close() // a second Close is harmless
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

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
