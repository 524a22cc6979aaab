package onnxruntime

import (
	"fmt"
	"unsafe"
)

// DeviceMemory is memory of a GPU that the caller owns.
type DeviceMemory struct {
	Device  int     // CUDA ordinal
	Address uintptr // CUdeviceptr
	Bytes   int     // that lie there
}

// NewDeviceTensor makes a tensor over memory of a GPU, which must outlive it.
// Only bindings of sessions with a CUDA provider take it; Data is nil.
func (l *Library) NewDeviceTensor(m DeviceMemory, element ElementType, shape ...int64) (*Tensor, error) {
	n, err := elements(shape)
	if err != nil {
		return nil, err
	}
	size := n * element.Size()
	switch {
	case size == 0 || element == Uint8:
		return nil, fmt.Errorf("make tensor %v: edgecam passes no %v to a GPU", shape, element)
	case m.Address == 0 || size > m.Bytes:
		return nil, fmt.Errorf("make tensor %v: %d bytes at %#x, %d needed", shape, m.Bytes, m.Address, size)
	}
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("make tensor %v: %w", shape, err)
	}
	t := &Tensor{library: l, shape: shape}
	if err := l.wrapDevice(t, m, element, size); err != nil {
		l.drop()
		return nil, fmt.Errorf("make tensor %v: %w", shape, err)
	}
	return t, nil
}

func (l *Library) wrapDevice(t *Tensor, m DeviceMemory, element ElementType, size int) error {
	const deviceAllocator, memoryDefault = 0, 0
	name := cString("Cuda")
	var memory uintptr
	if err := l.call(fnCreateMemoryInfo, uintptr(unsafe.Pointer(name)), deviceAllocator, uintptr(m.Device), memoryDefault, uintptr(unsafe.Pointer(&memory))); err != nil {
		return err
	}
	defer l.release(fnReleaseMemoryInfo, memory) // the tensor keeps a copy
	return l.call(fnCreateTensorWithDataAsOrtValue, memory, m.Address, uintptr(size),
		uintptr(unsafe.Pointer(&t.shape[0])), uintptr(len(t.shape)), uintptr(element), uintptr(unsafe.Pointer(&t.handle)))
}

// Size is the bytes of a value of a type that tensors are made of, 0 = of no such.
func (t ElementType) Size() int {
	switch t {
	case Int64, Float64:
		return 8
	case Float32, Int32:
		return 4
	case Float16:
		return 2
	case Uint8:
		return 1
	}
	return 0
}
