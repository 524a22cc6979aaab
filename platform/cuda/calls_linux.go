//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// call is a function of the driver API that needs a context.
type call int

// The functions, in no order that matters.
const (
	deviceGet call = iota
	primaryCtxRetain
	primaryCtxRelease
	ctxSetCurrent
	ctxSynchronize
	memGetInfo
	memAlloc
	memFree
	memHostAlloc
	memFreeHost
	memHostRegister
	memHostUnregister
	memHostGetDevicePointer
	memcpyHtoD
	memcpyHtoDAsync
	memcpyDtoHAsync
	memcpyDtoDAsync
	memsetD8Async
	streamCreate
	streamDestroy
	streamSynchronize
	streamWaitEvent
	eventCreate
	eventDestroy
	eventRecord
	eventQuery
	eventSynchronize
	eventElapsed
	moduleLoad
	moduleUnload
	moduleGetFunction
	funcSetAttribute
	launchKernel
	callCount
)

// symbols are the exported names. The _v2 functions are the ABI since CUDA 3.2
// and 4.0; cuda.h maps the plain names to them.
var symbols = [callCount]string{ //nolint:gochecknoglobals // constant table
	deviceGet:               "cuDeviceGet",
	primaryCtxRetain:        "cuDevicePrimaryCtxRetain",
	primaryCtxRelease:       "cuDevicePrimaryCtxRelease",
	ctxSetCurrent:           "cuCtxSetCurrent",
	ctxSynchronize:          "cuCtxSynchronize",
	memGetInfo:              "cuMemGetInfo_v2",
	memAlloc:                "cuMemAlloc_v2",
	memFree:                 "cuMemFree_v2",
	memHostAlloc:            "cuMemHostAlloc",
	memFreeHost:             "cuMemFreeHost",
	memHostRegister:         "cuMemHostRegister_v2",
	memHostUnregister:       "cuMemHostUnregister",
	memHostGetDevicePointer: "cuMemHostGetDevicePointer_v2",
	memcpyHtoD:              "cuMemcpyHtoD_v2",
	memcpyHtoDAsync:         "cuMemcpyHtoDAsync_v2",
	memcpyDtoHAsync:         "cuMemcpyDtoHAsync_v2",
	memcpyDtoDAsync:         "cuMemcpyDtoDAsync_v2",
	memsetD8Async:           "cuMemsetD8Async",
	streamCreate:            "cuStreamCreate",
	streamDestroy:           "cuStreamDestroy_v2",
	streamSynchronize:       "cuStreamSynchronize",
	streamWaitEvent:         "cuStreamWaitEvent",
	eventCreate:             "cuEventCreate",
	eventDestroy:            "cuEventDestroy_v2",
	eventRecord:             "cuEventRecord",
	eventQuery:              "cuEventQuery",
	eventSynchronize:        "cuEventSynchronize",
	eventElapsed:            "cuEventElapsedTime",
	moduleLoad:              "cuModuleLoadDataEx",
	moduleUnload:            "cuModuleUnload",
	moduleGetFunction:       "cuModuleGetFunction",
	funcSetAttribute:        "cuFuncSetAttribute",
	launchKernel:            "cuLaunchKernel",
}

// calls is the bound table. Calls go through purego.SyscallN, which allocates
// nothing: they are made for every batch.
type calls struct {
	api *api
	fn  [callCount]uintptr
}

func bindCalls(a *api, handle uintptr) (*calls, error) {
	c := &calls{api: a}
	for i, name := range symbols {
		fn, err := lookUp(handle, []string{name})
		if err != nil {
			return nil, err
		}
		c.fn[i] = fn
	}
	return c, nil
}

// do makes a call and turns its CUresult into an error.
func (c *calls) do(f call, args ...uintptr) error {
	r, _, _ := purego.SyscallN(c.fn[f], args...)
	if code := int32(r); code != 0 {
		return c.api.fail(symbols[f], code)
	}
	return nil
}

// raw makes a call whose answer is not an error in itself.
func (c *calls) raw(f call, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(c.fn[f], args...)
	return int32(r)
}

// address is where C reads or writes for the length of one call. The value must
// be on the heap, as goroutine stacks move.
func address[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

// hostBytes views size bytes of the driver's memory at p.
func hostBytes(p uintptr, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), size)
}

func checkSize(size int) error {
	if size <= 0 {
		return fmt.Errorf("%d bytes asked for: at least one is needed", size)
	}
	return nil
}
