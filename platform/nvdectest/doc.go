// Package nvdectest is a stand-in for NVIDIA's driver, as far as FFmpeg's decoding
// on a GPU goes, for tests on machines without one. FFmpeg's own code runs against
// it.
//
// # Position
//
// Tests of platform/avcodec and of what is above it import it; nothing else does.
//
// # Ownership
//
// The driver is two C libraries that gcc builds for each test. It decodes nothing:
// a picture is a pattern of its number, see [Driver.Luma]. What it is for is the
// bookkeeping: it counts what is alive and what a driver would punish.
//
// # Concurrency
//
// A [Driver] is safe for concurrent use.
//
// # Failure
//
// Whatever is missing fails the test.
package nvdectest
