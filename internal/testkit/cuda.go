package testkit

import (
	"path/filepath"
	"testing"
)

// FakeCUDA builds the stand-in for libcuda of platform/cuda and gives its path.
func FakeCUDA(tb testing.TB, flags ...string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "libcuda.so.550.54.14")
	Library(tb, out, "gcc", append([]string{"-O1", "-pthread", filepath.Join(Root(tb), "platform/cuda/testdata/fakecuda.c")}, flags...)...)
	return out
}
