package onnxruntime

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/internal/testkit"
)

// shared builds a library with a name of its own and those that it is linked with.
func shared(t *testing.T, path string, linked ...string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(source, []byte("int nothing;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	args := append([]string{source, "-Wl,-soname," + filepath.Base(path), "-Wl,--no-as-needed"}, linked...)
	testkit.Library(t, path, "gcc", args...)
}

func loads(name string) error {
	runtime.LockOSThread() // the reason is the thread's that failed
	defer runtime.UnlockOSThread()
	_, err := purego.Dlopen(name, purego.RTLD_NOW)
	return err
}

var preloads atomic.Int64

// What lies in a Python environment is loaded so that whoever asks for it by its name
// finds it, without LD_LIBRARY_PATH: what the provider is linked with, what that is
// linked with in another directory, what is opened by name, and TensorRT's builder.
func TestPreload(t *testing.T) {
	packages := t.TempDir() + "/lib/python3.11/site-packages"
	capi := packages + "/onnxruntime/capi/"
	// A number that no machine has, and another one in every run: what a process has
	// loaded under a name stays.
	number := fmt.Sprintf(".so.%d", 77+preloads.Add(1))
	names := map[string]string{"blas": "libcublas" + number, "lt": "libcublasLt" + number, "infer": "libnvinfer" + number, "builder": builderResource + number + ".1"}
	lt := packages + "/nvidia/cublas_lt/lib/" + names["lt"]
	shared(t, lt)
	shared(t, packages+"/nvidia/cublas/lib/"+names["blas"], lt)
	shared(t, packages+"/tensorrt_libs/"+names["infer"])
	shared(t, packages+"/tensorrt_libs/"+names["builder"])
	shared(t, capi+"libonnxruntime.so.1")
	testkit.Tree(t, "", map[string]any{
		capi + cudaLibrary:     testkit.ELF{Machine: ownMachine(t), Needed: []string{names["blas"]}},
		capi + tensorRTLibrary: testkit.ELF{Machine: ownMachine(t), Needed: []string{names["infer"]}},
	})
	for what, name := range names {
		if err := loads(name); err == nil || !strings.Contains(err.Error(), "cannot open") {
			t.Fatalf("%s is there before: %v", what, err)
		}
	}
	l := &Library{path: capi + "libonnxruntime.so.1"}
	l.Preload(CUDAProvider)
	for what, want := range map[string]bool{"lt": true, "blas": true, "infer": false, "builder": false} {
		if err := loads(names[what]); (err == nil) != want {
			t.Errorf("after the CUDA provider's, %s: %v", what, err)
		}
	}
	l.Preload(TensorRTProvider)
	for what, name := range names {
		if err := loads(name); err != nil {
			t.Errorf("after TensorRT's, %s: %v", what, err)
		}
	}
}

// Of several of a name that the dynamic linker may come to, the one for the right
// CUDA that can be loaded is taken.
func TestChoice(t *testing.T) {
	root := t.TempDir()
	const provider, system, env = "/opt/venv/lib/python3.11/site-packages/onnxruntime/capi/" + cudaLibrary, "/usr/lib/x86_64-linux-gnu/", "/opt/venv/lib/python3.11/site-packages/"
	base := map[string]any{
		"/opt/venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1": testkit.ELF{},
		provider:                                testkit.ELF{Needed: []string{"libcudart.so.13", "libcudnn.so.9"}},
		env + "nvidia/cu13/lib/libcudart.so.13": testkit.ELF{},
	}
	status := func(cuda int) string {
		return fmt.Sprintf("Package: libcudnn9-cuda-%d\nStatus: install ok installed\nVersion: 9.14.0.64-1\n", cuda)
	}
	good := map[string]any{env + "nvidia/cudnn/lib/libcudnn.so.9": testkit.ELF{}, env + "nvidia_cudnn_cu13-9.15.0.57.dist-info/METADATA": ""}
	for _, c := range []struct {
		name   string
		system map[string]any
		want   string
		loader bool
	}{
		{"the system's", map[string]any{system + "libcudnn.so.9": testkit.ELF{}, "/var/lib/dpkg/status": status(13)}, system, true},
		{"the system's is for another CUDA", map[string]any{system + "libcudnn.so.9": testkit.ELF{}, "/var/lib/dpkg/status": status(12)}, env, false},
		{"the system's may be of two packages", map[string]any{system + "libcudnn.so.9": testkit.ELF{}, "/var/lib/dpkg/status": status(12) + "\n" + status(13)}, system, true},
		{"the system's was removed", map[string]any{"/var/lib/dpkg/status": strings.Replace(status(12), " installed", " config-files", 1)}, env, false},
		{"the system's is truncated", map[string]any{system + "libcudnn.so.9": testkit.ELF{Short: 4096}}, env, false},
		{"the cache's", map[string]any{
			"/srv/cudnn/libcudnn.so.9": testkit.ELF{},
			"/etc/ld.so.cache":         string(makeCache(cacheEntry{0x0303, "libcudnn.so.9", "/srv/cudnn/libcudnn.so.9"})),
		}, "/srv/cudnn/", true},
		{"configured, and ldconfig has not run", map[string]any{
			"/srv/cudnn/libcudnn.so.9": testkit.ELF{}, "/etc/ld.so.conf": "/srv/cudnn\n", "/etc/ld.so.cache": string(makeCache()),
		}, env, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := filepath.Join(root, strings.ReplaceAll(c.name, " ", "-"))
			for _, files := range []map[string]any{base, good, c.system} {
				testkit.Tree(t, root, files)
			}
			for _, got := range newSystem(root, "amd64", nothing).inventory(root + filepath.Dir(provider) + "/libonnxruntime.so.1.31.1") {
				if got.Name == "libcudnn.so.9" {
					if !strings.HasPrefix(got.Path, root+c.want) || got.ByLoader != c.loader || got.Problem != "" {
						t.Errorf("%+v, want one of %s", got, c.want)
					}
					return
				}
			}
			t.Error("cuDNN is not among them")
		})
	}
}

// The release of a core is what the versions of its symbols say, that of a provider
// what its constants say.
func TestReleases(t *testing.T) {
	dir := t.TempDir()
	script, core := filepath.Join(dir, "script"), filepath.Join(dir, "libcore.so")
	source := filepath.Join(dir, "core.c")
	testkit.Tree(t, dir, map[string]any{
		"script": "VERS_1.31.1 { global: OrtGetApiBase; local: *; };", "core.c": "void OrtGetApiBase(void) {}",
		"one":   testkit.ELF{Text: "Run\x001.31.1\x00Failed\x001.5\x001.31.1\x00"},
		"two":   testkit.ELF{Text: "\x001.31.1\x001.30.0\x00"},
		"none":  testkit.ELF{Text: "\x001.0.0\x002.31.1\x00x1.31.1\x001.31.1-rc\x00"},
		"plain": "text",
	})
	testkit.Library(t, core, "gcc", source, "-Wl,--version-script,"+script)
	if got := coreVersion(core); got != "1.31.1" {
		t.Errorf("core: %q", got)
	}
	for name, want := range map[string]string{"one": "1.31.1", "two": "", "none": "", "plain": "", "missing": ""} {
		if got := providerVersion(filepath.Join(dir, name)); got != want {
			t.Errorf("provider %s: %q, want %q", name, got, want)
		}
	}
	if got := coreVersion(filepath.Join(dir, "one")); got != "" {
		t.Errorf("a core without versions: %q", got)
	}
}

// A directory stands for what is in it.
func TestNamedDirectory(t *testing.T) {
	for path, named := range map[string]string{
		"/a/libonnxruntime.so.1.31.1":      "/a",
		"/a/lib/libonnxruntime.so":         "/a",
		"/a/capi/libonnxruntime.so.1.31.1": "/a",
		"/a/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1": "/a",
		"/a/onnxruntime/capi/libonnxruntime.so.1":                                   "/a",
	} {
		root := t.TempDir()
		testkit.Tree(t, root, map[string]any{path: testkit.ELF{}})
		if got := Candidates(root + named); len(got) != 1 || got[0] != root+path {
			t.Errorf("%s: %q", path, got)
		}
	}
	empty := t.TempDir()
	if got := Candidates(empty); len(got) != 1 || got[0] != empty {
		t.Errorf("an empty directory: %q", got)
	}
	if _, _, err := Find(empty); err == nil || !strings.Contains(err.Error(), "is a directory without libonnxruntime.so") {
		t.Errorf("an empty directory: %v", err)
	}
}
