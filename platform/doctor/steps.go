package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"edgecam/platform/onnxruntime"
)

// release is a release of ONNX Runtime's GPU build in the package index of Python.
type release struct {
	version string
	cuda    int
	python  int  // least minor version of Python 3 that it is packed for
	extras  bool // it names what it needs
}

// releases are those to take, the best first: 1.31.1 was tried on a card; 1.26 is
// the last for CUDA 12, and the older ones are the last for older Pythons.
func releases() []release {
	return []release{
		{"1.31.1", 13, 11, true}, {"1.26.0", 12, 11, true}, {"1.23.2", 12, 10, true}, {"1.19.2", 12, 8, false},
	}
}

// turing is the compute capability from which on every cuDNN 9 serves; older cards
// need one before turingOnly
// (https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html).
const turing, turingOnly = "7.5", "9.11"

// fresh says how to install a build that serves this box.
func (b box) fresh() string {
	switch {
	case b.isBoard():
		return runtimeFor(b.board())
	case b.offers() > 0 && b.offers() < 12:
		return fmt.Sprintf("update NVIDIA's driver to %d or newer (CUDA 13; %d for CUDA 12), reboot, and run doctor again", cudas[13].driver, cudas[12].driver)
	case b.hasOlder(cudas[12].capability):
		return "no current build serves this card: set gpu.mode to off, and the processor does the work"
	case b.Arch != "amd64":
		return fmt.Sprintf("install a GPU build of ONNX Runtime for this processor and CUDA %d, and name its libonnxruntime.so or its directory in inference.library", b.offers())
	}
	r, ok := b.release()
	if !ok {
		return "install Python 3.8 or newer with its venv module, and run doctor again; or name the directory of a GPU build in inference.library"
	}
	wheel := "onnxruntime-gpu==" + r.version
	if r.extras {
		wheel = "'onnxruntime-gpu[cuda,cudnn]==" + r.version + "'"
	}
	packages := []string{wheel}
	if !r.extras {
		for _, stem := range []string{"libcudart", "libcublas", "libcufft", "libcurand", "libcudnn"} {
			packages = append(packages, b.wheelOf(stem, r.cuda))
		}
	} else if b.hasOlder(turing) {
		packages = append(packages, b.wheelOf("libcudnn", r.cuda))
	}
	return b.environment(packages) + b.key()
}

// environment makes ours with packages in it, anew where it is there.
func (b box) environment(packages []string) string {
	clear := ""
	if b.inOurs() {
		clear = "--clear " // packages for two CUDAs write to the same directories
	}
	return fmt.Sprintf("%spython3 -m venv %s%s && %s/bin/pip install %s", b.tool(), clear, ownPlace, ownPlace, strings.Join(packages, " "))
}

// inOurs says that there is a build in our environment.
func (b box) inOurs() bool {
	return slices.ContainsFunc(b.Builds, func(o *onnxruntime.Build) bool { return o.Environment == ownPlace })
}

// key says what to set where our environment would not be come to.
func (b box) key() string {
	if b.Named || slices.ContainsFunc(b.Builds, func(o *onnxruntime.Build) bool { return o.Environment != ownPlace }) {
		return ", and set inference.library to " + ownPlace
	}
	return " (it is looked for there; inference.library may stay empty)"
}

// tool installs what makes environments, which Debian and Ubuntu pack apart.
func (b box) tool() string {
	if id, _, _ := strings.Cut(b.System, " "); id == "debian" || id == "ubuntu" {
		return "apt-get install python3-venv && "
	}
	return ""
}

// release picks the release for the box.
func (b box) release() (release, bool) {
	_, minor, _ := strings.Cut(b.Python, ".")
	python, err := strconv.Atoi(minor)
	if err != nil {
		return release{}, false
	}
	for _, r := range releases() {
		if b.refuses(r.cuda) == "" && python >= r.python {
			return r, true
		}
	}
	return release{}, false
}

// wheelOf is the package of Python's index that holds a library.
func (b box) wheelOf(stem string, cuda int) string {
	name := map[string]string{
		"libcudart": "nvidia-cuda-runtime", "libcublas": "nvidia-cublas", "libcublasLt": "nvidia-cublas", "libcufft": "nvidia-cufft",
		"libcurand": "nvidia-curand", "libnvrtc": "nvidia-cuda-nvrtc", "libcudnn": "nvidia-cudnn",
	}[stem]
	switch {
	case name == "":
		return ""
	case stem == "libcudnn" && b.hasOlder(turing):
		return fmt.Sprintf("'nvidia-cudnn-cu%d<%s'", cuda, turingOnly)
	case stem == "libcudnn", cuda < 13: // from CUDA 13 on the names of its own say no version
		return fmt.Sprintf("nvidia-%s-cu%d", strings.TrimPrefix(name, "nvidia-"), cuda)
	}
	return fmt.Sprintf("'%s==%d.*'", name, cuda-sooner(stem))
}

