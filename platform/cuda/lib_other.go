//go:build !linux || (!amd64 && !arm64)

package cuda

import (
	"errors"

	"edgecam/platform"
)

// api has no functions here, and none of these methods is ever called.
type api struct{}

func (*api) fail(call string, code int32) error { return driverError(call, int(code), "", "") }

func (*api) device(int32) (platform.GPU, error) { return platform.GPU{}, errNoDriver() }

func invoke(uintptr, ...uintptr) int32 { panic("cuda: no driver library for this system") }

func errNoDriver() error { return errors.New("no NVIDIA driver library for this system") }

func (d *Driver) calls() (*calls, error) {
	_, err := d.opened()
	return nil, err
}

func (d *Driver) initLocked() error {
	return &platform.UnavailableError{
		Lib:  d.candidates[0],
		Err:  errNoDriver(),
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

func decoderEngines(string) (int, error) { return 0, errNoDriver() }
