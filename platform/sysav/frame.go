//go:build linux && (amd64 || arm64)

package sysav

import (
	"strings"

	"edgecam/platform/avcodec"
)

// plane is one plane of a picture in the decoder's memory.
type plane struct {
	base   uintptr
	stride int // bytes from row to row, may be negative
	width  int // bytes that are seen
	rows   int
}

// shape of the planes of a format: samples per chroma sample, and bytes.
type planes struct {
	count          int
	shiftX, shiftY int
	sample         int // bytes
	pairs          bool
}

// planesOf knows the formats that avcodec hands on.
func planesOf(f avcodec.Format) planes {
	switch f {
	case avcodec.YUV420P, avcodec.YUVJ420P:
		return planes{3, 1, 1, 1, false}
	case avcodec.YUV422P, avcodec.YUVJ422P:
		return planes{3, 1, 0, 1, false}
	case avcodec.YUV444P, avcodec.YUVJ444P:
		return planes{3, 0, 0, 1, false}
	case avcodec.YUV420P10:
		return planes{3, 1, 1, 2, false}
	case avcodec.YUV422P10:
		return planes{3, 1, 0, 2, false}
	case avcodec.YUV444P10:
		return planes{3, 0, 0, 2, false}
	case avcodec.Gray:
		return planes{1, 0, 0, 1, false}
	case avcodec.Gray10:
		return planes{1, 0, 0, 2, false}
	case avcodec.NV12:
		return planes{2, 1, 1, 1, true}
	case avcodec.P010:
		return planes{2, 1, 1, 2, true}
	}
	return planes{}
}

// size gives the bytes of a row and the rows of plane i.
func (p planes) size(i, width, height int) (bytes, rows int) {
	if i == 0 {
		return width * p.sample, height
	}
	columns := (width + 1<<p.shiftX - 1) >> p.shiftX
	if p.pairs {
		columns *= 2
	}
	return columns * p.sample, (height + 1<<p.shiftY - 1) >> p.shiftY
}

// picture is what a frame of FFmpeg's says.
type picture struct {
	name          string // of the pixel format
	format        avcodec.Format
	width, height int
	planes        []plane
	pts           int64
	key, intra    bool
	corrupt       bool
	damaged       bool
	full          bool
	matrix        avcodec.Matrix
}

// formatOf is our name for FFmpeg's name of a pixel format.
func formatOf(name string) avcodec.Format {
	for f := avcodec.YUV420P; f <= avcodec.P010; f++ {
		if f.String() == name {
			return f
		}
	}
	return avcodec.FormatNone
}

// read takes the frame apart that was received last. Its memory stays the
// decoder's.
func (s *session) read() picture {
	f, where := s.frame, s.lib.frame
	flags := *at[int32](f, where.flags)
	p := picture{
		name:  goString(s.lib.call(fnPixelFormatName, uintptr(*at[int32](f, frameFormat)))),
		width: int(*at[int32](f, frameWidth)), height: int(*at[int32](f, frameHeight)),
		pts: *at[int64](f, framePTS), key: flags&flagKey != 0, intra: *at[int32](f, where.kind) == 1,
		corrupt: flags&flagCorrupt != 0, damaged: *at[int32](f, where.errors) != 0,
		full: *at[int32](f, where.colourRange()) == rangeFull, matrix: avcodec.Matrix(*at[int32](f, where.matrix())),
	}
	if where.key != 0 {
		p.key = *at[int32](f, where.key) != 0
	}
	p.format = formatOf(p.name)
	p.full = p.full || strings.HasPrefix(p.name, "yuvj")
	shape := planesOf(p.format)
	for i := range shape.count {
		width, rows := shape.size(i, p.width, p.height)
		p.planes = append(p.planes, plane{
			base: *at[uintptr](f, frameData+8*i), stride: int(*at[int32](f, frameStride+4*i)), width: width, rows: rows,
		})
	}
	return p
}

// whole says whether there is memory behind every row.
func (p *picture) whole() bool {
	for _, a := range p.planes {
		if a.base == 0 || max(a.stride, -a.stride) < a.width {
			return false
		}
	}
	return len(p.planes) > 0 && p.width > 0 && p.height > 0
}

// row is row y of the plane.
func (a *plane) row(y int) []byte {
	return view(uintptr(int64(a.base)+int64(y)*int64(a.stride)), a.width)
}
