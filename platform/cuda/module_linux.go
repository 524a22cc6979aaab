//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// Module is a loaded PTX text (CUmodule).
type Module uintptr

// Function is a kernel (CUfunction).
type Function uintptr

// jitLog is how much of the compiler's complaint is kept.
const jitLog = 4096

// jitArgs are the options of cuModuleLoadDataEx with their log.
type jitArgs struct {
	options [2]int32
	values  [2]uintptr
	log     [jitLog]byte
}

// Load compiles PTX for the device. The error carries the compiler's words.
func (c *Context) Load(ptx []byte) (Module, error) {
	const errorLogBuffer, errorLogSize = 5, 6 // CUjit_option
	c.text = append(append(c.text[:0], ptx...), 0)
	j := &c.jit
	*j = jitArgs{options: [2]int32{errorLogBuffer, errorLogSize}}
	j.values = [2]uintptr{address(&j.log[0]), jitLog}
	err := c.calls.do(moduleLoad, c.answer(), address(&c.text[0]), uintptr(len(j.options)), address(&j.options[0]), address(&j.values[0]))
	if err != nil {
		return 0, fmt.Errorf("load kernels: %w: %s", err, bytes.TrimRight(j.log[:], "\x00\n"))
	}
	return Module(c.out[0]), nil
}

// Unload gives a module back.
func (c *Context) Unload(m Module) error { return c.calls.do(moduleUnload, uintptr(m)) }

// Function finds a kernel by its name.
func (c *Context) Function(m Module, name string) (Function, error) {
	c.text = append(append(c.text[:0], name...), 0)
	err := c.calls.do(moduleGetFunction, c.answer(), uintptr(m), address(&c.text[0]))
	return Function(c.out[0]), wrap(err, "find kernel %s", name)
}

// AllowShared lets a kernel use more than 48 KiB of dynamic shared memory.
func (c *Context) AllowShared(f Function, size int) error {
	const maxDynamicSharedSize = 8
	return c.calls.do(funcSetAttribute, uintptr(f), maxDynamicSharedSize, uintptr(size))
}

// Params are the arguments of a kernel, laid out once and launched many times.
// They live on the heap, where C may read them for the length of a launch.
type Params struct {
	values []byte
	at     []int
	ptrs   []unsafe.Pointer
}

// NewParams makes room for arguments of the given sizes in bytes, in the
// kernel's order.
func NewParams(sizes ...int) *Params {
	p := &Params{ptrs: make([]unsafe.Pointer, len(sizes))}
	total := 0
	for _, s := range sizes {
		total = (total + 15) &^ 15 // any type a kernel takes is aligned to 16 at most
		p.at = append(p.at, total)
		total += s
	}
	p.values = make([]byte, total)
	for i, at := range p.at {
		p.ptrs[i] = unsafe.Pointer(&p.values[at])
	}
	return p
}

// Set writes argument i.
func Set[T any](p *Params, i int, v T) { *(*T)(p.ptrs[i]) = v }

// At gives argument i to be written in place as a T.
func At[T any](p *Params, i int) *T { return (*T)(p.ptrs[i]) }

// Launch queues a kernel. grid and block count blocks and threads, shared is
// dynamic shared memory in bytes.
func (c *Context) Launch(f Function, grid, block [3]uint32, shared int, s Stream, p *Params) error {
	err := c.calls.do(launchKernel, uintptr(f),
		uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(block[0]), uintptr(block[1]), uintptr(block[2]),
		uintptr(shared), uintptr(s), address(&p.ptrs[0]), 0)
	runtime.KeepAlive(p)
	return err
}
