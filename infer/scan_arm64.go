//go:build !purego && !noasm

package infer

// haveVectors says whether this processor runs the assembly: all of this
// architecture have NEON.
func haveVectors() bool { return true }
