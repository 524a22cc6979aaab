// Package sysav decodes with the FFmpeg that the machine has, beside the one that
// edgecam brings along: its decoders of hardware are worth it. NVIDIA's build for
// Jetson has h264_nvv4l2dec and hevc_nvv4l2dec, which no FFmpeg of ours can have.
//
// # Position
//
// capture/decode uses it in place of platform/avcodec, and its pictures look the
// same. It speaks avcodec's types.
//
// # How, and why
//
// libavcodec is opened at run time, in this process. NVIDIA's decoder takes its
// pictures out of the hardware's memory with a copy of its own (NvBuffer2Raw) and
// copies them once more into a buffer of libavcodec's. It does not say
// AV_CODEC_CAP_DR1: libavcodec's contract then forbids to give it other memory, and
// variants of it write rows as their driver lays them out, whatever stride the
// buffer has. Besides, get_buffer2 is at another place in every version. So each
// picture is copied here exactly once, row by row, from libavcodec's buffer into the
// slot that its readers use, and counted (Picture.Copied). A process of its own
// would copy as often, into memory that all pools had to share for it; what it would
// add is that a crash of the driver ends that process alone. A decoder that hangs is
// dealt with here all the same, see Failure.
//
// Versions 58 to 62 of libavcodec are known (FFmpeg 4 to 8). Of structs only heads
// are touched that have been the same in all of them, and five fields of AVFrame that
// move with the major version (layoutOf). Settings go in by name. All of it is held
// against the library when it is opened, with a fresh frame and a known picture; a
// library that is not understood is refused by name. Before its first camera the
// known picture goes through a decoder of hardware, too.
//
// The two FFmpegs do not mix: the program shows the loader no symbol of its own one,
// a library is opened with RTLD_LOCAL, after the libavutil that lies beside it, and
// with RTLD_DEEPBIND where the program is linked with a shared FFmpeg.
//
// NVIDIA's decoder is treated with care. It must be told size and pixel format
// before it is opened. It keeps memory of the size of its first picture, so that a
// larger one would be written behind it: when the parameter sets say another shape
// it is opened anew. It takes parameter sets from the stream alone. It carries time
// in the microseconds of a timeval, so that units are numbered below a million. It
// calls every picture a key picture and tells nothing of damage and colours: the
// former is the caller's, the latter comes from the parameter sets. Should it turn
// full range into limited, the known picture shows it.
//
// # Ownership
//
// As in package avcodec: pictures lie in slots of a ring of the caller's. One slot is
// held at a time, until the function that was given the picture returns.
//
// # Concurrency
//
// A [System] and a [Library] are safe for concurrent use, a [Decoder] belongs to one
// goroutine at a time. Calls that may wait for hardware are made by a goroutine of
// the decoder's.
//
// # Failure
//
// A call that does not come back in time is given up with an *avcodec.HardwareError:
// the caller takes another decoder. Its thread stays behind, and tidies up if it ever
// comes back; four of them, and the library is asked for nothing more. So is a
// decoder left whose pictures do not tell their unit, or come more than 64 units late.
//
// # Hardware
//
// It has not been run on a Jetson. Proven with stand-ins is all that docs/jetson.md
// says of it.
package sysav
