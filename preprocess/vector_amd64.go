//go:build !purego && !noasm

package preprocess

import "golang.org/x/sys/cpu"

// haveVectors says whether this processor runs the assembly.
func haveVectors() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }
