//go:build !linux || (!amd64 && !arm64)

package cuda

import (
	"errors"

	"edgecam/platform"
)

// api has no functions here.
type api struct{}

func (d *Driver) initLocked() error {
	return &platform.UnavailableError{
		Lib:  d.candidates[0],
		Err:  errors.New("no NVIDIA driver library for this system"),
		Hint: "use Linux on amd64 or arm64",
	}
}

// Version gives Init's error.
func (d *Driver) Version() (int, error) {
	_, err := d.opened()
	return 0, err
}

// Devices gives Init's error.
func (d *Driver) Devices() ([]platform.GPU, error) {
	_, err := d.opened()
	return nil, err
}
