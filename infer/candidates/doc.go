// Package candidates filters a detector's outputs on the GPU that made them, so
// that a few hundred bytes of an image cross the bus and not a megabyte.
//
// # Position
//
// An engine that runs on a GPU launches a Filter behind the model, on the same
// stream, and hands what it read to infer.Decoder.DecodeCandidates. The answer is
// that of infer.Decoder.Decode on the whole outputs, for healthy and for broken
// ones. With an infer.FilterPlan it does the same for infer.LayoutDecoder: boxes and
// scores are then handed on as they are, and what they mean is decided in Go.
//
// # Ownership
//
// A Filter owns its memory on the host and on the device; the outputs are the
// engine's and are only read.
//
// # Concurrency
//
// A Filter belongs to the goroutine of its cuda.Device, and holds one launch at a
// time: what it found must be read before the next.
//
// # Failure
//
// An image with more candidates than there is room for is an *OverflowError: the
// outputs must be fetched and decoded whole. A result that the launch did not
// write is an error, never an empty scene.
package candidates
