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
// them there. A picture that the GPU decoded stays in its memory: the frame is of
// the kind device and holds one of the surfaces of the GPU's decoder, which are
// counted out in the same way.
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
//
// Damage is seen by lost packets, by what libavcodec calls an error, and for H.265
// in software by marks that show which parts were never decoded (see
// avcodec.Decoder.Blocks). Wrong bytes with no packet lost that decode to something
// of the right shape are seen by none; FFmpeg's H.265 decoder is the blindest. So a
// stream of that kind that is damaged group after group must decode one whole group
// before its pictures pass again.
//
// A pixel format that no reader takes and a budget that holds no pool are
// *capture.UnsupportedError.
//
// A GPU that does not take a stream, or fails, is left for the next decoder, with
// the same access unit and the reason in DecoderInfo.Note; other cameras go
// on. With Decoder "nvdec" there is no next one, and it is an
// *capture.UnsupportedError.
//
// # Hardware
//
// On an NVIDIA card FFmpeg's accelerator (NVDEC) decodes H.264 and H.265 in 4:2:0
// with 8 bits, and H.265 with 10. Readers of such frames order their work behind
// avcodec.HardwareDevice.Stream. The GPU does not tell of broken slices, as the
// software decoder does: there, lost packets alone (AccessUnit.LossBefore) keep
// damaged pictures away.
//
// On a Jetson the nvv4l2dec and v4l2m2m decoders are tried, of the FFmpeg that the
// program is linked with, else of the machine's own (platform/sysav). They have
// memory of their own, from which each picture is copied into the pool once. They
// tell nothing of damage and call every picture a key picture: after a loss only a
// random access point counts. This has not been run on a Jetson yet.
//
// Interlaced video is not deinterlaced: both fields come as one frame.
package decode
