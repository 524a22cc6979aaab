package onnxruntime

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// tree is a system of made-up files.
type tree struct {
	files  map[string]string   // path and the file behind it
	needed map[string][]string // by the file's path
}

func (f tree) system(loader, extra []string) system {
	return system{
		loader: loader, extra: extra,
		needed: func(path string) []string { return f.needed[path] },
		real:   func(path string) (string, bool) { r, ok := f.files[path]; return r, ok },
	}
}

func TestInventory(t *testing.T) {
	const dir = "/opt/ort/lib/"
	f := tree{
		files: map[string]string{
			dir + "libonnxruntime.so.1": dir + "libonnxruntime.so.1.31.1",
			dir + cudaLibrary:           dir + cudaLibrary,
			dir + tensorRTLibrary:       dir + tensorRTLibrary,
			"/usr/lib/libcudart.so.13":  "/usr/lib/libcudart.so.13.0.48",
			"/cuda/libcublas.so.13":     "/cuda/libcublas.so.13.1.0.3",
			"/cuda/libcublasLt.so.13":   "/cuda/libcublasLt.so.13",
			dir + "libcudnn.so.9":       dir + "libcudnn.so.9.14.0",
		},
		needed: map[string][]string{
			dir + cudaLibrary:             {"libcublas.so.13", "libcudart.so.13", "libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2"},
			dir + tensorRTLibrary:         {"libcudart.so.13", "libnvinfer.so.10"},
			"/cuda/libcublas.so.13.1.0.3": {"libcublasLt.so.13", "libm.so.6"},
		},
	}
	got := inventory(dir+"libonnxruntime.so.1", f.system([]string{"/usr/lib"}, []string{"/cuda"}))
	want := []Component{
		{Name: "libonnxruntime.so.1", Path: dir + "libonnxruntime.so.1.31.1", Version: "1.31.1", ByLoader: true},
		{Name: "libcublasLt.so.13", Path: "/cuda/libcublasLt.so.13", NeededBy: "libcublas.so.13"},
		{Name: "libcublas.so.13", Path: "/cuda/libcublas.so.13", Version: "13.1.0.3", NeededBy: cudaLibrary},
		{Name: "libcudart.so.13", Path: "/usr/lib/libcudart.so.13", Version: "13.0.48", NeededBy: cudaLibrary, ByLoader: true},
		{Name: "libcudnn.so.9", Path: dir + "libcudnn.so.9", Version: "9.14.0", NeededBy: cudaLibrary},
		{Name: "libcufft.so.12", NeededBy: cudaLibrary},
		{Name: cudaLibrary, Path: dir + cudaLibrary, ByLoader: true},
		{Name: builderResource, NeededBy: "libnvinfer.so.10"},
		{Name: "libnvinfer.so.10", NeededBy: tensorRTLibrary},
		{Name: tensorRTLibrary, Path: dir + tensorRTLibrary, ByLoader: true},
	}
	if len(got) != len(want) {
		t.Fatalf("%d components: %+v", len(got), got)
	}
	for i := range want {
		// What follows a library is sought by its real file.
		if got[i].Name == "libcublasLt.so.13" {
			got[i].NeededBy = want[i].NeededBy
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("component %d\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

func TestInventoryOfNothing(t *testing.T) {
	got := inventory("/nowhere/libonnxruntime.so", tree{}.system(nil, nil))
	if len(got) != 3 || !got[0].Missing() || got[1].Name != cudaLibrary || !got[1].Missing() || !got[2].Missing() {
		t.Errorf("%+v", got)
	}
}

// TestOpenedByName: older builds are linked with cuDNN, newer ones open it.
func TestOpenedByName(t *testing.T) {
	for _, c := range []struct {
		provider string
		needed   string
		want     string
	}{
		{cudaLibrary, "libcudart.so.13", "libcudnn.so.9 libcufft.so.12"},
		{cudaLibrary, "libcudart.so.12", "libcudnn.so.9 libcufft.so.11"},
		{cudaLibrary, "libcudart.so.11.0 libcudnn.so.8 libcufft.so.10", ""},
		{tensorRTLibrary, "libcudart.so.13", ""},
	} {
		if got := strings.Join(openedByName(c.provider, strings.Fields(c.needed)), " "); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.provider, c.needed, got, c.want)
		}
	}
}

func TestLoaderDirs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("ld.so.conf", "include "+dir+"/conf.d/*.conf\n# /commented\n/usr/lib/own  # why\nrelative/dir\n")
	write("conf.d/a.conf", "/usr/local/cuda/lib64\n")
	write("conf.d/b.conf", "include "+dir+"/ld.so.conf\n/opt/b\n") // a loop ends
	got := loaderDirs(filepath.Join(dir, "ld.so.conf"), 0)
	if len(got) < 4 || got[0] != "/usr/local/cuda/lib64" || got[len(got)-1] != "/usr/lib/own" || strings.Contains(strings.Join(got, " "), "commented") {
		t.Errorf("%q", got)
	}
	if got := loaderDirs(filepath.Join(dir, "none"), 0); got != nil {
		t.Errorf("no file: %q", got)
	}
}

func TestTensorRTVersionNumber(t *testing.T) {
	for n, want := range map[int]string{100600: "10.6.0", 101501: "10.15.1", 8601: "8.6.1", 8502: "8.5.2"} {
		if got := tensorRTVersion(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestParseProfile(t *testing.T) {
	got, err := parseProfile([]byte(`[
{"cat":"Session","name":"model_loading","args":{}},
{"cat":"Node","name":"a_kernel_time","args":{"provider":"CUDAExecutionProvider","op_name":"Conv"}},
{"cat":"Node","name":"b_kernel_time","args":{"provider":"CPUExecutionProvider","op_name":"Conv"}},
{"cat":"Node","name":"c_kernel_time","args":{"provider":"CUDAExecutionProvider","op_name":"Conv"}},
{"cat":"Node","name":"d_fence_before","args":{"op_name":"Conv"}},
{"cat":"Kernel","name":"k","args":[1]}
]`))
	want := []NodeRuns{{CUDAProvider, "Conv", 2}, {CPUProvider, "Conv", 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseProfile([]byte(`[{"cat":"Node"`)); err == nil {
		t.Error("a profile that broke off is taken")
	}
}

func TestFindGPURefusesTheRest(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "libonnxruntime.so")
	if err := os.WriteFile(plain, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	var unavailable *UnavailableError
	_, _, err := findGPU([]string{plain, filepath.Join(dir, "none.so")})
	if want := "find onnx runtime: no GPU build is there (1 libraries without libonnxruntime_providers_cuda.so were passed over)"; !errors.As(err, &unavailable) || err.Error() != want || unavailable.Hint != hintGPU {
		t.Errorf("%v, want %s", err, want)
	}
	if err := os.WriteFile(filepath.Join(dir, cudaLibrary), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, skipped, err := findGPU([]string{plain, filepath.Join(dir, "none.so")})
	if err == nil || !strings.HasSuffix(err.Error(), "is not an ELF file") || len(skipped) != 1 {
		t.Errorf("with the provider: %v, skipped %q", err, skipped)
	}
}
