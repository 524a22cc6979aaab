package avcodec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxSurfaces is how many surfaces NVDEC takes for one stream.
const MaxSurfaces = 32

// SurfaceRequest describes the pictures that a GPU's decoder needs surfaces for.
type SurfaceRequest struct {
	Format        Format // of the surfaces: NV12 or P010
	Width, Height int    // coded samples
	Estimate      int    // what FFmpeg thinks the stream needs
}

// HardwareError says why the GPU does not decode: at all, or this stream.
// Software can take its place.
type HardwareError struct {
	Reason string // in words for the user
}

func (e *HardwareError) Error() string { return "decode on the gpu: " + e.Reason }

// DriverError says which call of the GPU's driver failed, with the driver's words. Err
// is what that means for the stream: a *HardwareError, or an *Error of libavcodec's.
type DriverError struct {
	Call string // e.g. cuvidMapVideoFrame
	Name string // of the driver's code, e.g. CUDA_ERROR_LAUNCH_FAILED
	Text string
	Err  error
}

func (e *DriverError) Error() string {
	if he := new(HardwareError); errors.As(e.Err, &he) {
		return he.Error() // says the same, and what it means
	}
	return fmt.Sprintf("decode on the gpu: %s: %s (%s)", e.Call, e.Text, e.Name)
}

// Unwrap gives what that means for the stream.
func (e *DriverError) Unwrap() error { return e.Err }

// driverError finds the driver's failure in what FFmpeg logged, nil = there is none.
func driverError(line string) *DriverError {
	if line == "" { // of nearly every unit
		return nil
	}
	m := cudaCall.FindStringSubmatch(line)
	if m == nil || m[2] == "" {
		return nil
	}
	return &DriverError{Call: m[1], Name: m[2], Text: m[3]}
}

var (
	cudaCall = regexp.MustCompile(`\b(cu[A-Z]\w+|cuvid\w+)\(.*\) failed(?: -> (\w+): (.*))?$`)
	outside  = regexp.MustCompile(`^Video (width|height) (\d+) not within range from (\d+) to (\d+)$`)
	blocks   = regexp.MustCompile(`^Video macroblock count (\d+) exceeds maximum of (\d+)$`)
)

// reasonOf puts into words what FFmpeg logged when the GPU refused a stream.
func reasonOf(line, codec string) string {
	if m := outside.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("the picture's %s of %s is not within the GPU's %s to %s", m[1], m[2], m[3], m[4])
	}
	if m := blocks.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("the picture has %s macroblocks, the GPU takes at most %s", m[1], m[2])
	}
	if strings.Contains(line, "lacking required capabilities") {
		return "the GPU has no decoder for this kind of " + codec
	}
	m := cudaCall.FindStringSubmatch(line)
	switch {
	case m == nil:
		return line
	case m[1] == "cuvidCreateDecoder" && m[2] == "CUDA_ERROR_OUT_OF_MEMORY":
		return "the GPU has no memory or no decoding session left (cuvidCreateDecoder: out of memory)"
	case m[2] == "":
		return m[1] + " failed"
	}
	return fmt.Sprintf("%s: %s (%s)", m[1], m[3], m[2])
}
