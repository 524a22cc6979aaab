//go:build cgo

package avcodec

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// HardwareDevice is a GPU that decodes. All decoders of the process that use
// one GPU share one value: it holds the GPU's primary context and one stream.
// It is safe for concurrent use.
type HardwareDevice struct {
	ordinal int

	mu sync.Mutex
	c  *C.ec_device // guarded by mu; nil once closed
}

// OpenCUDA opens the NVIDIA GPU of the number that the CUDA driver gives it,
// from 0. It loads libcuda and libnvcuvid; nothing is needed before. The error
// is a *HardwareError that says what is missing.
func (l *Library) OpenCUDA(ordinal int) (*HardwareDevice, error) {
	var (
		d     = &HardwareDevice{ordinal: ordinal}
		count C.int
		why   [256]C.char
	)
	code := C.ec_device_open(&d.c, C.int(ordinal), &count, &why[0], C.int64_t(len(why)))
	if code != 0 {
		return nil, &HardwareError{Reason: deviceReason(int(code), ordinal, int(count), C.GoString(&why[0]))}
	}
	return d, nil
}

func deviceReason(code, ordinal, count int, why string) string {
	switch code {
	case C.EC_DEVICE_BUILD:
		return "this build of FFmpeg has no CUDA"
	case C.EC_DEVICE_DRIVER:
		return "no NVIDIA driver: " + why
	case C.EC_DEVICE_NVCUVID:
		return "the NVIDIA driver's video part is missing, in a container set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility: " + why
	case C.EC_DEVICE_ORDINAL:
		return fmt.Sprintf("no GPU number %d, the driver shows %d", ordinal, count)
	}
	return why
}

// use calls f with the device, which stays open until it returns.
func (d *HardwareDevice) use(f func(*C.ec_device) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.c == nil {
		return &HardwareError{Reason: "the device was closed"}
	}
	return f(d.c)
}

// Ordinal is the GPU's number.
func (d *HardwareDevice) Ordinal() int { return d.ordinal }

// Stream is the CUstream that the decoders' last step for each picture is
// queued on, a copy into its surface; 0 once closed. Before a kernel reads
// pictures that Decode has handed out, its stream must wait for an event that was
// recorded on this stream after that: once for any number of pictures. The
// stream belongs to the GPU's primary context, and does not block.
func (d *HardwareDevice) Stream() uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.c == nil {
		return 0
	}
	return uintptr(C.ec_device_stream(d.c))
}

// Close gives up the device. Decoders and surfaces that use it go on; the
// primary context is released with the last of them. It may be called twice.
func (d *HardwareDevice) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.c != nil {
		C.ec_device_close(d.c)
		d.c = nil
	}
}

// Surface is a picture in device memory that stays until Release, also when
// its decoder is closed.
type Surface struct {
	c        *C.ec_surface
	released atomic.Bool
}

// Keep takes the picture over from the decoder: the addresses in Plane stay valid
// until the surface is released. It is for the function that was given the
// picture, once, and nil if C has no memory for the handle.
func (p *Picture) Keep() *Surface {
	if p.owner == nil {
		panic("avcodec: keep of a picture that is not in device memory, or was kept")
	}
	c := C.ec_decoder_keep(p.owner.c)
	p.owner = nil
	if c == nil {
		return nil
	}
	return &Surface{c: c}
}

// Release gives the surface back to the GPU's decoder. The device must have
// finished reading it. It is for any goroutine, once: the second call panics.
// The last surface of a decoder that was closed frees the decoder in the driver.
func (s *Surface) Release() {
	if s.released.Swap(true) {
		panic("avcodec: surface released twice")
	}
	C.ec_surface_release(s.c)
	s.c = nil
}
