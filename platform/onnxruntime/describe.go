package onnxruntime

import (
	"fmt"
	"strings"
	"unsafe"
)

// ElementType is an ONNXTensorElementDataType.
type ElementType int32

// The element types that are told apart.
const (
	Undefined ElementType = 0
	Float32   ElementType = 1
	Uint8     ElementType = 2
	Int32     ElementType = 6
	Int64     ElementType = 7
	Float16   ElementType = 10
	Float64   ElementType = 11
)

func (t ElementType) String() string {
	names := [...]string{
		"no tensor", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool",
		"float16", "float64", "uint32", "uint64", "complex64", "complex128", "bfloat16",
	}
	if t < 0 || int(t) >= len(names) {
		return fmt.Sprintf("element type %d", int32(t))
	}
	return names[t]
}

// Port is an input or output of a model. A dimension of -1 is free. Type is
// Undefined for what is no tensor.
type Port struct {
	Name  string
	Type  ElementType
	Shape []int64
}

// String is like "images float32[N,3,416,416]".
func (p Port) String() string {
	dims := make([]string, len(p.Shape))
	for i, d := range p.Shape {
		dims[i] = fmt.Sprint(d)
		if d < 0 {
			dims[i] = "N"
		}
	}
	return fmt.Sprintf("%s %v[%s]", p.Name, p.Type, strings.Join(dims, ","))
}

// describe reads what the model says of itself.
func (s *Session) describe() (err error) {
	if s.inputs, err = s.ports(fnSessionGetInputCount, fnSessionGetInputName, fnSessionGetInputTypeInfo); err != nil {
		return err
	}
	if s.outputs, err = s.ports(fnSessionGetOutputCount, fnSessionGetOutputName, fnSessionGetOutputTypeInfo); err != nil {
		return err
	}
	s.metadata, err = s.readMetadata()
	return err
}

func (s *Session) ports(count, name, info function) ([]Port, error) {
	l := s.library
	var n uintptr
	if err := l.call(count, s.handle, uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	ports := make([]Port, n)
	for i := range ports {
		var text uintptr
		if err := l.call(name, s.handle, uintptr(i), l.allocator, uintptr(unsafe.Pointer(&text))); err != nil {
			return nil, err
		}
		ports[i].Name = l.takeString(text)
		var typeInfo uintptr
		if err := l.call(info, s.handle, uintptr(i), uintptr(unsafe.Pointer(&typeInfo))); err != nil {
			return nil, err
		}
		err := l.readType(typeInfo, &ports[i])
		l.release(fnReleaseTypeInfo, typeInfo)
		if err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// readType fills a port's type and shape. The tensor info belongs to the type info.
func (l *Library) readType(typeInfo uintptr, p *Port) error {
	var tensor uintptr
	if err := l.call(fnCastTypeInfoToTensorInfo, typeInfo, uintptr(unsafe.Pointer(&tensor))); err != nil || tensor == 0 {
		return err
	}
	if err := l.call(fnGetTensorElementType, tensor, uintptr(unsafe.Pointer(&p.Type))); err != nil {
		return err
	}
	var rank uintptr
	if err := l.call(fnGetDimensionsCount, tensor, uintptr(unsafe.Pointer(&rank))); err != nil || rank == 0 {
		return err
	}
	p.Shape = make([]int64, rank)
	return l.call(fnGetDimensions, tensor, uintptr(unsafe.Pointer(&p.Shape[0])), rank)
}

func (s *Session) readMetadata() (map[string]string, error) {
	l := s.library
	var metadata uintptr
	if err := l.call(fnSessionGetModelMetadata, s.handle, uintptr(unsafe.Pointer(&metadata))); err != nil {
		return nil, err
	}
	defer l.release(fnReleaseModelMetadata, metadata)
	var keys uintptr
	var n int64
	if err := l.call(fnModelMetadataGetCustomMetadataKey, metadata, l.allocator, uintptr(unsafe.Pointer(&keys)), uintptr(unsafe.Pointer(&n))); err != nil {
		return nil, err
	}
	values := make(map[string]string, n)
	if keys == 0 {
		return values, nil
	}
	defer l.free(keys)
	var failed error
	for _, address := range words(keys, int(n)) {
		var text uintptr
		if err := l.call(fnModelMetadataLookupCustomMetadata, metadata, l.allocator, address, uintptr(unsafe.Pointer(&text))); err != nil {
			failed = err
		}
		values[l.takeString(address)] = l.takeString(text)
	}
	return values, failed
}

// takeString copies a string that the library allocated and frees it.
func (l *Library) takeString(address uintptr) string {
	text := goString(address)
	l.free(address)
	return text
}

// free gives memory of the default allocator back. Its status can only be an
// error for an allocator of another kind.
func (l *Library) free(address uintptr) {
	if address != 0 {
		_ = l.call(fnAllocatorFree, l.allocator, address)
	}
}
