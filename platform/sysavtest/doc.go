// Package sysavtest is a stand-in for NVIDIA's build of FFmpeg, for tests on
// machines without a Jetson: the machine's own libavcodec, with decoders named
// h264_nvv4l2dec and hevc_nvv4l2dec that behave as NVIDIA's do.
//
// # Position
//
// Tests of platform/sysav and of capture/decode import it; nothing else does.
//
// # Ownership
//
// The stand-in is a C library that gcc builds for each test on top of the installed
// libavcodec, whose software decodes. What it adds is the manners of the hardware:
// it must be told size and pixel format before it is opened, takes parameter sets
// from the stream alone, gives a picture late and one a unit, keeps its last ones at
// the end, cannot be flushed, calls every picture a key picture, and tells nothing
// of colours or damage. It counts what is alive.
//
// # Concurrency
//
// A [Library] is safe for concurrent use.
//
// # Failure
//
// Whatever is missing fails the test.
package sysavtest
