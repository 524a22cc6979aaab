package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenError says why the server cannot listen, and what to do about it.
type ListenError struct {
	Address string // as configured
	Err     error
	Hint    string // what the operator can do
}

// Error gives address, cause and hint.
func (e *ListenError) Error() string {
	return fmt.Sprintf("listen on %s: %v; %s", e.Address, e.Err, e.Hint)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

// ErrAuthRequired says that an address which other machines reach was
// configured without a login.
var ErrAuthRequired = errors.New("other machines reach this address and no login is configured")

// listen opens the address. It returns the host part as configured, too.
func listen(address string, auth bool) (net.Listener, string, error) {
	fail := func(err error, hint string) (net.Listener, string, error) {
		return nil, "", &ListenError{Address: address, Err: err, Hint: hint}
	}
	const form = "write server.listen as host:port, for example 127.0.0.1:8080"
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fail(cause(err), form)
	}
	// The name is resolved once, and what was checked is what is listened on.
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return fail(cause(err), form)
	}
	if !resolved.IP.IsLoopback() && !auth {
		return fail(ErrAuthRequired, "set server.auth (user, and password_hash from `edgecam hash-password`), or listen on 127.0.0.1")
	}
	lc := net.ListenConfig{Control: prepareSocket}
	lc.SetMultipathTCP(false) // its sockets do not take all of prepareSocket's options
	network := "tcp"
	if resolved.IP.To4() != nil {
		network = "tcp4" // else 0.0.0.0 would mean every IPv6 address, too
	}
	l, err := lc.Listen(context.Background(), network, resolved.String())
	if err != nil {
		return fail(cause(err), listenHint(err))
	}
	return l, host, nil
}

// cause strips what net adds around the reason: the address is named already.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var addr *net.AddrError
	if errors.As(err, &addr) {
		return errors.New(addr.Err)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program, perhaps another edgecam, has this port: stop it or set server.listen to a free one"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need the capability CAP_NET_BIND_SERVICE: set server.listen to a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have the address: set server.listen to one of its own"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise LimitNOFILE in the unit, or ulimit -n in a shell"
	default:
		return "set server.listen to another address"
	}
}
