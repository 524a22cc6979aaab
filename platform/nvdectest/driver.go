package nvdectest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

//go:embed testdata/driver.c
var source []byte

// runnerEnv is the command that runs programs of this kind, "" = the kernel does:
// an emulator where the tests are for another processor (testkit.Self).
const runnerEnv = "EDGECAM_TEST_RUNNER"

// dirEnv tells the child process where the libraries are.
const dirEnv = "EDGECAM_TEST_FAKE_NVDEC"

// Driver is the fake, in the process that has it.
type Driver struct {
	get   func(string) int
	set   func(string, int)
	reset func(int)
}

// Run runs the test again in a process whose libcuda and libnvcuvid are
// fakes, and gives the fake there. In the test itself it gives nil when that has
// passed; the test then returns. The dynamic linker looks for libraries where it
// was told to when the process began, hence the process.
func Run(t *testing.T) *Driver {
	t.Helper()
	if os.Getenv(dirEnv) != "" {
		return open(t)
	}
	dir := build(t)
	words := append(strings.Fields(os.Getenv(runnerEnv)), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Env = append(os.Environ(), dirEnv+"="+dir, "LD_LIBRARY_PATH="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("with a fake driver: %v\n%s", err, out)
	}
	return nil
}

func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "driver.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	const cuda, nvcuvid = "libcuda.so.1", "libnvcuvid.so.1"
	for _, args := range [][]string{
		{"-DLIBCUDA", "-Wl,-soname," + cuda, "-o", filepath.Join(dir, cuda), file, "-lpthread"},
		{"-Wl,-soname," + nvcuvid, "-o", filepath.Join(dir, nvcuvid), file, filepath.Join(dir, cuda), "-lpthread"},
	} {
		cmd := exec.CommandContext(t.Context(), "gcc", append([]string{"-shared", "-fPIC", "-O1", "-Wall"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build the fake driver: %v\n%s", err, out)
		}
	}
	return dir
}

func open(t *testing.T) *Driver {
	t.Helper()
	lib, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{}
	purego.RegisterLibFunc(&d.get, lib, "fake_get")
	purego.RegisterLibFunc(&d.set, lib, "fake_set")
	purego.RegisterLibFunc(&d.reset, lib, "fake_context_reset")
	return d
}

// Set changes how the fake behaves. A number of 0 is the default:
// "init_fails", "retain_fails", "create_fails", "decode_fails" and "map_fails"
// are the codes that calls give, "unsupported" makes every stream one that the
// GPU does not decode, "max_blocks" and "sessions" are limits. "devices" is how many
// GPUs there are, at most two. "hangs" makes calls that give something back wait on the
// GPU of that number, from 1, until it is 0 again, and "decode_hangs" those that decode.
// "gone" is a GPU whose context is gone: "tells" calls are told, any other is a
// violation. "strict" makes it one when decoders are set up or closed side by side;
// each takes "lock_us" then.
func (d *Driver) Set(name string, value int) { d.set(name, value) }

// Count gives how many "contexts", "streams", "decoders" and "mapped" pictures
// are alive, how many decoders were "created", the "last_surfaces" of one, how many
// calls are "hanging", how many "calls" on decoders and "resets" of contexts there
// were, and how many "violations".
func (d *Driver) Count(name string) int { return d.get(name) }

// Luma is sample x, y of the picture that was decoded as number (from 0, in the
// order of decoding), coded size, in 8 bits. Chroma goes on below, at the coded
// height.
func (d *Driver) Luma(number, x, y int) byte { return byte(7*number + x + 3*y) }

// Luma10 is Luma in P010.
func (d *Driver) Luma10(number, x, y int) uint16 { return uint16(7*number+x+3*y) & 1023 << 6 }

// CheckIdle fails the test where something is alive, or was done wrong.
func (d *Driver) CheckIdle(t *testing.T) {
	t.Helper()
	for _, name := range []string{"contexts", "streams", "decoders", "mapped"} {
		if got := d.Count(name); got != 0 {
			t.Errorf("fake driver: %d %s", got, name)
		}
	}
	d.CheckRules(t)
}

// Reset destroys the context of a GPU, as the driver does for whoever asks.
func (d *Driver) Reset(device int) { d.reset(device) }

// CheckRules fails the test where something was done wrong.
func (d *Driver) CheckRules(t *testing.T) {
	t.Helper()
	if got := d.Count("violations"); got != 0 {
		t.Errorf("fake driver: %d violations", got)
	}
	for _, name := range []string{
		"no context", "pop of nothing", "spinning context", "blocking stream", "stream destroyed elsewhere",
		"context released twice", "destroyed with mapped surfaces", "decoded into a surface that is read",
		"mapped on another stream", "unmapped twice", "called after its context was reset", "called after its context was gone",
		"reset with calls inside", "reset while it was held", "decoders set up or closed side by side",
	} {
		if got := d.Count(name); got != 0 {
			t.Errorf("fake driver: %s, %d times", name, got)
		}
	}
}

// Bytes gives n bytes of the fake's device memory, which is the process's.
func (d *Driver) Bytes(address uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), n)
}
