package cuda

import (
	"strconv"

	"edgecam/platform"
)

// hint says what an operator can do about a CUresult. The list holds those that
// initialisation and device queries give:
// https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
func hint(code int) string {
	switch code {
	case 2: // OUT_OF_MEMORY
		return "the GPU or the machine is out of memory: stop what uses it (nvidia-smi lists it)"
	case 34: // STUB_LIBRARY
		return "the toolkit's stub of libcuda was opened: remove its stubs directory from LD_LIBRARY_PATH"
	case 46: // DEVICE_UNAVAILABLE
		return "another process holds the GPU in exclusive mode: nvidia-smi -c DEFAULT"
	case platform.CodeNoDevice:
		return "the driver sees no GPU: run nvidia-smi, and look at CUDA_VISIBLE_DEVICES and /dev/nvidia*"
	case 101: // INVALID_DEVICE
		return "CUDA_VISIBLE_DEVICES names a GPU that is not there"
	case 802: // SYSTEM_NOT_READY
		return "the GPUs are still being set up; on machines with NVSwitch start nvidia-fabricmanager"
	case platform.CodeSystemDriverDiffer:
		return "kernel module and libcuda differ after an update: reboot, or reload the nvidia modules"
	case 804: // COMPAT_NOT_SUPPORTED_ON_DEVICE
		return "libcuda from a cuda-compat package does not serve this GPU: remove it from LD_LIBRARY_PATH or update the driver"
	case 805: // MPS_CONNECTION_FAILED
		return "the CUDA MPS control daemon does not answer: restart it, or unset CUDA_MPS_PIPE_DIRECTORY"
	case 999: // UNKNOWN
		return "often /dev/nvidia-uvm is missing, or the GPU hangs: run nvidia-smi and dmesg | grep NVRM, then reboot"
	}
	return ""
}

// driverError makes the error of a call. Name and text come from the driver,
// which may not know a code that a newer part of it gave.
func driverError(call string, code int, name, text string) *platform.DriverError {
	if name == "" {
		name = "CUDA_ERROR_" + strconv.Itoa(code)
	}
	if text == "" {
		text = "unknown to this driver"
	}
	return &platform.DriverError{Call: call, Code: code, Name: name, Text: text, Hint: hint(code)}
}
