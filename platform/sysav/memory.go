package sysav

import "unsafe"

// pointer turns an address that C gave into a pointer. The detour through the
// address of the variable tells vet that the value is no Go pointer in disguise.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

func at[T any](address uintptr, offset int) *T {
	return (*T)(unsafe.Add(pointer(address), offset))
}

// view is n bytes of C's memory.
func view(address uintptr, n int) []byte {
	return unsafe.Slice((*byte)(pointer(address)), n)
}

// goString copies a C string; FFmpeg's names and lines are short, its configure
// line is the longest.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	n := 0
	for n < 1<<16 && *at[byte](address, n) != 0 {
		n++
	}
	return string(view(address, n))
}

// cString is s with a NUL at its end. Pass its address in the argument list of
// call, which keeps it alive.
func cString(s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0]
}
