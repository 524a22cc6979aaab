// Package avcodec is all of FFmpeg's libavcodec that edgecam uses: decoding
// H.264, H.265 and MJPEG into memory of the caller's, and encoding JPEG. It is
// the only package with cgo.
//
// # Position
//
// It knows neither frames nor cameras: capture/decode feeds it access units and
// makes frames of what comes out; web's pictures go through [JPEGEncoder].
//
// # Ownership
//
// A [Decoder] writes its pictures into slots of a [Ring], memory outside the Go
// heap that the caller supplies through [Allocate] whenever the geometry
// changes. It takes a free slot by compare-and-swap on the slot's control word
// and gives its reference back, also in C, when libavcodec's last reference to
// the picture ends; no call into Go is made for a picture. A [Picture] is valid
// until the function that was given it returns; to keep its slot, add a
// reference to the control word before that. Access units are copied into a C
// buffer once, as Annex B; C keeps no Go pointer.
//
// # Concurrency
//
// A Decoder and a JPEGEncoder each belong to one goroutine at a time; any number
// of them run side by side. Allocate is called on the thread that decodes, or
// on one of libavcodec's.
//
// # Failure
//
// Codes of libavcodec become [Error]. What cannot work by trying again has types
// of its own: [FormatError], [OpenError], [UnavailableError]. A ring without a
// free slot is [ErrExhausted]: that picture is lost, decoding goes on.
//
// FFmpeg's log lines are kept with the decoder they are about, at most 16 between
// two calls, and come out of [Decoder.Lines]; nothing is written to stderr once
// [Open] was called.
package avcodec
