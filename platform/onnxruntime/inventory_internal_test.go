package onnxruntime

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"edgecam/internal/testkit"
)

// nothing is an empty environment.
func nothing(string) string { return "" }

// A provider built for CUDA 13 with its libraries in several places: what it needs is
// listed once, before what needs it, and what the linker does not find by itself is
// known as such.
func TestInventory(t *testing.T) {
	root := t.TempDir()
	testkit.Tree(t, root, map[string]any{
		"/opt/ort/lib/libonnxruntime.so.1":      "->libonnxruntime.so.1.31.1",
		"/opt/ort/lib/libonnxruntime.so.1.31.1": testkit.ELF{},
		"/opt/ort/lib/" + cudaLibrary: testkit.ELF{Needed: []string{
			"libcublas.so.13", "libcudart.so.13", "libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2",
		}},
		"/opt/ort/lib/" + tensorRTLibrary:             testkit.ELF{Needed: []string{"libcudart.so.13", "libnvinfer.so.10"}},
		"/usr/lib/libcudart.so.13":                    "->libcudart.so.13.0.48",
		"/usr/lib/libcudart.so.13.0.48":               testkit.ELF{},
		"/usr/local/cuda/lib64/libcublas.so.13":       "->libcublas.so.13.1.0.3",
		"/usr/local/cuda/lib64/libcublas.so.13.1.0.3": testkit.ELF{Needed: []string{"libcublasLt.so.13", "libm.so.6"}},
		"/usr/local/cuda/lib64/libcublasLt.so.13":     testkit.ELF{},
		"/usr/local/cuda/lib64/libnvrtc.so.13":        testkit.ELF{},
		"/opt/ort/lib/libcudnn.so.9":                  "->libcudnn.so.9.14.0",
		"/opt/ort/lib/libcudnn.so.9.14.0":             testkit.ELF{},
	})
	const ort, cuda = "/opt/ort/lib/", "/usr/local/cuda/lib64/"
	want := []Component{
		{Name: "libonnxruntime.so.1", Path: ort + "libonnxruntime.so.1.31.1", Version: "1.31.1", ByLoader: true},
		{Name: "libcublasLt.so.13", Path: cuda + "libcublasLt.so.13", NeededBy: "libcublas.so.13", CUDA: 13},
		{Name: "libcublas.so.13", Path: cuda + "libcublas.so.13", Version: "13.1.0.3", NeededBy: cudaLibrary, CUDA: 13},
		{Name: "libcudart.so.13", Path: "/usr/lib/libcudart.so.13", Version: "13.0.48", NeededBy: cudaLibrary, ByLoader: true, CUDA: 13},
		{Name: "libcudnn.so.9", Path: ort + "libcudnn.so.9", Version: "9.14.0", NeededBy: cudaLibrary},
		{Name: "libcufft.so.12", NeededBy: cudaLibrary},
		{Name: "libnvrtc.so.13", Path: cuda + "libnvrtc.so.13", NeededBy: cudaLibrary, CUDA: 13},
		{Name: cudaLibrary, Path: ort + cudaLibrary, ByLoader: true, CUDA: 13},
		{Name: builderResource, NeededBy: "libnvinfer.so.10"},
		{Name: "libnvinfer.so.10", NeededBy: tensorRTLibrary},
		{Name: tensorRTLibrary, Path: ort + tensorRTLibrary, ByLoader: true, CUDA: 13},
	}
	got := newSystem(root, "amd64", nothing).inventory(root + ort + "libonnxruntime.so.1")
	if len(got) != len(want) {
		t.Fatalf("%d components: %+v", len(got), got)
	}
	for i := range want {
		got[i].Path = strings.TrimPrefix(got[i].Path, root)
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("component %d\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

func TestInventoryOfNothing(t *testing.T) {
	got := newSystem(t.TempDir(), "amd64", nothing).inventory("/nowhere/libonnxruntime.so")
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

func TestConfiguredDirectories(t *testing.T) {
	root := t.TempDir()
	testkit.Tree(t, root, map[string]any{
		"/etc/ld.so.conf":          "include /etc/ld.so.conf.d/*.conf\n# /commented\n/usr/lib/own  # why\nrelative/dir\n",
		"/etc/ld.so.conf.d/a.conf": "/usr/local/cuda/lib64\n",
		"/etc/ld.so.conf.d/b.conf": "include ../ld.so.conf\n/opt/b\n", // a loop ends
	})
	s := newSystem(root, "amd64", nothing)
	got := s.configured(root+"/etc/ld.so.conf", 0)
	if len(got) < 4 || got[0] != root+"/usr/local/cuda/lib64" || got[len(got)-1] != root+"/usr/lib/own" || strings.Contains(strings.Join(got, " "), "commented") {
		t.Errorf("%q", got)
	}
	if got := s.configured(root+"/none", 0); got != nil {
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
