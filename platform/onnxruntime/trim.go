package onnxruntime

import "github.com/ebitengine/purego"

// Trim gives memory back to the system that sessions, closed or just made, have
// freed: the C library keeps it for later, tens of megabytes after a few models.
// Where the C library has no such call, nothing happens.
func Trim() {
	address, err := purego.Dlsym(purego.RTLD_DEFAULT, "malloc_trim")
	if err != nil {
		return
	}
	purego.SyscallN(address, 0)
}
