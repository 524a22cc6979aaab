package cuda

import (
	"fmt"
	"unsafe"
)

// call is a function of the driver API that a Device makes.
type call int

// The functions, in no order that matters.
const (
	deviceGet call = iota
	primaryCtxGetState
	primaryCtxSetFlags
	primaryCtxRetain
	primaryCtxRelease
	ctxSetCurrent
	threadCaptureMode
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
	memcpyDtoH
	memcpyHtoDAsync
	memcpyDtoHAsync
	memcpyDtoDAsync
	memsetD8Async
	streamCreate
	streamCreateWithPriority
	ctxGetStreamPriorityRange
	streamDestroy
	streamSynchronize
	streamWaitEvent
	streamWaitValue
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

// symbols are the exported names, the newest first. cuda.h maps the plain names
// to the _v2 ones: those of memory, streams and events are the only 64-bit ABI
// since CUDA 4.0; those of the primary context came with CUDA 11, which drivers
// of JetPack 4 do not have, and take the same arguments.
var symbols = [callCount][]string{ //nolint:gochecknoglobals // constant table
	deviceGet:                 {"cuDeviceGet"},
	primaryCtxGetState:        {"cuDevicePrimaryCtxGetState"},
	primaryCtxSetFlags:        {"cuDevicePrimaryCtxSetFlags_v2", "cuDevicePrimaryCtxSetFlags"},
	primaryCtxRetain:          {"cuDevicePrimaryCtxRetain"},
	primaryCtxRelease:         {"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"},
	ctxSetCurrent:             {"cuCtxSetCurrent"},
	threadCaptureMode:         {"cuThreadExchangeStreamCaptureMode"},
	ctxSynchronize:            {"cuCtxSynchronize"},
	memGetInfo:                {"cuMemGetInfo_v2"},
	memAlloc:                  {"cuMemAlloc_v2"},
	memFree:                   {"cuMemFree_v2"},
	memHostAlloc:              {"cuMemHostAlloc"},
	memFreeHost:               {"cuMemFreeHost"},
	memHostRegister:           {"cuMemHostRegister_v2"},
	memHostUnregister:         {"cuMemHostUnregister"},
	memHostGetDevicePointer:   {"cuMemHostGetDevicePointer_v2"},
	memcpyHtoD:                {"cuMemcpyHtoD_v2"},
	memcpyDtoH:                {"cuMemcpyDtoH_v2"},
	memcpyHtoDAsync:           {"cuMemcpyHtoDAsync_v2"},
	memcpyDtoHAsync:           {"cuMemcpyDtoHAsync_v2"},
	memcpyDtoDAsync:           {"cuMemcpyDtoDAsync_v2"},
	memsetD8Async:             {"cuMemsetD8Async"},
	streamCreate:              {"cuStreamCreate"},
	streamCreateWithPriority:  {"cuStreamCreateWithPriority"},
	ctxGetStreamPriorityRange: {"cuCtxGetStreamPriorityRange"},
	streamDestroy:             {"cuStreamDestroy_v2"},
	streamSynchronize:         {"cuStreamSynchronize"},
	streamWaitEvent:           {"cuStreamWaitEvent"},
	streamWaitValue:           {"cuStreamWaitValue32_v2", "cuStreamWaitValue32"},
	eventCreate:               {"cuEventCreate"},
	eventDestroy:              {"cuEventDestroy_v2"},
	eventRecord:               {"cuEventRecord"},
	eventQuery:                {"cuEventQuery"},
	eventSynchronize:          {"cuEventSynchronize"},
	eventElapsed:              {"cuEventElapsedTime"},
	moduleLoad:                {"cuModuleLoadDataEx"},
	moduleUnload:              {"cuModuleUnload"},
	moduleGetFunction:         {"cuModuleGetFunction"},
	funcSetAttribute:          {"cuFuncSetAttribute"},
	launchKernel:              {"cuLaunchKernel"},
}

// optional are functions that older drivers lack and nothing depends on; their
// entry in calls.fn is 0 there.
func (f call) optional() bool { return f == streamWaitValue || f == threadCaptureMode }

// String is the function's name as errors show it.
func (f call) String() string { return symbols[f][0] }

// calls is the bound table.
type calls struct {
	api *api
	fn  [callCount]uintptr
}

// do makes a call and turns its CUresult into an error. Arguments are passed as
// whole registers, of which C takes the low part for its ints.
//
// An argument written as uintptr(unsafe.Pointer(&v)) in the call itself may
// point into Go memory: the directive moves v to the heap, which does not move
// as goroutine stacks do, and keeps it alive until do returns. What C keeps for
// longer must not come this way.
//
//go:uintptrescapes
func (c *calls) do(f call, args ...uintptr) error {
	if code := invoke(c.fn[f], args...); code != 0 {
		return c.api.fail(f.String(), code)
	}
	return nil
}

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
