package cuda

import (
	"errors"
	"fmt"
	"time"

	"edgecam/platform"
)

// ErrDeviceClosed is the answer of a device after Close.
var ErrDeviceClosed = errors.New("gpu device closed")

// LostError says that the GPU does not answer any more: a call hangs, or failed
// in a way after which CUDA serves no further ones in this context. The device
// must be closed; a new one may work.
type LostError struct {
	Cause error
	Hint  string // what the operator can do
}

// Error implements error.
func (e *LostError) Error() string { return "gpu lost: " + e.Cause.Error() }

// Unwrap gives what lost it.
func (e *LostError) Unwrap() error { return e.Cause }

// TimeoutError is the cause of a LostError where a call did not return in time.
type TimeoutError struct {
	Name  string // of the Do
	Limit time.Duration
}

// Error implements error.
func (e *TimeoutError) Error() string { return fmt.Sprintf("%s: no answer for %s", e.Name, e.Limit) }

// newLostError makes the error with the hint that suits its cause.
func newLostError(cause error) *LostError {
	e := &LostError{Cause: cause}
	var late *TimeoutError
	if errors.As(cause, &late) {
		e.Hint = "the GPU or its driver hangs: run nvidia-smi and dmesg | grep -i xid, then restart the machine"
		return e
	}
	for refusal := range refusals(cause) {
		if _, ok := sticky[refusal.Code]; ok {
			e.Hint = refusal.Hint
		}
	}
	return e
}

// Codes (CUresult) that callers tell apart; see Code.
const (
	CodeInvalidValue      = 1
	CodeOutOfMemory       = 2
	CodeNoBinaryForGPU    = 209
	CodeInvalidPTX        = 218
	CodeUnsupportedPTX    = 222
	CodeNotFound          = 500
	CodeIllegalAddress    = 700
	CodeAlreadyRegistered = 712
	CodeLaunchFailed      = 719
	CodeNotSupported      = 801
	CodeUnknown           = 999
)

// Code is the driver's code of the first refusal in err, 0 = none.
func Code(err error) int {
	for refusal := range refusals(err) {
		return refusal.Code
	}
	return 0
}

// Sticky says whether an error means that the context serves no more calls:
// illegal access, launch failures, uncorrectable memory errors, a GPU that has
// fallen off the bus, and the driver's "unknown". A joined error is sticky where
// one of its parts is.
func Sticky(err error) bool {
	return refused(err, func(code int) bool { _, ok := sticky[code]; return ok })
}

// sticky lists the codes of which the reference says that the context must be
// destroyed or the process be ended, and those that say that it has been, with their
// names (https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html).
var sticky = map[int]string{ //nolint:gochecknoglobals // constant table
	4: "DEINITIALIZED", 201: "INVALID_CONTEXT", 709: "CONTEXT_IS_DESTROYED",
	// Uncorrectable memory or link errors, contained hardware errors.
	214: "ECC_UNCORRECTABLE", 220: "NVLINK_UNCORRECTABLE", 226: "CONTAINED",
	// A kernel failed.
	CodeIllegalAddress: "ILLEGAL_ADDRESS", 702: "LAUNCH_TIMEOUT", 710: "ASSERT", 714: "HARDWARE_STACK_ERROR",
	715: "ILLEGAL_INSTRUCTION", 716: "MISALIGNED_ADDRESS", 717: "INVALID_ADDRESS_SPACE", 718: "INVALID_PC",
	CodeLaunchFailed: "LAUNCH_FAILED", 721: "TENSOR_MEMORY_LEAK",
	// The MPS server or another device ended the client.
	810: "MPS_CLIENT_TERMINATED", 911: "EXTERNAL_DEVICE",
	CodeUnknown: "UNKNOWN",
}

// StickyNamed makes the error of a call that failed with a sticky code of which only
// the name is known, such as CUDA_ERROR_LAUNCH_FAILED; nil for any other name.
func StickyNamed(call, name, text string) *platform.DriverError {
	for code, of := range sticky {
		if name == "CUDA_ERROR_"+of {
			return driverError(call, code, name, text)
		}
	}
	return nil
}

// ContextGone says that the context does not exist any more. What was made in it must
// not even be closed: the driver does not bear that.
func ContextGone(err error) bool {
	return refused(err, func(code int) bool { // deinitialized, no context on the device's own thread, context destroyed
		return code == 4 || code == 201 || code == 709
	})
}

// Faulted says that a kernel failed so that every context of the process may, those of
// other cards too.
func Faulted(err error) bool {
	return refused(err, faulted)
}

// faulted lists the codes "to continue using CUDA, the process must be terminated and
// relaunched" is written of.
func faulted(code int) bool {
	switch code {
	case CodeIllegalAddress, 702, 710, 714, 715, 716, 717, 718, CodeLaunchFailed, 721, CodeUnknown:
		return true
	}
	return false
}

// refused says whether one of the driver's refusals in err has such a code.
func refused(err error, such func(code int) bool) bool {
	for refusal := range refusals(err) {
		if such(refusal.Code) {
			return true
		}
	}
	return false
}

// refusals walks the driver's refusals in err, in the order of the text.
func refusals(err error) func(yield func(*platform.DriverError) bool) {
	return func(yield func(*platform.DriverError) bool) { walk(err, yield) }
}

func walk(err error, yield func(*platform.DriverError) bool) bool {
	switch e := err.(type) { //nolint:errorlint // this is the walk
	case nil:
		return true
	case *platform.DriverError:
		return yield(e)
	case interface{ Unwrap() error }:
		return walk(e.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !walk(part, yield) {
				return false
			}
		}
	}
	return true
}
