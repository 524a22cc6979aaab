//go:build linux && cgo

package heap

/*
#include <malloc.h>

static void trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

import "runtime/debug"

// Trim takes some milliseconds: it is for after a start, not for every picture.
func Trim() {
	debug.FreeOSMemory()
	C.trim()
}
