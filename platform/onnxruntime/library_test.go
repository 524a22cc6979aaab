package onnxruntime_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform/onnxruntime"
)

// compile makes a shared library from C.
func compile(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	c, so := filepath.Join(dir, "fake.c"), filepath.Join(dir, "libonnxruntime.so")
	if err := os.WriteFile(c, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", so, c).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return so
}

// fake is a library whose version is text and whose GetApi is the C expression.
func fake(text, getAPI string) string {
	return `#include <stdint.h>
static const void *get_api(uint32_t v) { (void)v; return ` + getAPI + `; }
static const char *get_version(void) { return "` + text + `"; }
static const struct { const void *(*a)(uint32_t); const char *(*v)(void); } base = {get_api, get_version};
const void *OrtGetApiBase(void) { return &base; }
`
}

func TestOpenRefusesWithTheReason(t *testing.T) {
	real := testkit.ONNXRuntime(t)
	write := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(real)
	if err != nil {
		t.Fatal(err)
	}
	other := uint16(183) // EM_AARCH64
	if runtime.GOARCH == "arm64" {
		other = 62 // EM_X86_64
	}

	tests := []struct {
		name, path, want string
	}{
		{"missing", "/nowhere/libonnxruntime.so", "no such file or directory"},
		{"directory", t.TempDir(), "is a directory"},
		{"device", "/dev/null", "is not a regular file"},
		{"empty", write("libonnxruntime.so", nil), "is not an ELF file"},
		{"text", write("libonnxruntime.so", []byte("<html>404</html>")), "is not an ELF file"},
		{"only the magic number", write("libonnxruntime.so", whole[:4]), "is a damaged or truncated ELF file (4 bytes)"},
		{"download that broke off", write("libonnxruntime.so", whole[:len(whole)/2]), "truncated"},
		{"last byte missing", write("libonnxruntime.so", whole[:len(whole)-1]), "truncated"},
		{"another machine", foreignLibrary(t, other), "is built for "},
		{"no library", write("a.o", object(t)), "is no shared library (ELF type ET_REL)"},
		{"no entry point", compile(t, "int other(void) { return 1; }"), "is no ONNX Runtime: it lacks OrtGetApiBase"},
		{"entry point without a table", compile(t, "const void *OrtGetApiBase(void) { return 0; }"), "OrtGetApiBase gave nothing"},
		{"empty table", compile(t, "static const void *base[2]; const void *OrtGetApiBase(void) { return base; }"), "OrtGetApiBase gave an empty table"},
		{"too old", compile(t, fake("1.10.0", "0")), "version 1.10.0 is too old, 1.17 or newer is needed"},
		{"just too old", compile(t, fake("1.16.3", "0")), "version 1.16.3 is too old, 1.17 or newer is needed"},
		{"another major version", compile(t, fake("2.0.0", "0")), "version 2.0.0 has another major number than 1, which edgecam knows"},
		{"senseless version", compile(t, fake("banana", "0")), `version "banana" is not understood`},
		{"version without a table", compile(t, fake("1.17.0", "0")), "version 1.17.0 offers none of the API versions 17 to 31"},
		{"unknown dependency", needing(t), "libnowhere.so: cannot open shared object file: No such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := onnxruntime.Open(tt.path)
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			var unavailable *onnxruntime.UnavailableError
			if !errors.As(err, &unavailable) {
				t.Fatalf("error %v is no *UnavailableError", err)
			}
			if unavailable.Path != tt.path || unavailable.Hint == "" {
				t.Errorf("path %q, hint %q", unavailable.Path, unavailable.Hint)
			}
			if text := err.Error(); !strings.HasPrefix(text, "open onnx runtime "+tt.path+": ") || !strings.Contains(text, tt.want) {
				t.Errorf("error %q, want %q in it", text, tt.want)
			}
		})
	}
}

// foreignLibrary is a library whose header names another machine.
func foreignLibrary(t *testing.T, machine uint16) string {
	t.Helper()
	path := compile(t, fake("1.17.0", "0"))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const machineOffset = 18
	binary.LittleEndian.PutUint16(b[machineOffset:], machine)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// object is an ELF file that is no shared library.
func object(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	c, o := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.o")
	if err := os.WriteFile(c, []byte("int f(void) { return 1; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-c", "-o", o, c).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	b, err := os.ReadFile(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// needing is a library that needs one that is not there.
func needing(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run := func(args ...string) {
		if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
			t.Fatalf("cc: %v\n%s", err, out)
		}
	}
	c := filepath.Join(dir, "empty.c")
	if err := os.WriteFile(c, []byte("int f(void) { return 1; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	absent, so := filepath.Join(dir, "libnowhere.so"), filepath.Join(dir, "libonnxruntime.so")
	run("-shared", "-fPIC", "-Wl,-soname,libnowhere.so", "-o", absent, c)
	run("-shared", "-fPIC", "-Wl,--no-as-needed", "-o", so, c, absent)
	if err := os.Remove(absent); err != nil {
		t.Fatal(err)
	}
	return so
}

func TestFindTakesTheNamedFileAlone(t *testing.T) {
	t.Setenv(onnxruntime.EnvPath, testkit.ONNXRuntime(t))
	if _, _, err := onnxruntime.Find("/nowhere/lib.so"); err == nil || err.Error() != "open onnx runtime /nowhere/lib.so: no such file or directory" {
		t.Errorf("named file that is missing: %v", err)
	}
	l, skipped, err := onnxruntime.Find("")
	if err != nil || len(skipped) != 0 {
		t.Fatalf("from the environment: %v, skipped %v", err, skipped)
	}
	l.Close()
}

// TestFindPassesOverBrokenFiles puts a broken library in front of a good one.
func TestFindPassesOverBrokenFiles(t *testing.T) {
	broken, good := t.TempDir(), t.TempDir()
	library := testkit.ONNXRuntime(t) // before the variable that may name it is emptied
	if err := os.WriteFile(filepath.Join(broken, "libonnxruntime.so"), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(onnxruntime.EnvPath, "")
	t.Setenv("LD_LIBRARY_PATH", broken)
	want := "open onnx runtime " + broken + "/libonnxruntime.so: is not an ELF file"
	system, skipped, err := onnxruntime.Find("")
	if system != nil { // this machine has one in a system directory
		system.Close()
	} else if err == nil || err.Error() != want {
		t.Errorf("only a broken library: %v, want %q", err, want)
	}
	if len(skipped) != 1 || skipped[0] != want {
		t.Errorf("only a broken library: skipped %q, want %q", skipped, want)
	}
	if err := os.Symlink(library, filepath.Join(good, "libonnxruntime.so.1")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", broken+":"+good)
	l, skipped, err := onnxruntime.Find("")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if len(skipped) != 1 || skipped[0] != want {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	if system != nil {
		return
	}
	t.Setenv("LD_LIBRARY_PATH", "")
	if _, _, err := onnxruntime.Find(""); err == nil || !strings.HasPrefix(err.Error(), "find onnx runtime: no libonnxruntime.so in /") {
		t.Errorf("nothing anywhere: %v", err)
	}
}
