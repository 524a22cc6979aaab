//go:build linux && (amd64 || arm64)

package cuda

// DevicePtr is an address that kernels use (CUdeviceptr).
type DevicePtr uint64

// Alloc takes device memory, aligned to 256 bytes at least.
func (c *Context) Alloc(size int) (DevicePtr, error) {
	if err := checkSize(size); err != nil {
		return 0, err
	}
	err := c.calls.do(memAlloc, c.answer(), uintptr(size))
	return DevicePtr(c.out[0]), wrap(err, "allocate %d bytes of gpu memory", size)
}

// Free gives device memory back.
func (c *Context) Free(p DevicePtr) error { return c.calls.do(memFree, uintptr(p)) }

// Host is page-locked memory that the GPU reads and writes in place: Bytes is
// the processor's view, Device the GPU's.
type Host struct {
	Bytes  []byte
	Device DevicePtr
}

// HostAlloc takes locked, mapped memory. Never write-combined: decoders read
// their reference pictures back.
func (c *Context) HostAlloc(size int) (Host, error) {
	const portable, deviceMap = 1, 2
	if err := checkSize(size); err != nil {
		return Host{}, err
	}
	if err := c.calls.do(memHostAlloc, c.answer(), uintptr(size), portable|deviceMap); err != nil {
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

// HostFree gives memory of HostAlloc back.
func (c *Context) HostFree(h Host) error { return c.calls.do(memFreeHost, address(&h.Bytes[0])) }

// HostRegister locks size bytes at p that the process owns and maps them for the
// device. Error 801 means that the device cannot (older Jetsons): use HostAlloc.
func (c *Context) HostRegister(p uintptr, size int) (DevicePtr, error) {
	const portable, deviceMap = 1, 2
	if err := c.calls.do(memHostRegister, p, uintptr(size), portable|deviceMap); err != nil {
		return 0, wrap(err, "register %d bytes of host memory", size)
	}
	dev, err := c.devicePointer(p)
	if err != nil {
		_ = c.calls.do(memHostUnregister, p) // the first error says more
	}
	return dev, err
}

// HostUnregister undoes HostRegister, once the device has finished with it.
func (c *Context) HostUnregister(p uintptr) error { return c.calls.do(memHostUnregister, p) }

func (c *Context) devicePointer(p uintptr) (DevicePtr, error) {
	err := c.calls.do(memHostGetDevicePointer, c.answer(), p, 0)
	return DevicePtr(c.out[0]), err
}

// CopyIn queues a copy to the device. src must stay as it is until the stream
// has passed it, and be locked memory for the copy to be asynchronous.
func (c *Context) CopyIn(dst DevicePtr, src uintptr, size int, s Stream) error {
	return c.calls.do(memcpyHtoDAsync, uintptr(dst), src, uintptr(size), uintptr(s))
}

// CopyInNow copies pageable memory to the device and waits.
func (c *Context) CopyInNow(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return c.calls.do(memcpyHtoD, uintptr(dst), address(&src[0]), uintptr(len(src)))
}

// CopyOut queues a copy from the device into locked memory.
func (c *Context) CopyOut(dst uintptr, src DevicePtr, size int, s Stream) error {
	return c.calls.do(memcpyDtoHAsync, dst, uintptr(src), uintptr(size), uintptr(s))
}

// CopyWithin queues a copy from device memory to device memory.
func (c *Context) CopyWithin(dst, src DevicePtr, size int, s Stream) error {
	return c.calls.do(memcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(size), uintptr(s))
}

// Fill queues setting size bytes to v.
func (c *Context) Fill(dst DevicePtr, v byte, size int, s Stream) error {
	return c.calls.do(memsetD8Async, uintptr(dst), uintptr(v), uintptr(size), uintptr(s))
}
