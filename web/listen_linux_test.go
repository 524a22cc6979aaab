package web

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The bound on unsent bytes reaches the connections, which only inherit it.
func TestConnectionsInheritTheBound(t *testing.T) {
	l, _, err := listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	if cerr := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	if got != unsentBytes {
		t.Errorf("TCP_NOTSENT_LOWAT = %d, want %d", got, unsentBytes)
	}
}
