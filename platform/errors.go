package platform

import "fmt"

// UnavailableError says that a library which is opened at run time is not
// there or cannot be used. The program goes on without it.
type UnavailableError struct {
	Lib  string // name of the library, e.g. "libcuda.so.1"
	Path string // file that was tried last, "" = by name only
	Err  error  // what the loader said
	Hint string // what the operator can do
}

// Error implements error.
func (e *UnavailableError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("open %s: %v", e.Lib, e.Err)
	}
	return fmt.Sprintf("open %s at %s: %v", e.Lib, e.Path, e.Err)
}

// Unwrap gives the loader's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Codes of the CUDA driver (CUresult) that Detect tells apart.
const (
	CodeNoDevice           = 100
	CodeSystemDriverDiffer = 803 // kernel module and libcuda are of different versions
)

// DriverError is a refusal by the CUDA driver.
type DriverError struct {
	Call string // the driver's function, e.g. "cuInit"
	Code int    // CUresult
	Name string // e.g. "CUDA_ERROR_NO_DEVICE"
	Text string // the driver's own sentence
	Hint string // what the operator can do, "" = unknown
}

// Error implements error.
func (e *DriverError) Error() string {
	return fmt.Sprintf("call %s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// DeviceError says that a device named by the configuration is not there.
type DeviceError struct {
	Device string   // as configured
	Have   []string // ordinals and UUIDs that exist
}

// Error implements error.
func (e *DeviceError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("select gpu %q: no usable GPU in this machine", e.Device)
	}
	return fmt.Sprintf("select gpu %q: no such device; there are %s", e.Device, joinWords(e.Have))
}
