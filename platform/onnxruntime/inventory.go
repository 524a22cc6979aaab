package onnxruntime

import (
	"cmp"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/ebitengine/purego"
)

// The files of the providers, beside the core.
const tensorRTLibrary = "libonnxruntime_providers_tensorrt.so"

// Component is a library that the GPU providers need.
type Component struct {
	Name     string // as the dynamic linker looks for it, e.g. "libcudnn.so.9"
	Path     string // the file, "" = missing
	Version  string // of its name or package, e.g. "9.5.1", "" = unknown
	NeededBy string // the file name of what needs it, "" = edgecam itself
	// ByLoader says that the dynamic linker finds it by itself. The others are
	// loaded by their path before the provider is.
	ByLoader bool
	// Problem is why the file cannot be loaded, "" = nothing is known against it.
	Problem string
	// CUDA is the major version that it was built for, 0 = unknown.
	CUDA int
	// Others are other versions of what is missing, by path: they do not serve.
	Others []string
}

// Missing says that there is no such file.
func (c Component) Missing() bool { return c.Path == "" }

// Inventory lists the core library at path, the CUDA and TensorRT providers
// beside it and all that these need, each once and before what needs it. It
// opens files but loads nothing.
func Inventory(core string) []Component { return hostSystem().inventory(core) }

// openedByName are libraries that the providers open themselves, so that no
// ELF header names them.
func openedByName(provider string, needed []string) []string {
	if provider != cudaLibrary {
		return nil
	}
	list := []string{"libcudnn.so.9"}
	fft := "libcufft.so.11" // of CUDA 12
	if slices.Contains(needed, "libcudart.so.13") {
		fft = "libcufft.so.12"
	}
	for _, n := range needed {
		if strings.HasPrefix(n, "libcudnn.so") || strings.HasPrefix(n, "libcufft.so") {
			return nil // of a build that is linked with them
		}
	}
	return append(list, fft)
}

// compilerOf is what cuDNN opens for kernels that it compiles, where it has some
// for the card: its absence is no failure.
func compilerOf(cuda int) string {
	if cuda < 12 {
		return ""
	}
	return "libnvrtc.so." + strconv.Itoa(cuda)
}

// walk is an inventory on the way.
type walk struct {
	*system

	list []Component
	seen map[string]bool
	near []string
	cuda int // of the provider, 0 = unknown
}

func (s *system) inventory(core string) []Component {
	w := &walk{system: s, seen: map[string]bool{}}
	dir := filepath.Dir(core)
	c := Component{Name: filepath.Base(core)}
	if f, ok := s.file(core); ok {
		dir = filepath.Dir(f.real)
		c.Path, c.Version, c.Problem, c.ByLoader = f.real, cmp.Or(coreVersion(f.real), f.version), f.problem, true
	}
	w.list = append(w.list, c)
	w.near = near(dir)
	for _, name := range []string{cudaLibrary, tensorRTLibrary} {
		f, ok := s.file(filepath.Join(dir, name))
		if !ok {
			w.list = append(w.list, Component{Name: name})
			continue
		}
		w.cuda = cudaOfNeeds(f.needed)
		for _, n := range slices.Concat(f.needed, openedByName(name, f.needed)) {
			if f.problem == "" {
				w.follow(n, name)
			}
		}
		if tool := compilerOf(w.cuda); name == cudaLibrary && tool != "" && len(s.candidates(tool, w.near)) > 0 {
			w.follow(tool, name)
		}
		w.list = append(w.list, Component{Name: name, Path: filepath.Join(dir, name), ByLoader: true, Problem: f.problem, CUDA: w.cuda})
	}
	return w.list
}

// follow adds a library behind those that it needs.
func (w *walk) follow(name, by string) {
	if w.seen[name] || basic(name) {
		return
	}
	w.seen[name] = true
	c := Component{Name: name, NeededBy: by}
	if found, ok := choose(w.candidates(name, w.near), w.cuda); ok {
		f := found.file
		c.Path, c.Version, c.ByLoader, c.Problem, c.CUDA = found.path, f.version, found.byLoader, f.problem, f.cuda
		for _, n := range f.needed {
			w.follow(n, name)
		}
	} else {
		c.Others = w.others(name, w.near)
	}
	if strings.HasPrefix(name, "libnvinfer.so") {
		w.list = append(w.list, w.builder(c)...)
	}
	w.list = append(w.list, c)
}

// others finds other versions of a library than the one that is asked for.
func (s *system) others(name string, near []string) []string {
	stem, _, _ := strings.Cut(name, ".so.")
	var found []string
	seen := map[string]bool{}
	for _, dir := range slices.Concat(s.early, s.late, near, s.extra) {
		paths, _ := filepath.Glob(escapeGlob(dir) + "/" + stem + ".so.*") // the pattern is well formed
		for _, path := range paths {
			if f, ok := s.file(path); ok && !seen[f.real] {
				seen[f.real] = true
				found = append(found, f.real)
			}
		}
	}
	return found
}

// builderResource is the beginning of the names of the files that TensorRT
// builds engines with, one for all GPUs or one for each kind.
const builderResource = "libnvinfer_builder_resource"

// builder finds TensorRT's builder, which TensorRT opens by name: beside
// libnvinfer, else wherever the dynamic linker searches. One is named for all of
// its files.
func (w *walk) builder(infer Component) []Component {
	missing := []Component{{Name: builderResource, NeededBy: infer.Name}}
	var dirs []string
	if infer.Path != "" {
		dirs = append(dirs, filepath.Dir(infer.Path))
	}
	for _, dir := range slices.Concat(dirs, w.early, w.late, w.near, w.extra) {
		found, _ := filepath.Glob(escapeGlob(dir) + "/" + builderResource + "*.so*") // the pattern is well formed
		var list []Component
		for _, path := range found {
			if f, ok := w.file(path); ok {
				list = append(list, Component{
					Name: builderResource, Path: path, Version: f.version, NeededBy: infer.Name, Problem: f.problem,
					ByLoader: slices.Contains(w.early, dir) || slices.Contains(w.late, dir) || w.cache[filepath.Base(path)] != "",
				})
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return missing
}

// basic says that every system with a C++ library has it.
func basic(name string) bool {
	stem, _, _ := strings.Cut(name, ".so")
	return slices.Contains([]string{"libc", "libm", "libdl", "librt", "libpthread", "libstdc++", "libgcc_s", "libutil"}, stem) ||
		strings.HasPrefix(name, "ld-linux")
}

// near lists directories that belong to the core: its own, and those of NVIDIA's
// packages in the Python environment that it lies in.
func near(dir string) []string {
	list := []string{dir}
	if packages, ok := pythonPackages(dir); ok {
		list = append(list, nvidiaIn(packages)...)
	}
	return list
}

// Preload loads the libraries that a provider needs and the dynamic linker
// would not find by itself, so that the provider finds them loaded: it takes what
// is loaded under the name that it asks for. What cannot be loaded is left for the
// provider to complain about.
func (l *Library) Preload(provider string) {
	runtime.LockOSThread() // dlerror answers for the calling thread only
	defer runtime.UnlockOSThread()
	for _, c := range Inventory(l.path) {
		if provider == CUDAProvider && c.Name == cudaLibrary {
			return // what TensorRT needs comes behind
		}
		if c.Missing() || c.ByLoader || c.Problem != "" {
			continue
		}
		if c.Name == builderResource && !tellsName(c.Path) {
			continue // TensorRT would not find it by its name
		}
		// Never closed: the provider stays loaded for the life of the process.
		_, _ = purego.Dlopen(c.Path, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	}
}
