package cuda

import (
	"strconv"

	"edgecam/platform"
)

// defect is the hint where nothing outside the program explains a refusal.
const defect = "this is a defect of edgecam: please report it with this text"

// hint says what an operator can do about a CUresult
// (https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html).
func hint(code int) string {
	if h := hintSystem(code); h != "" {
		return h
	}
	if h := hintLoad(code); h != "" {
		return h
	}
	return hintRun(code)
}

// hintSystem is for refusals by the driver as it is installed, or by the machine.
func hintSystem(code int) string {
	switch code {
	case CodeOutOfMemory:
		return "the GPU or the machine is out of memory: stop what uses it (nvidia-smi lists it)"
	case 34: // STUB_LIBRARY
		return "the toolkit's stub of libcuda was opened: remove its stubs directory from LD_LIBRARY_PATH"
	case 46: // DEVICE_UNAVAILABLE
		return "another process holds the GPU in exclusive mode: nvidia-smi -c DEFAULT"
	case platform.CodeNoDevice:
		return "the driver sees no GPU: run nvidia-smi, and look at CUDA_VISIBLE_DEVICES and /dev/nvidia*"
	case 101: // INVALID_DEVICE
		return "CUDA_VISIBLE_DEVICES names a GPU that is not there"
	case 304: // OPERATING_SYSTEM
		return "the kernel refused: look at dmesg | grep -i nvrm, and at the limits on memory (ulimit -l, LimitMEMLOCK)"
	case 800: // NOT_PERMITTED
		return "the driver does not permit it: look at the rights on /dev/nvidia*"
	case CodeNotSupported:
		return "this GPU or its driver cannot do it: edgecam goes another way where there is one"
	case 802: // SYSTEM_NOT_READY
		return "the GPUs are still being set up; on machines with NVSwitch start nvidia-fabricmanager"
	case platform.CodeSystemDriverDiffer:
		return "kernel module and libcuda differ after an update: reboot, or reload the nvidia modules"
	case 804: // COMPAT_NOT_SUPPORTED_ON_DEVICE
		return "libcuda from a cuda-compat package does not serve this GPU: remove it from LD_LIBRARY_PATH or update the driver"
	case 805, 806, 807, 808, 809, 810: // MPS_…
		return "the CUDA MPS control daemon does not answer or serve: restart it, or unset CUDA_MPS_PIPE_DIRECTORY"
	case CodeUnknown:
		return "often /dev/nvidia-uvm is missing, or the GPU hangs: run nvidia-smi and dmesg | grep NVRM, then reboot"
	}
	return ""
}

// hintLoad is for refusals of kernels.
func hintLoad(code int) string {
	switch code {
	case 200, 300, 301, CodeInvalidPTX: // INVALID_IMAGE, INVALID_SOURCE, FILE_NOT_FOUND
		return "the kernels in this program are damaged: install edgecam again"
	case CodeNoBinaryForGPU:
		return "the GPU is older than compute capability 5.3, or newer than its driver: update the driver"
	case 221, 302, 303: // JIT_COMPILER_NOT_FOUND, SHARED_OBJECT_…
		return "libnvidia-ptxjitcompiler.so.1 is missing: install the whole driver; in containers add compute to NVIDIA_DRIVER_CAPABILITIES"
	case CodeUnsupportedPTX:
		return "the driver is too old for these kernels: update it to CUDA 10 or newer"
	case 223: // JIT_COMPILATION_DISABLED
		return "kernels are compiled by the driver: unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT"
	case CodeNotFound:
		return defect
	}
	return ""
}

// hintRun is for work that failed, and for calls that were wrong.
func hintRun(code int) string {
	switch code {
	case 214, 220, 226: // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED
		return "the GPU reports a hardware error: look at nvidia-smi -q -d ECC and dmesg | grep -i xid, then reset or replace it"
	case 4, 201, 709: // DEINITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED
		return "something else in the process gave the GPU up: restart edgecam"
	case CodeIllegalAddress, 714, 715, 716, 717, 718, CodeLaunchFailed, 721:
		return "a kernel failed: look for an Xid in dmesg; if it comes again, report it with the model and the camera's format"
	case 701: // LAUNCH_OUT_OF_RESOURCES
		return "the GPU has too few registers or too little shared memory for a kernel: please report it with the GPU's name"
	case 702: // LAUNCH_TIMEOUT
		return "a kernel took too long on a GPU that drives a display: use another GPU or end the display"
	case CodeInvalidValue, 3, 400, CodeAlreadyRegistered, 713: // NOT_INITIALIZED, INVALID_HANDLE, HOST_MEMORY_NOT_REGISTERED
		return defect
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
