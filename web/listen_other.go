//go:build !linux

package web

import "syscall"

// prepareSocket does nothing where there is no way to bound unsent bytes.
func prepareSocket(_, _ string, _ syscall.RawConn) error { return nil }
