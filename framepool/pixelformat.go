package framepool

import "fmt"

// formatInfo is what distinguishes one PixelFormat from another.
type formatInfo struct {
	name           string
	planes         int
	shiftX, shiftY uint // chroma subsampling as powers of two
	depth          int  // bits of a sample
	semi           bool // Cb and Cr interleaved in plane 1
}

func (f PixelFormat) info() formatInfo {
	switch f {
	case I420:
		return formatInfo{"yuv420p", 3, 1, 1, 8, false}
	case I422:
		return formatInfo{"yuv422p", 3, 1, 0, 8, false}
	case I444:
		return formatInfo{"yuv444p", 3, 0, 0, 8, false}
	case Gray8:
		return formatInfo{"gray", 1, 0, 0, 8, false}
	case I420P10:
		return formatInfo{"yuv420p10le", 3, 1, 1, 10, false}
	case I422P10:
		return formatInfo{"yuv422p10le", 3, 1, 0, 10, false}
	case I444P10:
		return formatInfo{"yuv444p10le", 3, 0, 0, 10, false}
	case Gray10:
		return formatInfo{"gray10le", 1, 0, 0, 10, false}
	case NV12:
		return formatInfo{"nv12", 2, 1, 1, 8, true}
	case P010:
		return formatInfo{"p010le", 2, 1, 1, 10, true}
	default:
		return formatInfo{name: fmt.Sprintf("unknown(%d)", uint8(f))}
	}
}

// String is FFmpeg's name of the format, or unknown(n). The full-range twins
// that FFmpeg names apart (yuvj420p …) are the same format here: the range is
// in Meta.
func (f PixelFormat) String() string { return f.info().name }

// Planes is the number of planes, 1 to 3; 0 for an unknown format.
func (f PixelFormat) Planes() int { return f.info().planes }

// ChromaShift gives the subsampling of the chroma planes as powers of two:
// 4:2:0 is 1, 1. Formats without chroma give 0, 0.
func (f PixelFormat) ChromaShift() (x, y uint) {
	i := f.info()
	return i.shiftX, i.shiftY
}

// BitDepth is the number of bits of a sample that carry its value, 8 or 10; 0
// for an unknown format.
func (f PixelFormat) BitDepth() int { return f.info().depth }

// SampleBytes is the number of bytes that a sample takes, 1 or 2; 0 for an
// unknown format.
func (f PixelFormat) SampleBytes() int { return (f.info().depth + 7) / 8 }

// SemiPlanar says whether Cb and Cr alternate in plane 1.
func (f PixelFormat) SemiPlanar() bool { return f.info().semi }

// PlaneSize gives the samples of a row and the rows of plane i in a picture of
// w × h. Odd sizes round up, as the codecs do. An interleaved chroma plane has
// two samples, Cb and Cr, for each position, so a row always takes
// cols*SampleBytes bytes. A plane that the format lacks is 0, 0.
func (f PixelFormat) PlaneSize(i, w, h int) (cols, rows int) {
	fi := f.info()
	if i < 0 || i >= fi.planes {
		return 0, 0
	}
	if i == 0 {
		return w, h
	}
	cols = (w + 1<<fi.shiftX - 1) >> fi.shiftX
	rows = (h + 1<<fi.shiftY - 1) >> fi.shiftY
	if fi.semi {
		cols *= 2
	}
	return cols, rows
}
