// Package decode turns access units into frames with libavcodec, which writes
// the pictures into the slots of a frame pool.
//
// # Position
//
// A camera's supervisor (package capture) feeds it access units; the frames go
// to the pipeline. It joins platform/avcodec, which knows no frames, with
// framepool, which knows no decoders.
//
// # Ownership
//
// A pool belongs to one decoder and one geometry. Its slots are counted out:
// what the stream's parameter sets allow the decoder to hold, and ReaderSlots for
// everybody else. A picture that would take more than ReaderSlots from the
// decoder is dropped, so slow readers lose frames and the decoder never runs dry.
// When the geometry changes a new pool takes over, and the old one goes back to the
// budget with its last frame. Frames outlive the decoder.
//
// Pixels are not copied: libavcodec writes them into the slot, and readers read
// them there.
//
// # Concurrency
//
// A Decoder belongs to one goroutine; Stats may be called from any.
//
// # Failure
//
// Nothing doubtful is emitted. After the start, a loss, or damage, pictures wait
// for a random access point, or for the end of a gradual refresh; a stream that has
// neither is taken as it is after ten seconds. What is dropped is counted by reason.
// A pixel format that no reader takes and a budget that holds no pool are
// *capture.UnsupportedError.
//
// # Hardware
//
// Decoding is in software, unless Options.Decoder names a decoder of FFmpeg's that
// writes into our memory. Interlaced video is not deinterlaced: both fields come
// as one frame.
package decode
