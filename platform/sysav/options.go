package sysav

import (
	"time"

	"edgecam/platform/avcodec"
)

// Shape is what the parameter sets of a stream say of its pictures. The zero value
// says nothing.
type Shape struct {
	Width, Height int // visible samples
	Full          bool
	Matrix        avcodec.Matrix // MatrixUnspecified where nothing is told
}

// Options of a decoder.
type Options struct {
	Decoder   string   // FFmpeg's name
	Codec     string   // "h264", "hevc" or "mjpeg": what it must decode
	Extradata [][]byte // parameter sets without start codes, in the order VPS, SPS, PPS
	Threads   int      // slice threads, for decoders in software. It defaults to 1
	Allocate  avcodec.Allocate

	// Shape reads parameter sets. NVIDIA's decoder has to be told the size before it
	// is opened, and must be opened again for another one: see the package comment.
	Shape func(sets [][]byte) Shape

	// Timeout is how long a call may take. It defaults to 5s: a driver that sets up
	// needs less than one.
	Timeout time.Duration
}

const defaultTimeout = 5 * time.Second
