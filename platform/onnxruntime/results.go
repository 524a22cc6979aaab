package onnxruntime

import (
	"fmt"
	"unsafe"
)

// Result is an output that the library made room for. Its bytes are valid until
// the function that got it returns.
type Result struct {
	Type  ElementType
	Shape []int64
	Bytes []byte
}

// OutputAnySize binds an output whose size only a run tells: the library takes
// memory of the processor for it. Read it with Results.
func (b *Binding) OutputAnySize(name string) error {
	if err := b.bindAnySize(name); err != nil {
		return err
	}
	b.anySize = append(b.anySize, name)
	return nil
}

func (b *Binding) bindAnySize(name string) error {
	text := cString(name)
	if err := b.session.library.call(fnBindOutputToDevice, b.handle, uintptr(unsafe.Pointer(text)), b.session.library.cpuMemory); err != nil {
		return fmt.Errorf("bind %s: %w", name, err)
	}
	return nil
}

// Results shows each every output of the last run, in the order in which they
// were bound, those with tensors of the caller among them.
func (b *Binding) Results(each func(i int, r Result) error) error {
	l := b.session.library
	if b.handle == 0 || b.session.handle == 0 {
		return fmt.Errorf("read outputs: %w", ErrClosed)
	}
	var values uintptr
	var n uintptr
	if err := l.call(fnGetBoundOutputValues, b.handle, l.allocator, uintptr(unsafe.Pointer(&values)), uintptr(unsafe.Pointer(&n))); err != nil {
		return fmt.Errorf("read outputs: %w", err)
	}
	if values == 0 {
		return nil
	}
	defer l.free(values)
	list := words(values, int(n))
	defer func() {
		for _, v := range list {
			l.release(fnReleaseValue, v)
		}
	}()
	for i, v := range list {
		r, err := l.result(v)
		if err == nil {
			err = each(i, r)
		}
		if err != nil {
			return fmt.Errorf("read outputs: %w", err)
		}
	}
	return nil
}

// result describes a value of the library's.
func (l *Library) result(value uintptr) (r Result, err error) {
	var info uintptr
	if err := l.call(fnGetTensorTypeAndShape, value, uintptr(unsafe.Pointer(&info))); err != nil {
		return r, err
	}
	defer l.release(fnReleaseTensorTypeAndShapeInfo, info)
	if err := l.call(fnGetTensorElementType, info, uintptr(unsafe.Pointer(&r.Type))); err != nil {
		return r, err
	}
	var rank uintptr
	if err := l.call(fnGetDimensionsCount, info, uintptr(unsafe.Pointer(&rank))); err != nil {
		return r, err
	}
	n := int64(1)
	if rank > 0 {
		r.Shape = make([]int64, rank)
		if err := l.call(fnGetDimensions, info, uintptr(unsafe.Pointer(&r.Shape[0])), rank); err != nil {
			return r, err
		}
	}
	for _, d := range r.Shape {
		n *= d
	}
	if n == 0 || r.Type.Size() == 0 {
		return r, nil
	}
	var data uintptr
	if err := l.call(fnGetTensorMutableData, value, uintptr(unsafe.Pointer(&data))); err != nil {
		return r, err
	}
	r.Bytes = unsafe.Slice((*byte)(pointer(data)), int(n)*r.Type.Size())
	return r, nil
}
