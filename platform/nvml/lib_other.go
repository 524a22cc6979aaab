//go:build !linux || (!amd64 && !arm64)

package nvml

import "errors"

// Library is never opened here.
type Library struct{}

// Device is never had here.
type Device struct{}

func open(name string) (*Library, error) {
	return nil, unavailable(name, errors.New("not for this system"))
}

// Close does nothing.
func (*Library) Close() {}

// Device gives an error.
func (*Library) Device(string) (*Device, error) { return nil, errors.New("not for this system") }

// Sample is never called.
func (*Device) Sample() Sample { return Sample{} }
