package ort

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// fastInt8 tells whether the CPU multiplies and adds int8 in one instruction,
// and names it.
func fastInt8() (bool, string) {
	switch {
	case runtime.GOARCH == "amd64" && cpu.X86.HasAVX512VNNI:
		return true, "avx512_vnni"
	case runtime.GOARCH == "amd64" && cpu.X86.HasAVXVNNI:
		return true, "avx_vnni"
	case runtime.GOARCH == "arm64" && cpu.ARM64.HasASIMDDP:
		return true, "asimddp"
	}
	return false, ""
}
