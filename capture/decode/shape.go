package decode

import (
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"edgecam/capture"
	"edgecam/platform/avcodec"
	"edgecam/platform/sysav"
)

// shapeOf reads what parameter sets say of pictures.
func shapeOf(c capture.Codec, sets [][]byte) (out sysav.Shape) {
	for _, n := range sets {
		switch {
		case c == capture.H264 && len(n) > 1 && kindH264(n) == kindSPS:
			out = shapeH264(n)
		case c == capture.H265 && len(n) > 2 && kindH265(n) == kindSPS:
			out = shapeH265(n)
		}
	}
	return out
}

func shapeH264(b []byte) sysav.Shape {
	var s h264.SPS
	if s.Unmarshal(b) != nil {
		return sysav.Shape{}
	}
	out := sysav.Shape{Width: s.Width(), Height: s.Height(), Matrix: avcodec.MatrixUnspecified}
	if v := s.VUI; v != nil && v.VideoSignalTypePresentFlag {
		out.Full, out.Matrix = v.VideoFullRangeFlag, matrixOf(v.ColourDescriptionPresentFlag, v.MatrixCoefficients)
	}
	return out
}

func shapeH265(b []byte) sysav.Shape {
	var s h265.SPS
	if s.Unmarshal(b) != nil {
		return sysav.Shape{}
	}
	out := sysav.Shape{Width: s.Width(), Height: s.Height(), Matrix: avcodec.MatrixUnspecified}
	if v := s.VUI; v != nil && v.VideoSignalTypePresentFlag {
		out.Full, out.Matrix = v.VideoFullRangeFlag, matrixOf(v.ColourDescriptionPresentFlag, v.MatrixCoefficients)
	}
	return out
}

func matrixOf(described bool, coefficients uint8) avcodec.Matrix {
	if !described {
		return avcodec.MatrixUnspecified
	}
	return avcodec.Matrix(coefficients)
}
