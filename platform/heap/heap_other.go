//go:build !linux || !cgo

package heap

import "runtime/debug"

// Trim gives back what Go keeps; of the C library's nothing is known here.
func Trim() { debug.FreeOSMemory() }
