package avcodec

import (
	"errors"
	"fmt"
)

// ErrExhausted says that a picture was lost because every slot of the ring was
// in use.
var ErrExhausted = errors.New("no free slot in the ring")

// ErrClosed says that the decoder or encoder was closed before the call.
var ErrClosed = errors.New("closed")

// Error is what a function of libavcodec returned.
type Error struct {
	Code int    // AVERROR, negative
	Text string // av_strerror
}

func (e *Error) Error() string { return e.Text }

// External says that a library below libavcodec failed, the GPU's for one. The
// stream has no part in it.
func (e *Error) External() bool { return e.Code == tag("EXT ") }

// Invalid says that the stream is at fault.
func (e *Error) Invalid() bool { return e.Code == tag("INDA") }

// nonsense is the error for a unit that the decoder went on with, guessing.
func nonsense() error { return &Error{Code: tag("INDA"), Text: "coded values are out of bounds"} }

// tag is FFERRTAG, which makes codes of four letters.
func tag(s string) int {
	return -int(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24)
}

// FormatError says that the stream's pixel format is none that this package
// hands on.
type FormatError struct {
	Format string // FFmpeg's name
}

func (e *FormatError) Error() string { return "pixel format " + e.Format + " is not supported" }

// OpenError says why a decoder could not be opened.
type OpenError struct {
	Decoder string
	Why     string
	Err     error // of libavcodec, nil if it was not asked
}

func (e *OpenError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("open decoder %s: %s: %v", e.Decoder, e.Why, e.Err)
	}
	return fmt.Sprintf("open decoder %s: %s", e.Decoder, e.Why)
}

func (e *OpenError) Unwrap() error { return e.Err }

// UnavailableError says that the program has no libavcodec.
type UnavailableError struct {
	Hint string
}

func (e *UnavailableError) Error() string { return "libavcodec is not available" }

// Try is what the operator can do.
func (e *UnavailableError) Try() string { return e.Hint }
