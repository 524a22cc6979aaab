package cuda

import "unsafe"

// CopyInBytes is CopyIn of the bytes where they lie. Locked memory must stay as
// it is until the stream has passed, and must not be Go's; of other memory the
// driver has made its own copy when the call returns.
func (c *Context) CopyInBytes(dst DevicePtr, src []byte, s Stream) error {
	if len(src) == 0 {
		return nil
	}
	return c.calls.do(memcpyHtoDAsync, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), uintptr(s))
}
