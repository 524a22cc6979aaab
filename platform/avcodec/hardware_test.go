package avcodec_test

import (
	"testing"

	"edgecam/platform/avcodec"
)

func TestReasonsInWords(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{
			"no such decoder in the card", "Hardware is lacking required capabilities",
			"the GPU has no decoder for this kind of hevc",
		},
		{
			"width", "Video width 16 not within range from 48 to 4096",
			"the picture's width of 16 is not within the GPU's 48 to 4096",
		},
		{
			"height", "Video height 9000 not within range from 16 to 8192",
			"the picture's height of 9000 is not within the GPU's 16 to 8192",
		},
		{
			"area", "Video macroblock count 40000 exceeds maximum of 36864",
			"the picture has 40000 macroblocks, the GPU takes at most 36864",
		},
		{
			"sessions", "decoder->cvdl->cuvidCreateDecoder(&decoder->decoder, params) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory",
			"the GPU has no memory or no decoding session left (cuvidCreateDecoder: out of memory)",
		},
		{
			"any call", "decoder->cudl->cuCtxPushCurrent(decoder->cuda_ctx) failed -> CUDA_ERROR_INVALID_CONTEXT: invalid device context",
			"cuCtxPushCurrent: invalid device context (CUDA_ERROR_INVALID_CONTEXT)",
		},
		{
			"a code without a name", "decoder->cvdl->cuvidCreateDecoder(&decoder->decoder, params) failed",
			"cuvidCreateDecoder failed",
		},
		{"anything else", "Failed loading nvcuvid.", "Failed loading nvcuvid."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := avcodec.ReasonOf(c.line, "hevc"); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
