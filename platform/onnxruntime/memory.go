package onnxruntime

import "unsafe"

// pointer turns an address that C gave into a pointer. The detour through the
// address of the variable tells vet that the value is no Go pointer in
// disguise: it is memory of the library, which the garbage collector ignores.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// words is a view of n pointer-sized values at address.
func words(address uintptr, n int) []uintptr {
	return unsafe.Slice((*uintptr)(pointer(address)), n)
}

// goString copies a NUL-terminated C string; no library text is longer than 1 MiB.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	n := 0
	for n < 1<<20 && *(*byte)(unsafe.Add(pointer(address), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(pointer(address)), n))
}

// cString is s with a NUL at its end, on the Go heap: pass its address in the
// argument list of call, which keeps it alive.
func cString(s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0]
}
