//go:build linux && (amd64 || arm64)

package nvml_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"edgecam/platform"
	"edgecam/platform/nvml"
)

func fake(t *testing.T, define string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-D"+define, "-o", path, filepath.Join("testdata", "fakenvml.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return path
}

func TestSample(t *testing.T) {
	for define, want := range map[string]nvml.Sample{
		"ALL":  {GPU: 0.75, Decoder: 0.9, RXBytes: 2 << 20, TXBytes: 1 << 20, UsedMem: 40 << 30, TotalMem: 140 << 30},
		"MUTE": {GPU: nvml.Unknown, Decoder: nvml.Unknown, RXBytes: nvml.Unknown, TXBytes: nvml.Unknown, UsedMem: 40 << 30, TotalMem: 140 << 30},
	} {
		lib, err := nvml.OpenFrom("/nowhere/libnvidia-ml.so.1", fake(t, define))
		if err != nil {
			t.Fatal(err)
		}
		for _, uuid := range []string{"", "GPU-2"} {
			if _, err := lib.Device(uuid); err == nil {
				t.Errorf("there is a card %q", uuid)
			}
		}
		card, err := lib.Device("GPU-1")
		if err != nil {
			t.Fatal(err)
		}
		if got := card.Sample(); got != want {
			t.Errorf("%s: got %+v, want %+v", define, got, want)
		}
		lib.Close()
	}
}

func TestUnavailable(t *testing.T) {
	for _, path := range []string{"/nowhere/libnvidia-ml.so.1", fake(t, "INIT=9")} {
		_, err := nvml.OpenFrom(path)
		var u *platform.UnavailableError
		if !errors.As(err, &u) || u.Lib != "libnvidia-ml.so.1" {
			t.Errorf("%s: %v", path, err)
		}
	}
}
