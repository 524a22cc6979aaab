//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// decoderCaps is CUVIDDECODECAPS of cuviddec.h.
type decoderCaps struct {
	codec, chroma, bitDepthMinus8 uint32
	_                             [3]uint32

	supported, engines  uint8
	formats             uint16
	maxWidth, maxHeight uint32
	maxBlocks           uint32
	minWidth, minHeight uint16
	histogram, counter  uint8
	bins                uint16
	_                   [10]uint32
}

const (
	codecH264 = 4 // cudaVideoCodec_H264
	chroma420 = 1 // cudaVideoChromaFormat_420
)

// decoderEngines asks a library, on a thread whose context is current. The
// library stays open: the decoders use it too.
func decoderEngines(library string) (int, error) {
	handle, err := open(library)
	if err != nil {
		return 0, fmt.Errorf("open the decoder's library: %w", err)
	}
	get, err := lookUp(handle, []string{"cuvidGetDecoderCaps"})
	if err != nil {
		return 0, err
	}
	caps := decoderCaps{codec: codecH264, chroma: chroma420}
	if r, _, _ := purego.SyscallN(get, uintptr(unsafe.Pointer(&caps))); int32(r) != 0 { // a CUresult
		return 0, fmt.Errorf("ask the decoder what it can do: cuvidGetDecoderCaps gives %d", int32(r))
	}
	if caps.supported == 0 || caps.engines == 0 {
		return 0, errors.New("ask the decoder what it can do: it tells of no engine")
	}
	return int(caps.engines), nil
}
