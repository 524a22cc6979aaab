package onnxruntime

import (
	"fmt"
	"sync"
	"unsafe"
)

// Tensor is a tensor outside of the Go heap.
type Tensor struct {
	library *Library
	shape   []int64
	bytes   []byte    // nil on a GPU
	data    []float32 // of a float32 tensor
	close   sync.Once
	handle  uintptr // OrtValue
}

// NewTensor makes a float32 tensor with memory of its own, zeroed. Every
// dimension must be at least 1.
func (l *Library) NewTensor(shape ...int64) (*Tensor, error) {
	return l.NewTensorOf(Float32, shape...)
}

// NewTensorOf is NewTensor for any type that has a Size.
func (l *Library) NewTensorOf(element ElementType, shape ...int64) (*Tensor, error) {
	n, err := elements(shape)
	if err != nil {
		return nil, err
	}
	if element.Size() == 0 {
		return nil, fmt.Errorf("make tensor %v: edgecam makes none of %v", shape, element)
	}
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("make tensor %v: %w", shape, err)
	}
	t := &Tensor{library: l, shape: shape}
	err = l.call(fnCreateTensorAsOrtValue, l.allocator, uintptr(unsafe.Pointer(&shape[0])), uintptr(len(shape)), uintptr(element), uintptr(unsafe.Pointer(&t.handle)))
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("make tensor %v: %w", shape, err)
	}
	var data uintptr
	if err := l.call(fnGetTensorMutableData, t.handle, uintptr(unsafe.Pointer(&data))); err != nil {
		t.Close()
		return nil, fmt.Errorf("make tensor %v: %w", shape, err)
	}
	t.bytes = unsafe.Slice((*byte)(pointer(data)), n*element.Size())
	clear(t.bytes)
	if element == Float32 {
		t.data = unsafe.Slice((*float32)(pointer(data)), n)
	}
	return t, nil
}

// Prefix is a float32 tensor of the first n entries of the first dimension, over the
// same memory: it must be closed before t.
func (t *Tensor) Prefix(n int) (*Tensor, error) {
	if n < 1 || int64(n) > t.shape[0] || t.data == nil {
		return nil, fmt.Errorf("take %d of tensor %v: out of range", n, t.shape)
	}
	l := t.library
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("take %d of tensor %v: %w", n, t.shape, err)
	}
	p := &Tensor{library: l, shape: append([]int64{int64(n)}, t.shape[1:]...)}
	p.data = t.data[:len(t.data)/int(t.shape[0])*n]
	err := l.call(fnCreateTensorWithDataAsOrtValue, l.cpuMemory, uintptr(unsafe.Pointer(&p.data[0])), uintptr(len(p.data)*4),
		uintptr(unsafe.Pointer(&p.shape[0])), uintptr(len(p.shape)), uintptr(Float32), uintptr(unsafe.Pointer(&p.handle)))
	if err != nil {
		l.drop()
		return nil, fmt.Errorf("take %d of tensor %v: %w", n, t.shape, err)
	}
	return p, nil
}

// elements is the number of values of a shape, which must stay below 2^30.
func elements(shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 1 || n > 1<<30/d {
			return 0, fmt.Errorf("make tensor %v: impossible shape", shape)
		}
		n *= d
	}
	if len(shape) == 0 {
		return 0, fmt.Errorf("make tensor %v: impossible shape", shape)
	}
	return int(n), nil
}

// Bytes is the tensor's memory, until Close; nil on a GPU.
func (t *Tensor) Bytes() []byte { return t.bytes }

// Data is the memory of a float32 tensor, until Close; nil on a GPU.
func (t *Tensor) Data() []float32 { return t.data }

// Close frees the tensor. It may be called twice.
func (t *Tensor) Close() {
	t.close.Do(func() {
		t.library.release(fnReleaseValue, t.handle)
		t.handle, t.bytes, t.data = 0, nil, nil
		t.library.drop()
	})
}
