//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"

	"edgecam/platform"
)

// Device attributes, CUdevice_attribute of cuda.h.
const (
	attrMultiprocessors   = 16
	attrIntegrated        = 18
	attrCanMapHost        = 19
	attrPCIBus            = 33
	attrPCIDevice         = 34
	attrCopyEngines       = 40
	attrUnifiedAddressing = 41
	attrPCIDomain         = 50
	attrComputeMajor      = 75
	attrComputeMinor      = 76
	attrSameHostPointer   = 91 // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
	attrHostRegister      = 99 // HOST_REGISTER_SUPPORTED
)

const nameBytes = 256 // longest device name that is read

// api is the part of the driver API that queries devices. Results are CUresult.
type api struct {
	init           func(flags uint32) int32
	driverVersion  func(version *int32) int32
	deviceCount    func(count *int32) int32
	deviceGet      func(device *int32, ordinal int32) int32
	deviceName     func(name *byte, length int32, device int32) int32
	deviceUUID     func(uuid *[16]byte, device int32) int32
	deviceAttr     func(value *int32, attribute, device int32) int32
	deviceTotalMem func(bytes *uint64, device int32) int32
	errorName      func(code int32, text **byte) int32
	errorString    func(code int32, text **byte) int32
}

// initLocked opens the first candidate that the loader takes.
func (d *Driver) initLocked() error {
	var unavailable *platform.UnavailableError
	for i, name := range d.candidates {
		handle, err := open(name)
		if err != nil {
			// The loader's word on the plain name says most; of the known places
			// only one that exists and still fails says more.
			if i == 0 || exists(name) {
				unavailable = missing(name, err)
			}
			continue
		}
		d.path = mapped(name)
		a, err := bind(handle)
		if err != nil {
			unavailable = &platform.UnavailableError{Lib: base(name), Path: d.path, Err: err, Hint: "the driver is too old: update it"}
			continue
		}
		if r := a.init(0); r != 0 {
			return a.fail("cuInit", r)
		}
		d.api, d.handle = a, handle
		return nil
	}
	return unavailable
}

// calls binds what a Device needs. It is apart from Init because a driver that
// lacks one of these can still be asked what it is.
func (d *Driver) calls() (*calls, error) {
	a, err := d.opened()
	if err != nil {
		return nil, err
	}
	c := &calls{api: a}
	for i, names := range symbols {
		if c.fn[i], err = lookUp(d.handle, names); err != nil && !call(i).optional() {
			return nil, &platform.UnavailableError{Lib: base(d.Path()), Path: d.Path(), Err: err, Hint: "the driver is too old: update it"}
		}
	}
	return c, nil
}

// invoke calls a C function of integer arguments and gives its CUresult. It
// allocates nothing.
func invoke(fn uintptr, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, args...)
	return int32(r)
}

func missing(name string, err error) *platform.UnavailableError {
	e := &platform.UnavailableError{Lib: base(name), Err: err, Hint: "install NVIDIA's driver"}
	if strings.Contains(name, "/") {
		e.Path = name
	}
	return e
}

