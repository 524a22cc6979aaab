package onnxruntime

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unsafe"
)

// The names of the execution providers.
const (
	CPUProvider      = "CPUExecutionProvider"
	CUDAProvider     = "CUDAExecutionProvider"
	TensorRTProvider = "TensorrtExecutionProvider"
)

// ErrNoProvider says that neither the library nor a file beside it brings a
// provider.
var ErrNoProvider = errors.New("this build of ONNX Runtime has no such provider")

// Provider is what runs the nodes of a session that it can run. The CPU takes
// those that no provider takes.
type Provider struct {
	// Name is CUDAProvider or TensorRTProvider.
	Name string
	// Device is the CUDA ordinal.
	Device int
	// Stream is the CUstream that all work is queued on; 0 is one of the
	// provider's own.
	Stream uintptr
	// Options are the provider's own, e.g. "enable_cuda_graph": "1". Device and
	// stream come from the fields above.
	Options map[string]string
	// Library is the file of a provider that is not built in. Empty: built in
	// where the library says so, else the file beside the library.
	Library string
}

// appendProvider adds a provider to session options, in the way that the
// library and its version offer.
func (l *Library) appendProvider(options uintptr, p Provider) error {
	builtIn, err := l.Providers()
	if err != nil {
		return err
	}
	switch {
	case p.Library == "" && slices.Contains(builtIn, p.Name) && p.Name == CUDAProvider:
		return l.appendBuiltIn(options, p, cudaCalls)
	case p.Library == "" && slices.Contains(builtIn, p.Name) && p.Name == TensorRTProvider:
		return l.appendBuiltIn(options, p, tensorRTCalls)
	case p.Name == CUDAProvider:
		return l.appendPlugin(options, p)
	}
	return fmt.Errorf("use %s: %w", p.Name, ErrNoProvider)
}

// providerCalls are the functions for the options of a built-in provider.
type providerCalls struct{ create, update, updateValue, release, add function }

var (
	cudaCalls = providerCalls{
		fnCreateCUDAProviderOptions, fnUpdateCUDAProviderOptions, fnUpdateCUDAProviderOptionsWithValue,
		fnReleaseCUDAProviderOptions, fnAppendCUDA,
	}
	tensorRTCalls = providerCalls{
		fnCreateTensorRTProviderOptions, fnUpdateTensorRTProviderOptions, fnUpdateTensorRTProviderOptionsWithValue,
		fnReleaseTensorRTProviderOptions, fnAppendTensorRT,
	}
)

// appendBuiltIn is the way of GPU builds from 1.17 on. All options go in one
// call, because every call sets those that it does not name back to their
// defaults; the stream follows as a pointer.
func (l *Library) appendBuiltIn(options uintptr, p Provider, f providerCalls) error {
	var made uintptr
	if err := l.call(f.create, uintptr(unsafe.Pointer(&made))); err != nil {
		return err
	}
	defer l.release(f.release, made)
	list := p.pairs(false)
	if err := l.call(f.update, made, uintptr(unsafe.Pointer(&list.keys[0])), uintptr(unsafe.Pointer(&list.values[0])), uintptr(len(list.keys))); err != nil {
		return err
	}
	if p.Stream != 0 {
		key := cString("user_compute_stream")
		if err := l.call(f.updateValue, made, uintptr(unsafe.Pointer(key)), p.Stream); err != nil {
			return err
		}
	}
	return l.call(f.add, options, made)
}

// pairs are C strings of keys and their values.
type pairs struct{ keys, values []*byte }

func (p *pairs) add(key, value string) {
	p.keys, p.values = append(p.keys, cString(key)), append(p.values, cString(value))
}

// pairs lists the options in the order of their keys. A provider library takes
// the stream as a number; to the built-in one it goes as a pointer.
func (p Provider) pairs(plugin bool) pairs {
	var list pairs
	if !plugin {
		list.add("device_id", strconv.Itoa(p.Device))
	}
	if plugin && p.Stream != 0 {
		list.add("user_compute_stream", strconv.FormatUint(uint64(p.Stream), 10))
	}
	keys := make([]string, 0, len(p.Options))
	for k := range p.Options {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		list.add(k, p.Options[k])
	}
	return list
}
