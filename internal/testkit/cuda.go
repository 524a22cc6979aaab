package testkit

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// FakeCUDA builds the stand-in for libcuda of platform/cuda and gives its path.
func FakeCUDA(tb testing.TB) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "libcuda.so.550.54.14")
	cmd := exec.CommandContext(tb.Context(), "gcc", "-shared", "-fPIC", "-O1", "-pthread", "-o", out,
		filepath.Join(Root(tb), "platform/cuda/testdata/fakecuda.c"))
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build the stand-in for libcuda: %v\n%s", err, text)
	}
	return out
}
