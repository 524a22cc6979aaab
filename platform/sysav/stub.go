//go:build !linux || !(amd64 || arm64)

package sysav

import (
	"errors"
	"path/filepath"

	"edgecam/platform"
	"edgecam/platform/avcodec"
)

var errAbsent = errors.New("is for Linux on amd64 or arm64")

// Library does not exist on this platform.
type Library struct{ path, version string }

// Open returns a *platform.UnavailableError.
func Open(path string) (*Library, error) {
	return nil, &platform.UnavailableError{Lib: filepath.Base(path), Path: path, Err: errAbsent, Hint: hintInstall}
}

// Decoder finds none.
func (l *Library) Decoder(string) (avcodec.DecoderInfo, bool) { return avcodec.DecoderInfo{}, false }

// Major is 0.
func (l *Library) Major() int { return 0 }

// Version is empty.
func (l *Library) Version() string { return l.version }

// Path is empty.
func (l *Library) Path() string { return l.path }

// Decoder does not exist on this platform.
type Decoder struct{}

// NewDecoder returns an *avcodec.OpenError.
func (l *Library) NewDecoder(o Options) (*Decoder, error) {
	return nil, &avcodec.OpenError{Decoder: o.Decoder, Why: errAbsent.Error()}
}

// Decode returns avcodec.ErrClosed.
func (d *Decoder) Decode(avcodec.Unit, func(*avcodec.Picture)) error { return avcodec.ErrClosed }

// Drain returns avcodec.ErrClosed.
func (d *Decoder) Drain(func(*avcodec.Picture)) error { return avcodec.ErrClosed }

// Reopen returns avcodec.ErrClosed.
func (d *Decoder) Reopen([][]byte) error { return avcodec.ErrClosed }

// Strict does nothing.
func (d *Decoder) Strict(bool) {}

// Blocks does nothing.
func (d *Decoder) Blocks(int) {}

// Exhausted is 0.
func (d *Decoder) Exhausted() int64 { return 0 }

// Lines are none.
func (d *Decoder) Lines(func(avcodec.Line)) {}

// Close does nothing.
func (d *Decoder) Close() {}
