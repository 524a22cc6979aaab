package cuda

import "unsafe"

// DevicePtr is an address that kernels use (CUdeviceptr). 0 is none.
type DevicePtr uint64

// Flags of cuMemHostAlloc and cuMemHostRegister, which are the same. Portable
// memory counts as locked for every context, mapped memory has a device address.
const hostPortable, hostDeviceMap = 1, 2

// Alloc takes device memory, aligned to 256 bytes at least, of any content.
func (c *Context) Alloc(size int) (DevicePtr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	err := c.calls.do(memAlloc, c.answer(), uintptr(size))
	return DevicePtr(c.out[0]), wrap(err, "allocate %d bytes of gpu memory", size)
}

// Free gives device memory back; it waits for what the device is doing. 0 is
// nothing.
func (c *Context) Free(p DevicePtr) error {
	if p == 0 {
		return nil
	}
	return c.calls.do(memFree, uintptr(p))
}

// Host is page-locked memory that the GPU reads and writes in place: Bytes is
// the processor's view, Device the GPU's.
type Host struct {
	Bytes  []byte
	Device DevicePtr
}

// HostAlloc takes locked, mapped memory of any content. Never write-combined:
// decoders read their reference pictures back.
func (c *Context) HostAlloc(size int) (Host, error) {
	if err := checkSize(size); err != nil {
		return Host{}, err
	}
	if err := c.calls.do(memHostAlloc, c.answer(), uintptr(size), hostPortable|hostDeviceMap); err != nil {
		return Host{}, wrap(err, "allocate %d bytes of locked memory", size)
	}
	p := uintptr(c.out[0])
	dev, err := c.devicePointer(p)
	if err != nil {
		_ = c.calls.do(memFreeHost, p) // the first error says more
		return Host{}, err
	}
	return Host{Bytes: hostBytes(p, size), Device: dev}, nil
}

// HostFree gives memory of HostAlloc back; h.Bytes must not be touched after.
// The zero Host is nothing.
func (c *Context) HostFree(h Host) error {
	if len(h.Bytes) == 0 {
		return nil
	}
	return c.calls.do(memFreeHost, uintptr(unsafe.Pointer(unsafe.SliceData(h.Bytes))))
}

// HostRegister locks size bytes at p that the process owns, outside the Go heap,
// and maps them for the device. CodeNotSupported means that the device cannot
// (older Jetsons): use HostAlloc.
func (c *Context) HostRegister(p uintptr, size int) (DevicePtr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	if err := c.calls.do(memHostRegister, p, uintptr(size), hostPortable|hostDeviceMap); err != nil {
		return 0, wrap(err, "register %d bytes of host memory", size)
	}
	dev, err := c.devicePointer(p)
	if err != nil {
		_ = c.calls.do(memHostUnregister, p) // the first error says more
		return 0, err
	}
	return dev, nil
}

// HostUnregister undoes HostRegister, once the device has finished with it.
func (c *Context) HostUnregister(p uintptr) error { return c.calls.do(memHostUnregister, p) }

func (c *Context) devicePointer(p uintptr) (DevicePtr, error) {
	err := c.calls.do(memHostGetDevicePointer, c.answer(), p, 0)
	return DevicePtr(c.out[0]), wrap(err, "find the gpu's address of host memory")
}

// CopyIn queues a copy to the device. src must stay as it is until the stream
// has passed it, and be locked memory for the copy to be asynchronous; it must
// not be Go memory.
func (c *Context) CopyIn(dst DevicePtr, src uintptr, size int, s Stream) error {
	return c.queue(memcpyHtoDAsync, uintptr(dst), src, uintptr(size), uintptr(s))
}

// CopyInNow copies any memory to the device and waits until it is there. It does
// not wait for streams.
func (c *Context) CopyInNow(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	err := c.calls.do(memcpyHtoD, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)))
	if err != nil {
		return err
	}
	// Up to 64 KiB of pageable memory may still be on their way when the call
	// returns, and streams of NewStream do not wait for the default stream.
	return c.Wait(0)
}

// CopyOut queues a copy from the device into locked memory, not Go memory.
func (c *Context) CopyOut(dst uintptr, src DevicePtr, size int, s Stream) error {
	return c.queue(memcpyDtoHAsync, dst, uintptr(src), uintptr(size), uintptr(s))
}

// CopyOutNow copies from the device into any memory and waits until it is there.
// It does not wait for streams.
func (c *Context) CopyOutNow(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return c.calls.do(memcpyDtoH, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)))
}

// CopyWithin queues a copy between two places that the device can address:
// device memory, or the device's address of host memory.
func (c *Context) CopyWithin(dst, src DevicePtr, size int, s Stream) error {
	return c.queue(memcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(size), uintptr(s))
}

// Fill queues setting size bytes to v.
func (c *Context) Fill(dst DevicePtr, v byte, size int, s Stream) error {
	return c.queue(memsetD8Async, uintptr(dst), uintptr(v), uintptr(size), uintptr(s))
}
