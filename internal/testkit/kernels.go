package testkit

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// HostKernels builds a CUDA source (a path from the top of the tree) for the
// processor and gives the library's path: the same code with a loop in place of
// a block's threads, so that its arithmetic and its memory accesses are tested
// on every machine. Undefined behaviour ends the process.
func HostKernels(tb testing.TB, source string) string {
	tb.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		tb.Fatal("no C++ compiler: apt-get install -y --no-install-recommends g++")
	}
	out := filepath.Join(tb.TempDir(), "kernels.so")
	Library(tb, out, "g++", "-x", "c++", "-std=c++17", "-DHOST", "-O1", "-ffp-contract=off",
		"-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fsanitize=undefined", "-fno-sanitize-recover", "-static-libubsan",
		filepath.Join(Root(tb), source))
	return out
}
