package web

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unsentBytes is how much the kernel holds of a connection that is not on the
// wire yet. It holds megabytes if left alone, and a slow viewer would be shown
// every picture in them before a new one.
const unsentBytes = 32 << 10

// prepareSocket sets what the accepted connections inherit.
func prepareSocket(_, _ string, raw syscall.RawConn) error {
	// A kernel that refuses makes pictures older for slow viewers, and that is
	// all: no reason not to start.
	return raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentBytes)
	})
}
