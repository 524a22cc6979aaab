package preprocess

import (
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"edgecam/internal/testkit"
	"edgecam/platform/cuda"
)

// standIn is a device of the stand-in driver, whose kernels are carried out by
// their build for the processor: everything but the card is real.
type standIn struct {
	dev     *cuda.Device
	fail    func(call string, code, after int32)
	pending func(queries int32)
	live    func() int32
	calls   func(call string) int32
	kernels func(run uintptr)
}

func openStandIn(t *testing.T) *standIn {
	t.Helper()
	path := testkit.FakeCUDA(t)
	s := &standIn{}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	for name, fn := range map[string]any{
		"fake_fail": &s.fail, "fake_pending": &s.pending, "fake_live": &s.live, "fake_calls": &s.calls, "fake_kernels": &s.kernels,
	} {
		purego.RegisterLibFunc(fn, lib, name)
	}
	s.dev, err = cuda.New(cuda.Options{Library: path}).NewDevice(t.Context(), cuda.DeviceOptions{CallTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.dev.Close() // a test that lost it knows
	})
	return s
}

// run has the kernels of a source carried out.
func (s *standIn) run(t *testing.T, source string) {
	t.Helper()
	entry, err := purego.Dlsym(hostKernels(t, source), "launch_host")
	if err != nil {
		t.Fatal(err)
	}
	s.kernels(entry)
}

// do runs f on the device.
func (s *standIn) do(t *testing.T, f func(c *cuda.Context) error) {
	t.Helper()
	if err := s.dev.Do(t.Context(), "test", f); err != nil {
		t.Fatal(err)
	}
}
