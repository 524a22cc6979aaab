package cuda

import "unsafe"

// longest is where reading a C string stops, should its end be missing.
const longest = 4096

// goString copies a NUL-terminated string of the driver; nil is "".
func goString(s *byte) string {
	if s == nil {
		return ""
	}
	n := 0
	for n < longest && *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}
