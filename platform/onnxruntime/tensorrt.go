package onnxruntime

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// TensorRTVersion loads the TensorRT library that the provider beside the core
// needs and asks its version, e.g. "10.6.0". The error says in words why
// TensorRT is not there.
func (l *Library) TensorRTVersion() (string, error) {
	builtIn, err := l.Providers()
	if err != nil {
		return "", err
	}
	if !slices.Contains(builtIn, TensorRTProvider) {
		return "", l.withoutTensorRT()
	}
	dir := filepath.Dir(l.path)
	if real, ok := realFile(l.path); ok {
		dir = filepath.Dir(real)
	}
	for _, name := range elfNeeded(filepath.Join(dir, tensorRTLibrary)) {
		if strings.HasPrefix(name, "libnvinfer.so") {
			return inferVersion(name)
		}
	}
	return "", fmt.Errorf("%s is not beside %s", tensorRTLibrary, filepath.Base(l.path))
}

func (l *Library) withoutTensorRT() error {
	rtx, _ := filepath.Glob(escapeGlob(filepath.Dir(l.path)) + "/*tensorrt_rtx*") // the pattern is well formed
	if len(rtx) > 0 {
		return errors.New("only the TensorRT RTX plugin is there, which edgecam does not use")
	}
	return errors.New("this build of ONNX Runtime has no TensorRT provider")
}

// inferVersion asks getInferLibVersion of a libnvinfer. The library stays
// loaded, for the provider.
func inferVersion(name string) (string, error) {
	runtime.LockOSThread() // dlerror answers for the calling thread only
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	if err != nil {
		if strings.Contains(err.Error(), name+": cannot open shared object file") {
			return "", fmt.Errorf("%s is missing", name)
		}
		return "", err
	}
	f, err := purego.Dlsym(handle, "getInferLibVersion")
	if err != nil {
		return "", fmt.Errorf("%s is no TensorRT: it lacks getInferLibVersion", name)
	}
	number, _, _ := purego.SyscallN(f)
	return tensorRTVersion(int(int32(number))), nil
}

// tensorRTVersion formats NV_TENSORRT_VERSION, whose scale changed with
// version 10.
func tensorRTVersion(n int) string {
	if n >= 10_00_00 {
		return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100)
	}
	return fmt.Sprintf("%d.%d.%d", n/1000, n/100%10, n%100)
}
