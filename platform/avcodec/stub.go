//go:build !cgo

package avcodec

// Library is libavcodec, which this build does not have.
type Library struct{}

// Open returns an *UnavailableError: the program was built without cgo.
func Open() (*Library, error) {
	return nil, &UnavailableError{Hint: "build with CGO_ENABLED=1 and FFmpeg's development packages"}
}

func unavailable() error {
	_, err := Open()
	return err
}

// Versions are empty.
func (l *Library) Versions() Versions { return Versions{} }

// Configuration is empty.
func (l *Library) Configuration() string { return "" }

// License is empty.
func (l *Library) License() string { return "" }

// Decoders are none.
func (l *Library) Decoders() []DecoderInfo { return nil }

// HardwareDevice does not exist in this build.
type HardwareDevice struct{}

// OpenCUDA returns a *HardwareError.
func (l *Library) OpenCUDA(int) (*HardwareDevice, error) {
	return nil, &HardwareError{Reason: unavailable().Error()}
}

// Ordinal is 0.
func (d *HardwareDevice) Ordinal() int { return 0 }

// Stream is 0.
func (d *HardwareDevice) Stream() uintptr { return 0 }

// Close does nothing.
func (d *HardwareDevice) Close() {}

// Surface does not exist in this build.
type Surface struct{}

// Keep is never called, as there are no pictures.
func (p *Picture) Keep() *Surface { return nil }

// Release does nothing.
func (s *Surface) Release() {}

// Decoder does not exist in this build.
type Decoder struct{}

// NewDecoder returns an *UnavailableError.
func (l *Library) NewDecoder(Options) (*Decoder, error) { return nil, unavailable() }

// Decode returns an *UnavailableError.
func (d *Decoder) Decode(Unit, func(*Picture)) error { return unavailable() }

// Drain returns an *UnavailableError.
func (d *Decoder) Drain(func(*Picture)) error { return unavailable() }

// Reopen returns an *UnavailableError.
func (d *Decoder) Reopen([][]byte) error { return unavailable() }

// Strict does nothing.
func (d *Decoder) Strict(bool) {}

// Blocks does nothing.
func (d *Decoder) Blocks(int) {}

// Exhausted is 0.
func (d *Decoder) Exhausted() int64 { return 0 }

// Lines are none.
func (d *Decoder) Lines(func(Line)) {}

// Close does nothing.
func (d *Decoder) Close() {}

// JPEGEncoder does not exist in this build.
type JPEGEncoder struct{}

// NewJPEGEncoder returns an *UnavailableError.
func (l *Library) NewJPEGEncoder(_, _, _ int) (*JPEGEncoder, error) { return nil, unavailable() }

// Encode returns an *UnavailableError.
func (e *JPEGEncoder) Encode(dst, _, _, _ []byte, _ [3]int) ([]byte, error) {
	return dst, unavailable()
}

// Close does nothing.
func (e *JPEGEncoder) Close() {}
