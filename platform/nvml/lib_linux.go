//go:build linux && (amd64 || arm64)

package nvml

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// functions are those of nvml.h that are called, in the order of table.
const (
	fnInit = iota
	fnShutdown
	fnByUUID
	fnUtilization
	fnDecoder
	fnPCIe
	fnMemory
	fnCount
)

func table() [fnCount]string {
	return [fnCount]string{
		"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUtilizationRates",
		"nvmlDeviceGetDecoderUtilization", "nvmlDeviceGetPcieThroughput", "nvmlDeviceGetMemoryInfo",
	}
}

// Library is the opened library. Its functions may be called from any thread.
type Library struct{ fn [fnCount]uintptr }

// open loads and initialises a library.
func open(name string) (*Library, error) {
	runtime.LockOSThread() // dlerror keeps its text per thread
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, unavailable(filepath.Base(name), err)
	}
	l := &Library{}
	for i, symbol := range table() {
		if l.fn[i], err = purego.Dlsym(handle, symbol); err != nil {
			return nil, unavailable(filepath.Base(name), err)
		}
	}
	if r := l.call(fnInit); r != 0 {
		return nil, unavailable(filepath.Base(name), fmt.Errorf("nvmlInit_v2 gives %d", r))
	}
	return l, nil
}

// call gives the nvmlReturn_t. What the arguments point at stays where it is
// meanwhile.
//
//go:uintptrescapes
func (l *Library) call(fn int, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(l.fn[fn], args...)
	return int32(r)
}

// Close shuts the library down. Its devices are of no use any more.
func (l *Library) Close() { l.call(fnShutdown) }

// Device is one card.
type Device struct {
	lib    *Library
	handle uintptr
}

// Device finds a card, or a part of one, by its UUID.
func (l *Library) Device(uuid string) (*Device, error) {
	if uuid == "" {
		return nil, errors.New("find card: it has no UUID")
	}
	d := &Device{lib: l}
	name := append([]byte(uuid), 0)
	if r := l.call(fnByUUID, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&d.handle))); r != 0 {
		return nil, fmt.Errorf("find card %s: nvmlDeviceGetHandleByUUID gives %d", uuid, r)
	}
	return d, nil
}

// The counters of nvmlDeviceGetPcieThroughput, which measures for 20 ms.
const (
	pcieTX = 0
	pcieRX = 1
)

// Sample asks the card. It takes about 50 ms.
func (d *Device) Sample() Sample {
	s := Sample{GPU: Unknown, Decoder: Unknown, RXBytes: Unknown, TXBytes: Unknown, UsedMem: Unknown, TotalMem: Unknown}
	var rates struct{ gpu, memory uint32 } // percent
	if d.ask(fnUtilization, uintptr(unsafe.Pointer(&rates))) {
		s.GPU = float64(rates.gpu) / 100
	}
	var percent, periodUS uint32
	if d.ask(fnDecoder, uintptr(unsafe.Pointer(&percent)), uintptr(unsafe.Pointer(&periodUS))) {
		s.Decoder = float64(percent) / 100
	}
	var kib uint32
	if d.ask(fnPCIe, pcieRX, uintptr(unsafe.Pointer(&kib))) {
		s.RXBytes = float64(kib) * 1024
	}
	if d.ask(fnPCIe, pcieTX, uintptr(unsafe.Pointer(&kib))) {
		s.TXBytes = float64(kib) * 1024
	}
	var memory struct{ total, free, used uint64 }
	if d.ask(fnMemory, uintptr(unsafe.Pointer(&memory))) {
		s.UsedMem, s.TotalMem = int64(memory.used), int64(memory.total)
	}
	return s
}

//go:uintptrescapes
func (d *Device) ask(fn int, args ...uintptr) bool {
	return d.lib.call(fn, append([]uintptr{d.handle}, args...)...) == 0
}
