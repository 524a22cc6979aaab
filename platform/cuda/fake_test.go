//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"edgecam/platform/cuda"
)

// compiled holds the stand-ins of this run by their macros, as each test wants
// one of its own and compiling takes longer than they do.
var compiled sync.Map

// fakeLibrary compiles the stand-in with the given macros and gives the path of
// a copy, which the loader takes for another library, with a state of its own.
func fakeLibrary(t testing.TB, defines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libcuda.so.550.54.14")
	key := strings.Join(defines, " ")
	if b, ok := compiled.Load(key); ok {
		if err := os.WriteFile(path, b.([]byte), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := []string{"-shared", "-fPIC", "-O1", "-pthread", "-o", path, filepath.Join("testdata", "fakecuda.c")}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("compile fakecuda.c: %v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compiled.Store(key, b)
	return path
}

// fake is an opened stand-in with its script; fakestate.h says what each
// function does.
type fake struct {
	t   testing.TB
	lib *cuda.Driver

	fail          func(call string, code, after int32)
	block         func(call string)
	awaitBlock    func()
	release       func()
	registerLimit func(bytes int64)
	memory        func(bytes uint64)
	pending       func(queries int32)
	capture       func(on int32)
	retain        func(device int32, flags uint32)
	flags         func(device int32) uint32
	refs          func(device int32) int32
	calls         func(call string) int32
	live          func() int32
	priority      func() int32
	launch        func(i int32) string
}

func newFake(t testing.TB, defines ...string) *fake {
	t.Helper()
	path := fakeLibrary(t, defines...)
	f := &fake{t: t, lib: cuda.New(cuda.Options{Library: path})}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	for name, fn := range map[string]any{
		"fake_fail": &f.fail, "fake_block": &f.block, "fake_await_block": &f.awaitBlock, "fake_release": &f.release,
		"fake_register_limit": &f.registerLimit, "fake_memory": &f.memory, "fake_pending": &f.pending, "fake_capture": &f.capture,
		"fake_retain": &f.retain, "fake_flags": &f.flags, "fake_refs": &f.refs,
		"fake_calls": &f.calls, "fake_live": &f.live, "fake_priority": &f.priority, "fake_launch": &f.launch,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	t.Cleanup(f.release) // no test leaves a thread behind
	return f
}

// unhurried is a limit that no test runs into.
const unhurried = time.Minute

// open opens device 0, which is closed when the test ends.
func (f *fake) open(o cuda.DeviceOptions) *cuda.Device {
	f.t.Helper()
	if o.CallTimeout == 0 {
		o.CallTimeout = unhurried
	}
	dev, err := f.lib.NewDevice(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		f.release()
		_ = dev.Close() // again, for most; a lost one says so
		<-dev.Ended()
	})
	return dev
}

// do runs fn on dev and fails the test for an error.
func do(t testing.TB, dev *cuda.Device, fn func(*cuda.Context) error) {
	t.Helper()
	if err := dev.Do(t.Context(), "test", fn); err != nil {
		t.Fatal(err)
	}
}

// journal collects a log.
func journal() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

func contains(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s %q, want %q in it", what, text, part)
	}
}
