package onnxruntime

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"github.com/ebitengine/purego"
)

// cudaLibrary is the file of the CUDA provider.
const cudaLibrary = "libonnxruntime_providers_cuda.so"

// appendPlugin registers a provider library and adds its device to session
// options: the way that also serves the CPU build of the core.
func (l *Library) appendPlugin(options uintptr, p Provider) error {
	path := p.Library
	if path == "" {
		path = filepath.Join(filepath.Dir(l.path), cudaLibrary)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("use %s: %w, and no %s lies beside it", p.Name, ErrNoProvider, cudaLibrary)
		}
	}
	if l.api < pluginAPI {
		return fmt.Errorf("use %s of %s: ONNX Runtime %s takes no provider libraries, 1.%d or newer does", p.Name, path, l.version, pluginAPI)
	}
	if err := checkFile(path); err != nil {
		return fmt.Errorf("use %s of %s: %w", p.Name, path, err)
	}
	if err := l.register(path); err != nil {
		return fmt.Errorf("use %s of %s: %w", p.Name, path, err)
	}
	device, err := l.pluginDevice(p)
	if err != nil {
		return fmt.Errorf("use %s of %s: %w", p.Name, path, err)
	}
	list, n := p.pairs(true), 0
	var keys, values **byte
	if n = len(list.keys); n > 0 {
		keys, values = &list.keys[0], &list.values[0]
	}
	return l.call(fnAppendExecutionProviderV2, options, l.env, uintptr(unsafe.Pointer(&device)), 1,
		uintptr(unsafe.Pointer(keys)), uintptr(unsafe.Pointer(values)), uintptr(n))
}

// register makes a provider library known, once. It stays registered for the
// life of the environment: sessions may go on using it.
func (l *Library) register(path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plugins[path] != "" {
		return nil
	}
	name := "edgecam-" + strconv.Itoa(len(l.plugins))
	text, file := cString(name), cString(path)
	if err := l.call(fnRegisterExecutionProviderLibrary, l.env, uintptr(unsafe.Pointer(text)), uintptr(unsafe.Pointer(file))); err != nil {
		return err
	}
	if l.plugins == nil {
		l.plugins = make(map[string]string)
	}
	l.plugins[path] = name
	return nil
}

// pluginDevice finds the provider's device with the CUDA ordinal of p. The
// provider names the ordinal in its options; where it does not, the place among
// its devices is taken.
func (l *Library) pluginDevice(p Provider) (uintptr, error) {
	var list, n uintptr
	if err := l.call(fnGetEpDevices, l.env, uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&n))); err != nil {
		return 0, err
	}
	var mine []uintptr
	if list != 0 {
		for _, d := range words(list, int(n)) {
			if goString(l.ask(fnEpDeviceEpName, d)) == p.Name {
				mine = append(mine, d)
			}
		}
	}
	want := strconv.Itoa(p.Device)
	key := cString("device_id")
	for _, d := range mine {
		options := l.ask(fnEpDeviceEpOptions, d)
		if options != 0 && goString(l.ask(fnGetKeyValue, options, uintptr(unsafe.Pointer(key)))) == want {
			return d, nil
		}
	}
	if p.Device >= 0 && p.Device < len(mine) {
		return mine[p.Device], nil
	}
	return 0, fmt.Errorf("it offers %d devices, GPU %d is not among them", len(mine), p.Device)
}

// ask calls a function of the table that returns a pointer.
//
//go:uintptrescapes
func (l *Library) ask(f function, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(l.table[f], args...)
	return r
}
