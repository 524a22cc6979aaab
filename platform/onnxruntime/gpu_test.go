package onnxruntime_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"

	"edgecam/internal/testkit"
	"edgecam/platform/onnxruntime"
)

// deviceBit marks what the stand-in takes for device memory.
const deviceBit = 1 << 56

// gpuLibrary compiles the stand-in for the GPU build.
func gpuLibrary(t *testing.T, defines ...string) string {
	t.Helper()
	so := filepath.Join(t.TempDir(), "libonnxruntime.so.1")
	args := []string{"-shared", "-fPIC", "-O1", "-w", "-o", so, "testdata/fakeort.c", "-ldl", "-pthread", fmt.Sprintf("-DREAL=%q", testkit.ONNXRuntime(t))}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return so
}

// script binds functions of the stand-in by their names.
type script struct {
	notes func() string
	clear func()
	fail  func(call, text string)
	onCPU func(int32)
}

func openGPU(t *testing.T, defines ...string) (*onnxruntime.Library, script) {
	t.Helper()
	path := gpuLibrary(t, defines...)
	l, err := onnxruntime.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	handle, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	var s script
	purego.RegisterLibFunc(&s.notes, handle, "fake_notes")
	purego.RegisterLibFunc(&s.clear, handle, "fake_clear")
	purego.RegisterLibFunc(&s.fail, handle, "fake_fail")
	purego.RegisterLibFunc(&s.onCPU, handle, "fake_on_cpu")
	return l, s
}