// open loads a library. The thread is held because dlerror keeps its text per
// thread.
func open(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// bind looks every function up before any is called, so that an old library is
// found out at once.
func bind(handle uintptr) (*api, error) {
	a := &api{}
	for _, f := range []struct {
		fn    any
		names []string // the newest first
	}{
		{&a.init, []string{"cuInit"}},
		{&a.driverVersion, []string{"cuDriverGetVersion"}},
		{&a.deviceCount, []string{"cuDeviceGetCount"}},
		{&a.deviceGet, []string{"cuDeviceGet"}},
		{&a.deviceName, []string{"cuDeviceGetName"}},
		{&a.deviceUUID, []string{"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}}, // v2 tells MIG instances apart
		{&a.deviceAttr, []string{"cuDeviceGetAttribute"}},
		{&a.deviceTotalMem, []string{"cuDeviceTotalMem_v2"}},
		{&a.errorName, []string{"cuGetErrorName"}},
		{&a.errorString, []string{"cuGetErrorString"}},
	} {
		symbol, err := lookUp(handle, f.names)
		if err != nil {
			return nil, err
		}
		purego.RegisterFunc(f.fn, symbol)
	}
	return a, nil
}

func lookUp(handle uintptr, names []string) (uintptr, error) {
	runtime.LockOSThread() // dlerror, as in open
	defer runtime.UnlockOSThread()
	var errs []error
	for _, name := range names {
		symbol, err := purego.Dlsym(handle, name)
		if err == nil && symbol != 0 {
			return symbol, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("find symbol %s: %w", names[0], errors.Join(errs...))
}

// fail makes the error of a call, in the driver's own words.
func (a *api) fail(call string, code int32) error {
	var name, text *byte
	a.errorName(code, &name)
	a.errorString(code, &text)
	return driverError(call, int(code), goString(name), goString(text))
}

// Version is the CUDA version that the driver offers, 1000*major + 10*minor
// (cuDriverGetVersion).
func (d *Driver) Version() (int, error) {
	a, err := d.opened()
	if err != nil {
		return 0, err
	}
	var v int32
	if r := a.driverVersion(&v); r != 0 {
		return 0, a.fail("cuDriverGetVersion", r)
	}
	return int(v), nil
}

// Devices lists the visible devices in the driver's order. Their bus places are
// left for platform.Detect to fill in.
func (d *Driver) Devices() ([]platform.GPU, error) {
	a, err := d.opened()
	if err != nil {
		return nil, err
	}
	var n int32
	if r := a.deviceCount(&n); r != 0 {
		return nil, a.fail("cuDeviceGetCount", r)
	}
	gpus := make([]platform.GPU, 0, n)
	for i := range n {
		g, err := a.device(i)
		if err != nil {
			return nil, fmt.Errorf("query gpu %d: %w", i, err)
		}
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// device asks about one device.
func (a *api) device(ordinal int32) (platform.GPU, error) {
	var dev int32
	if r := a.deviceGet(&dev, ordinal); r != 0 {
		return platform.GPU{}, a.fail("cuDeviceGet", r)
	}
	g := platform.GPU{Index: int(ordinal)}
	var name [nameBytes]byte
	if r := a.deviceName(&name[0], nameBytes-1, dev); r != 0 { // the last byte stays 0
		return g, a.fail("cuDeviceGetName", r)
	}
	g.Name = goString(&name[0])
	var uuid [16]byte
	if r := a.deviceUUID(&uuid, dev); r != 0 {
		return g, a.fail("cuDeviceGetUuid", r)
	}
	g.UUID = formatUUID(g.Name, uuid)
	var total uint64
	if r := a.deviceTotalMem(&total, dev); r != 0 {
		return g, a.fail("cuDeviceTotalMem", r)
	}
	g.MemoryBytes = int64(total)
	a.attributes(&g, dev)
	return g, nil
}

// attributes fills in what a device can do. An attribute that an older driver
// does not know counts as "cannot".
func (a *api) attributes(g *platform.GPU, dev int32) {
	get := func(attribute int32) int {
		var v int32
		if a.deviceAttr(&v, attribute, dev) != 0 {
			return 0
		}
		return int(v)
	}
	g.ComputeCapability = fmt.Sprintf("%d.%d", get(attrComputeMajor), get(attrComputeMinor))
	g.Multiprocessors = get(attrMultiprocessors)
	g.CopyEngines = get(attrCopyEngines)
	g.Integrated = get(attrIntegrated) != 0
	g.CanMapHost = get(attrCanMapHost) != 0
	g.UnifiedAddressing = get(attrUnifiedAddressing) != 0
	g.SameHostPointer = get(attrSameHostPointer) != 0
	g.HostRegisterSupported = get(attrHostRegister) != 0
	if bus := get(attrPCIBus); bus != 0 || !g.Integrated {
		g.PCIAddress = fmt.Sprintf("%04x:%02x:%02x.0", get(attrPCIDomain), bus, get(attrPCIDevice))
	}
}

// formatUUID writes it as nvidia-smi does. With the _v2 call a MIG instance has
// a UUID of its own, told only by its name ("… MIG 1g.10gb").
func formatUUID(name string, u [16]byte) string {
	kind := "GPU"
	if strings.Contains(name, " MIG ") {
		kind = "MIG"
	}
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

func base(name string) string { return filepath.Base(name) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mapped finds the real file of a library that was just opened: the loader
// follows links, and the name behind them holds the driver's version.
func mapped(name string) string {
	if strings.Contains(name, "/") {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			return real
		}
		return name
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return name
	}
	stem, _, _ := strings.Cut(name, ".so")
	for line := range strings.Lines(string(maps)) {
		line = strings.TrimSpace(line)
		if at := strings.Index(line, "/"); at >= 0 && strings.HasPrefix(filepath.Base(line[at:]), stem+".so") {
			return line[at:]
		}
	}
	return name
}
