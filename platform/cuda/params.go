package cuda

import (
	"fmt"
	"unsafe"
)

// Params are the arguments of a kernel, laid out once and launched many times.
// They live on the heap, where C may read them for the length of a launch.
type Params struct {
	values []uint64 // for their alignment
	sizes  []int
	ptrs   []unsafe.Pointer // into values, as cuLaunchKernel takes them
}

// NewParams makes room for arguments of the given sizes in bytes, at least one
// each, in the kernel's order.
func NewParams(sizes ...int) *Params {
	const word = 8
	words := 0
	for i, s := range sizes {
		if s < 1 {
			panic(fmt.Sprintf("cuda: kernel argument %d of %d bytes", i, s))
		}
		words += (s + word - 1) / word
	}
	p := &Params{values: make([]uint64, words), sizes: append([]int(nil), sizes...), ptrs: make([]unsafe.Pointer, len(sizes))}
	at := 0
	for i, s := range sizes {
		p.ptrs[i] = unsafe.Pointer(&p.values[at])
		at += (s + word - 1) / word
	}
	return p
}

// Set writes argument i. T must be what the kernel takes, without Go pointers;
// a T of another size than NewParams was told panics.
func Set[T any](p *Params, i int, v T) { *At[T](p, i) = v }

// At gives argument i to be written in place as a T, under the rule of Set.
func At[T any](p *Params, i int) *T {
	var v T
	if size := int(unsafe.Sizeof(v)); size != p.sizes[i] {
		panic(fmt.Sprintf("cuda: kernel argument %d has %d bytes: %T has %d", i, p.sizes[i], v, size))
	}
	return (*T)(p.ptrs[i])
}