// TestBuiltInProviders wants all options in one call, since each call resets
// the others, and the stream as a pointer behind it.
func TestBuiltInProviders(t *testing.T) {
	l, fake := openGPU(t)
	s, err := l.NewSession(model(t), onnxruntime.SessionOptions{Providers: []onnxruntime.Provider{
		{
			Name: onnxruntime.TensorRTProvider, Device: 3, Stream: 0x7f0012345678,
			Options: map[string]string{"trt_fp16_enable": "1", "trt_builder_optimization_level": "1", "trt_profile_min_shapes": "images:1x3x416x416"},
		},
		{Name: onnxruntime.CUDAProvider, Device: 3, Stream: 0x7f0012345678, Options: map[string]string{"enable_cuda_graph": "1"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := `tensorrt options 4: device_id=3 trt_builder_optimization_level=1 trt_fp16_enable=1 trt_profile_min_shapes=images:1x3x416x416
tensorrt user_compute_stream=0x7f0012345678
append tensorrt
cuda options 2: device_id=3 enable_cuda_graph=1
cuda user_compute_stream=0x7f0012345678
append cuda
`
	if got := fake.notes(); got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
}

// TestPluginProvider uses a provider library with a core that has none built
// in; the device is found by its ordinal, not by its place in the list.
func TestPluginProvider(t *testing.T) {
	l, fake := openGPU(t, "BUILTIN=0")
	plugin := filepath.Join(filepath.Dir(l.Path()), "libonnxruntime_providers_cuda.so")
	provider := onnxruntime.Provider{Name: onnxruntime.CUDAProvider, Device: 0, Stream: 4660, Options: map[string]string{"enable_cuda_graph": "0"}}
	opts := onnxruntime.SessionOptions{Providers: []onnxruntime.Provider{provider}}
	_, err := l.NewSession(model(t), opts)
	if want := "load model: use CUDAExecutionProvider: this build of ONNX Runtime has no such provider, and no libonnxruntime_providers_cuda.so lies beside it"; err == nil || err.Error() != want {
		t.Errorf("without the file: %v, want %s", err, want)
	}
	copyFile(t, l.Path(), plugin)
	for range 2 {
		s, err := l.NewSession(model(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	const appended = "append plugin device 1 of 1, options 2: user_compute_stream=4660 enable_cuda_graph=0\nrelease cuda\n"
	if got, want := fake.notes(), "register edgecam-0 libonnxruntime_providers_cuda.so\n"+appended+appended; got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
	opts.Providers[0].Device = 2
	if _, err := l.NewSession(model(t), opts); err == nil || !strings.Contains(err.Error(), "it offers 2 devices, GPU 2 is not among them") {
		t.Errorf("GPU 2: %v", err)
	}
	opts.Providers[0] = onnxruntime.Provider{Name: onnxruntime.TensorRTProvider}
	if _, err := l.NewSession(model(t), opts); err == nil || err.Error() != "load model: use TensorrtExecutionProvider: this build of ONNX Runtime has no such provider" {
		t.Errorf("TensorRT: %v", err)
	}
}

// TestPluginNeedsItsVersion: a core from before provider libraries has a
// shorter table, and is never asked for what lies behind it.
func TestPluginNeedsItsVersion(t *testing.T) {
	l, _ := openGPU(t, "BUILTIN=0", `VERSION="1.21.1"`)
	copyFile(t, l.Path(), filepath.Join(filepath.Dir(l.Path()), "libonnxruntime_providers_cuda.so"))
	_, err := l.NewSession(model(t), onnxruntime.SessionOptions{Providers: []onnxruntime.Provider{{Name: onnxruntime.CUDAProvider}}})
	if err == nil || !strings.HasSuffix(err.Error(), "ONNX Runtime 1.21.1 takes no provider libraries, 1.22 or newer does") {
		t.Errorf("error %v", err)
	}
	old, fake := openGPU(t, `VERSION="1.17.3"`)
	s, err := old.NewSession(model(t), onnxruntime.SessionOptions{Providers: []onnxruntime.Provider{{Name: onnxruntime.CUDAProvider}}})
	if err != nil || fake.notes() != "cuda options 1: device_id=0\nappend cuda\n" {
		t.Fatalf("1.17 with a built-in provider: %v, calls %q", err, fake.notes())
	}
	s.Close()
}

func TestProviderRefusal(t *testing.T) {
	l, fake := openGPU(t)
	fake.fail("update cuda", "Failed to load library x.so with error: libcublasLt.so.13: cannot open shared object file")
	_, err := l.NewSession(model(t), onnxruntime.SessionOptions{Providers: []onnxruntime.Provider{{Name: onnxruntime.CUDAProvider}}})
	want := "load model: onnx runtime UpdateCUDAProviderOptions: Failed to load library x.so with error: libcublasLt.so.13: cannot open shared object file (code 1)"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDeviceTensors(t *testing.T) {
	l, fake := openGPU(t)
	at := onnxruntime.DeviceMemory{Device: 2, Address: deviceBit | 0x1000, Bytes: 1200}
	for _, element := range []onnxruntime.ElementType{onnxruntime.Float32, onnxruntime.Float16} {
		tensor, err := l.NewDeviceTensor(at, element, 1, 3, 10, 10)
		if err != nil {
			t.Fatal(err)
		}
		if tensor.Data() != nil || tensor.Bytes() != nil {
			t.Error("device memory is handed out as host memory")
		}
		if _, err := tensor.Prefix(1); err == nil {
			t.Error("part of a device tensor as host memory")
		}
		tensor.Close()
	}
	const memory = "memory Cuda allocator 0 device 2 type 0\n"
	if got, want := fake.notes(), memory+"tensor 1200 bytes type 1: 1 3 10 10\n"+memory+"tensor 600 bytes type 10: 1 3 10 10\n"; got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
	refused := []struct {
		name    string
		memory  onnxruntime.DeviceMemory
		element onnxruntime.ElementType
		shape   []int64
		want    string
	}{
		{"too little", onnxruntime.DeviceMemory{Address: deviceBit, Bytes: 1199}, onnxruntime.Float32, []int64{300}, "make tensor [300]: 1199 bytes at 0x100000000000000, 1200 needed"},
		{"nothing", onnxruntime.DeviceMemory{}, onnxruntime.Float32, []int64{1}, "make tensor [1]: 0 bytes at 0x0, 4 needed"},
		{"another type", at, onnxruntime.Uint8, []int64{1}, "make tensor [1]: edgecam passes no uint8 to a GPU"},
		{"no shape", at, onnxruntime.Float32, nil, "make tensor []: impossible shape"},
	}
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := l.NewDeviceTensor(tt.memory, tt.element, tt.shape...); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestRunOptions(t *testing.T) {
	l, fake := openGPU(t)
	o, err := l.NewRunOptions(map[string]string{onnxruntime.RunWithoutWaiting: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fake.notes(); got != "run option disable_synchronize_execution_providers=1\n" {
		t.Errorf("calls %q", got)
	}
	o.Close()
	o.Close()
	if _, err := l.NewRunOptions(map[string]string{"": "1"}); err == nil {
		t.Error("an empty key is taken")
	}
}

// TestProfile lists the nodes of a run of the real library.
func TestProfile(t *testing.T) {
	l := open(t)
	dir := t.TempDir()
	s, err := l.NewSession(model(t), onnxruntime.SessionOptions{Profile: filepath.Join(dir, "nodes")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	in, err := l.NewTensor(1, 3, 416, 416)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	boxes, err := l.NewTensor(1, 3549, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer boxes.Close()
	for _, err := range []error{b.Input("images", in), b.Output("boxes", boxes), b.Run()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	runs, err := s.EndProfile()
	if err != nil {
		t.Fatal(err)
	}
	convolutions := 0
	for _, r := range runs {
		if r.Provider != onnxruntime.CPUProvider || r.Op == "" || r.Count < 1 {
			t.Errorf("run %+v", r)
		}
		if strings.Contains(r.Op, "Conv") {
			convolutions += r.Count
		}
	}
	if convolutions < 30 {
		t.Errorf("%d convolutions in %+v", convolutions, runs)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if err := b.Run(); err != nil {
		t.Errorf("run after the profile: %v", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}
