package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Module is a loaded PTX text (CUmodule). 0 is none.
type Module uintptr

// Function is a kernel (CUfunction). It lives as long as its module.
type Function uintptr

// jitLog is how much of the compiler's complaint is kept, in bytes.
const jitLog = 4096

// jitArgs are the options of cuModuleLoadDataEx and the log that one of the
// values points to.
type jitArgs struct {
	options [2]int32 // CUjit_option
	values  [2]uintptr
	log     [jitLog]byte
}

// Load compiles PTX for the device. The error carries the compiler's words.
func (c *Context) Load(ptx []byte) (Module, error) {
	const errorLogBuffer, errorLogSize = 5, 6
	if len(ptx) == 0 {
		return 0, errors.New("load kernels: no text")
	}
	text := append(bytes.Clone(ptx), 0)
	j := &jitArgs{options: [2]int32{errorLogBuffer, errorLogSize}}
	// j is on the heap, as the call below takes its address, and stays in place.
	j.values = [2]uintptr{uintptr(unsafe.Pointer(&j.log[0])), jitLog}
	err := c.calls.do(moduleLoad, c.answer(), uintptr(unsafe.Pointer(&text[0])),
		uintptr(len(j.options)), uintptr(unsafe.Pointer(&j.options[0])), uintptr(unsafe.Pointer(&j.values[0])))
	runtime.KeepAlive(j)
	if err != nil {
		if said := j.said(); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return 0, wrap(err, "load kernels")
	}
	return Module(c.out[0]), nil
}

// said is the log on one line.
func (j *jitArgs) said() string {
	text, _, _ := bytes.Cut(j.log[:], []byte{0})
	return strings.Join(strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// Unload gives a module back. 0 is nothing.
func (c *Context) Unload(m Module) error {
	if m == 0 {
		return nil
	}
	return c.calls.do(moduleUnload, uintptr(m))
}

// Function finds a kernel by its name.
func (c *Context) Function(m Module, name string) (Function, error) {
	text := append([]byte(name), 0)
	err := c.calls.do(moduleGetFunction, c.answer(), uintptr(m), uintptr(unsafe.Pointer(&text[0])))
	return Function(c.out[0]), wrap(err, "find kernel %s", name)
}

// AllowShared lets a kernel use more than 48 KiB of dynamic shared memory.
func (c *Context) AllowShared(f Function, size int) error {
	const maxDynamicSharedSize = 8 // CUfunction_attribute
	return c.calls.do(funcSetAttribute, uintptr(f), maxDynamicSharedSize, uintptr(size))
}

// Launch queues a kernel. grid and block count blocks and threads, shared is
// dynamic shared memory in bytes. The arguments are copied before it returns, so
// p may be written again at once; nil is no arguments.
func (c *Context) Launch(f Function, grid, block [3]uint32, shared int, s Stream, p *Params) error {
	var ptrs *unsafe.Pointer
	if p != nil && len(p.ptrs) > 0 {
		ptrs = &p.ptrs[0]
	}
	err := c.queue(launchKernel, uintptr(f),
		uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(block[0]), uintptr(block[1]), uintptr(block[2]),
		uintptr(shared), uintptr(s), uintptr(unsafe.Pointer(ptrs)), 0)
	runtime.KeepAlive(p)
	return err
}
