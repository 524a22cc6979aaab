package testkit

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ebitengine/purego"
)

//go:embed testdata/fakenvdec.c
var fakeNVDEC []byte

// fakeNVDECDir tells the child process where the libraries are.
const fakeNVDECDir = "EDGECAM_TEST_FAKE_NVDEC"

// NVDEC is a stand-in for NVIDIA's driver, as far as FFmpeg's decoding on a GPU
// goes. It decodes nothing: its pictures are patterns, see Luma. It counts what
// is alive and what a driver would punish.
type NVDEC struct {
	get func(string) int
	set func(string, int)
}

// FakeNVDEC runs the test again in a process whose libcuda and libnvcuvid are
// fakes, and gives the fake there. In the test itself it gives nil when that has
// passed; the test then returns. The dynamic linker looks for libraries where it
// was told to when the process began, hence the process.
func FakeNVDEC(t *testing.T) *NVDEC {
	t.Helper()
	if os.Getenv(fakeNVDECDir) != "" {
		return openFakeNVDEC(t)
	}
	dir := buildFakeNVDEC(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), fakeNVDECDir+"="+dir, "LD_LIBRARY_PATH="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("with a fake driver: %v\n%s", err, out)
	}
	return nil
}

func buildFakeNVDEC(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "fake.c")
	if err := os.WriteFile(source, fakeNVDEC, 0o600); err != nil {
		t.Fatal(err)
	}
	const cuda, nvcuvid = "libcuda.so.1", "libnvcuvid.so.1"
	for _, args := range [][]string{
		{"-DLIBCUDA", "-Wl,-soname," + cuda, "-o", filepath.Join(dir, cuda), source, "-lpthread"},
		{"-Wl,-soname," + nvcuvid, "-o", filepath.Join(dir, nvcuvid), source, filepath.Join(dir, cuda), "-lpthread"},
	} {
		cmd := exec.CommandContext(t.Context(), "gcc", append([]string{"-shared", "-fPIC", "-O1", "-Wall"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build the fake driver: %v\n%s", err, out)
		}
	}
	return dir
}

func openFakeNVDEC(t *testing.T) *NVDEC {
	t.Helper()
	lib, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		t.Fatal(err)
	}
	n := &NVDEC{}
	purego.RegisterLibFunc(&n.get, lib, "fake_get")
	purego.RegisterLibFunc(&n.set, lib, "fake_set")
	return n
}

// Set changes how the fake behaves. A number of 0 is the default:
// "init_fails", "retain_fails", "create_fails", "decode_fails" and "map_fails"
// are the codes that calls give, "unsupported" makes every stream one that the
// GPU does not decode, "max_blocks" and "sessions" are limits, and "hangs" makes
// calls that give something back wait until it is 0 again.
func (n *NVDEC) Set(name string, value int) { n.set(name, value) }

// Count gives how many "contexts", "streams", "decoders" and "mapped" pictures
// are alive, how many decoders were "created", the "last_surfaces" of one, and
// how many "violations" there were.
func (n *NVDEC) Count(name string) int { return n.get(name) }

// Luma is sample x, y of the picture that was decoded as number (from 0, in the
// order of decoding), coded size, in 8 bits. Chroma goes on below, at the coded
// height.
func (n *NVDEC) Luma(number, x, y int) byte { return byte(7*number + x + 3*y) }

// Luma10 is Luma in P010.
func (n *NVDEC) Luma10(number, x, y int) uint16 { return uint16(7*number+x+3*y) & 1023 << 6 }

// CheckIdle fails the test where something is alive, or was done wrong.
func (n *NVDEC) CheckIdle(t *testing.T) {
	t.Helper()
	for _, name := range []string{"contexts", "streams", "decoders", "mapped", "violations"} {
		if got := n.Count(name); got != 0 {
			t.Errorf("fake driver: %d %s", got, name)
		}
	}
	for _, name := range []string{
		"no context", "pop of nothing", "spinning context", "blocking stream", "stream destroyed elsewhere",
		"context released twice", "destroyed with mapped surfaces", "decoded into a surface that is read",
		"mapped on another stream", "unmapped twice",
	} {
		if got := n.Count(name); got != 0 {
			t.Errorf("fake driver: %s, %d times", name, got)
		}
	}
}
