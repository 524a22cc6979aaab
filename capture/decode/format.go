package decode

import (
	"edgecam/framepool"
	"edgecam/platform/avcodec"
)

// poolFormat is the layout of a decoder's format. Range is told apart by
// colourRange.
func poolFormat(f avcodec.Format) framepool.PixelFormat {
	switch f {
	case avcodec.YUV420P, avcodec.YUVJ420P:
		return framepool.I420
	case avcodec.YUV422P, avcodec.YUVJ422P:
		return framepool.I422
	case avcodec.YUV444P, avcodec.YUVJ444P:
		return framepool.I444
	case avcodec.Gray:
		return framepool.Gray8
	case avcodec.YUV420P10:
		return framepool.I420P10
	case avcodec.YUV422P10:
		return framepool.I422P10
	case avcodec.YUV444P10:
		return framepool.I444P10
	case avcodec.Gray10:
		return framepool.Gray10
	case avcodec.NV12:
		return framepool.NV12
	case avcodec.P010:
		return framepool.P010
	}
	return framepool.FormatUnknown
}

func colourRange(p *avcodec.Picture) framepool.Range {
	if p.FullRange {
		return framepool.RangeFull
	}
	return framepool.RangeLimited
}

// hdLines is where untagged streams change from BT.601 to BT.709: see
// framepool.Matrix.
const hdLines = 720

func matrix(p *avcodec.Picture) framepool.Matrix {
	switch p.Matrix {
	case avcodec.MatrixBT709, avcodec.MatrixSMPTE240M: // 240M differs from BT.709 by less than a code
		return framepool.MatrixBT709
	case avcodec.MatrixFCC, avcodec.MatrixBT470BG, avcodec.MatrixSMPTE170M:
		return framepool.MatrixBT601
	case avcodec.MatrixBT2020NCL, avcodec.MatrixBT2020CL:
		return framepool.MatrixBT2020
	}
	if p.Height < hdLines {
		return framepool.MatrixBT601
	}
	return framepool.MatrixBT709
}
