package sysav

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The heads of FFmpeg's public structs, which have been the same since libavcodec
// 58 (FFmpeg 4.0): what comes later may be added behind them alone.
const (
	packetPTS  = 8 // AVPacket
	packetDTS  = 16
	packetData = 24

	frameData   = 0 // AVFrame
	frameStride = 64
	frameWidth  = 104
	frameHeight = 108
	frameFormat = 116
	framePTS    = 136
	frameBytes  = 448 // of the smallest AVFrame that the layouts below reach into

	codecID           = 20 // AVCodec
	codecCapabilities = 24
)

// Flags of FFmpeg's.
const (
	capDirect   = 1 << 1  // AV_CODEC_CAP_DR1
	capHardware = 3 << 18 // AV_CODEC_CAP_HARDWARE | AV_CODEC_CAP_HYBRID

	flagCorrupt = 1 << 0 // AV_FRAME_FLAG_CORRUPT
	flagKey     = 1 << 1 // AV_FRAME_FLAG_KEY

	rangeFull = 2 // AVCOL_RANGE_JPEG

	explode = 1<<1 | 1<<2 | 1<<3 // AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE
)

const (
	noPTS     = -1 << 63
	tryAgain  = -11
	endOfFile = -('E' | 'O'<<8 | 'F'<<16 | ' '<<24)
	noMemory  = -12
)

// layout is where the fields of AVFrame are that move from one major version to
// the next. Within a major version they stay.
type layout struct {
	flags  int // followed by color_range, color_primaries, color_trc, colorspace
	errors int // decode_error_flags
	key    int // key_frame, 0 = it is a flag
	kind   int // pict_type
}

const (
	oldestMajor = 58
	newestMajor = 62
)

// layoutOf gives the layout for a major version of libavcodec.
func layoutOf(major int) (layout, error) {
	switch major {
	case 58: // FFmpeg 4
		return layout{flags: 380, errors: 440, key: 120, kind: 124}, nil
	case 59, 60: // FFmpeg 5 and 6
		return layout{flags: 316, errors: 376, key: 120, kind: 124}, nil
	case 61: // FFmpeg 7
		return layout{flags: 292, errors: 344, key: 120, kind: 124}, nil
	case 62: // FFmpeg 8
		return layout{flags: 276, errors: 320, kind: 120}, nil
	}
	return layout{}, fmt.Errorf("is version %d of libavcodec; edgecam knows %d to %d", major, oldestMajor, newestMajor)
}

func (l layout) colourRange() int { return l.flags + 4 }
func (l layout) matrix() int      { return l.flags + 16 }

// verify holds the layout against b, a frame as av_frame_alloc makes it. Five
// fields of known values in a row, with a time behind them that is not set, are in
// no other place.
func (l layout) verify(b []byte) error {
	word := func(at int) int32 { return int32(binary.NativeEndian.Uint32(b[at:])) }
	long := func(at int) int64 { return int64(binary.NativeEndian.Uint64(b[at:])) }
	after := (l.flags + 6*4 + 7) &^ 7
	ok := word(frameFormat) == -1 && word(frameWidth) == 0 && word(frameHeight) == 0 && long(framePTS) == noPTS &&
		long(after) == noPTS && word(l.errors) == 0
	for i, want := range []int32{0, 0, 2, 2, 2, 0} { // flags, range, primaries, transfer, matrix, chroma location
		ok = ok && word(l.flags+4*i) == want
	}
	if !ok {
		return errors.New("lays its frames out in another way than FFmpeg does")
	}
	return nil
}