// sooner is by how much the major version of a library of CUDA 13 is behind it.
func sooner(stem string) int {
	return map[string]int{"libcufft": 1, "libcurand": 3}[stem]
}

// complete says how to bring what a build lacks.
func (b box) complete(build *onnxruntime.Build, bad []onnxruntime.Component) string {
	if b.isBoard() {
		return b.completeBoard(bad)
	}
	if slices.ContainsFunc(bad, func(c onnxruntime.Component) bool { return c.Name == "libcuda.so.1" }) {
		return "install NVIDIA's driver, whose part for computing brings libcuda.so.1"
	}
	if b.Arch != "amd64" || build.CUDA == 0 {
		return "install CUDA's libraries and cuDNN for the CUDA version of gpu runtime"
	}
	if build.CUDA < 12 || cudnn(bad) == 8 {
		// Nobody packs them any more, and a current build does without.
		return b.fresh()
	}
	var wheels []string
	for _, c := range bad {
		stem, _, _ := strings.Cut(c.Name, ".so")
		if w := b.wheelOf(stem, build.CUDA); w != "" && !slices.Contains(wheels, w) {
			wheels = append(wheels, w)
		}
	}
	var steps []string
	if len(wheels) > 0 {
		again := slices.ContainsFunc(bad, func(c onnxruntime.Component) bool { return !c.Missing() })
		steps = append(steps, b.pip(build, wheels, again))
	}
	if b.Repository {
		steps = append(steps, "apt-get install "+strings.Join(b.debs(build, bad), " "))
	}
	if len(steps) == 0 {
		return "install the packages of these libraries for CUDA " + strconv.Itoa(build.CUDA)
	}
	return strings.Join(steps, ", or ")
}

// pip installs into the environment that a build lies in, else into our own.
func (b box) pip(build *onnxruntime.Build, wheels []string, again bool) string {
	if env := build.Environment; env != "" && env != "/usr" && env != "/usr/local" { // the system's packages are the distribution's
		how := " install "
		if again { // the index may have nothing newer than what is damaged
			how += "--force-reinstall "
		}
		return filepath.Join(env, "bin/pip") + how + strings.Join(wheels, " ")
	}
	return b.environment(wheels)
}

// debs are the packages of NVIDIA's repository.
func (b box) debs(build *onnxruntime.Build, bad []onnxruntime.Component) []string {
	var list []string
	add := func(name string) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	minor := "0"
	if build.CUDA == b.offers() {
		_, minor, _ = strings.Cut(b.Platform.CUDA, ".")
	} else if build.CUDA == 12 {
		minor = "9" // its last
	}
	for _, c := range bad {
		if strings.HasPrefix(c.Name, "libcudnn") {
			add(fmt.Sprintf("libcudnn9-cuda-%d", build.CUDA))
		} else if strings.HasPrefix(c.Name, "libcu") {
			add(fmt.Sprintf("cuda-libraries-%d-%s", build.CUDA, minor))
		}
	}
	return list
}

// cudnn is the major version of cuDNN that is asked for, 0 = it is not among bad.
func cudnn(bad []onnxruntime.Component) int {
	for _, c := range bad {
		if n, ok := strings.CutPrefix(c.Name, "libcudnn.so."); ok {
			major, _ := strconv.Atoi(n) // else it is none that is known
			return major
		}
	}
	return 0
}

// withTensorRT says how to come to the TensorRT that a build needs.
func (b box) withTensorRT(build *onnxruntime.Build) string {
	const without = "or set inference.provider to cuda"
	if b.isBoard() {
		return "sudo apt-get update && sudo apt-get install " + tensorRTPackages(b.board()) + ", " + without
	}
	if b.Arch != "amd64" || build.CUDA < 12 {
		return "install the TensorRT that the build was made for, " + without
	}
	major := 0
	for _, c := range build.Components {
		if n, ok := strings.CutPrefix(c.Name, "libnvinfer.so."); ok {
			major, _ = strconv.Atoi(n) // else it is none that is known
		}
	}
	if major < 10 || b.hasOlder(turing) {
		return "no current TensorRT serves this build and card: set inference.provider to cuda"
	}
	return b.pip(build, []string{fmt.Sprintf("'tensorrt-cu%d-libs==%d.*'", build.CUDA, major)}, false) + ", " + without
}
