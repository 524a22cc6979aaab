package testkit

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// ONNXRuntime is the path of the ONNX Runtime library that the tests use:
// $EDGECAM_ONNXRUNTIME, or the one that scripts/fetch-onnxruntime.sh fetched.
func ONNXRuntime(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("EDGECAM_ONNXRUNTIME"); path != "" {
		return path
	}
	found, err := filepath.Glob(filepath.Join(Root(tb), ".cache/onnxruntime/*/libonnxruntime.so.1"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range slices.Backward(found) {
		if ofThisProcessor(path) {
			return path
		}
	}
	tb.Fatal("no ONNX Runtime library in .cache/onnxruntime: run make build, or scripts/fetch-onnxruntime.sh")
	return ""
}

// ofThisProcessor: the libraries of packages for other ones lie beside it.
func ofThisProcessor(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return f.Machine == map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
}

// Root is the directory of go.mod.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the test's directory")
		}
		dir = parent
	}
}
