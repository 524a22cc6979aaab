package onnxruntime

import (
	"bufio"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/ebitengine/purego"
)

// The files of the providers, beside the core.
const tensorRTLibrary = "libonnxruntime_providers_tensorrt.so"

// Component is a library that the GPU providers need.
type Component struct {
	Name     string // as the dynamic linker looks for it, e.g. "libcudnn.so.9"
	Path     string // the file, "" = missing
	Version  string // from the file's name, e.g. "9.5.1", "" = unknown
	NeededBy string // the file name of what needs it, "" = edgecam itself
	// ByLoader says that the dynamic linker finds it by itself. The others are
	// loaded by their path before the provider is.
	ByLoader bool
}

// Missing says that there is no such file.
func (c Component) Missing() bool { return c.Path == "" }

// Inventory lists the core library at path, the CUDA and TensorRT providers
// beside it and all that these need, each once and before what needs it. It
// opens files but loads nothing.
func Inventory(core string) []Component { return inventory(core, hostSystem()) }

// system is where libraries are looked for.
type system struct {
	loader []string // directories that the dynamic linker searches
	extra  []string // others where NVIDIA's libraries are put
	needed func(path string) []string
	real   func(path string) (string, bool) // the file behind links, if there
}

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

func inventory(core string, s system) []Component {
	var list []Component
	seen := make(map[string]bool)
	dir := filepath.Dir(core)
	if real, ok := s.real(core); ok {
		dir = filepath.Dir(real)
		list = append(list, Component{Name: filepath.Base(core), Path: real, Version: fileVersion(real), ByLoader: true})
	} else {
		list = append(list, Component{Name: filepath.Base(core)})
	}
	near := s.near(dir)
	for _, name := range []string{cudaLibrary, tensorRTLibrary} {
		path, ok := s.real(filepath.Join(dir, name))
		if !ok {
			list = append(list, Component{Name: name})
			continue
		}
		needed := s.needed(path)
		for _, n := range slices.Concat(needed, openedByName(name, needed)) {
			list = s.follow(list, seen, n, name, near)
		}
		list = append(list, Component{Name: name, Path: path, ByLoader: true})
	}
	return list
}

// follow adds a library behind those that it needs.
func (s system) follow(list []Component, seen map[string]bool, name, by string, near []string) []Component {
	if seen[name] || basic(name) {
		return list
	}
	seen[name] = true
	c := Component{Name: name, NeededBy: by}
	for i, dir := range slices.Concat(s.loader, near, s.extra) {
		if real, ok := s.real(filepath.Join(dir, name)); ok {
			c.Path, c.Version, c.ByLoader = filepath.Join(dir, name), fileVersion(real), i < len(s.loader)
			for _, n := range s.needed(real) {
				list = s.follow(list, seen, n, name, near)
			}
			break
		}
	}
	return append(list, c)
}

// basic says that every system with a C++ library has it.
func basic(name string) bool {
	stem, _, _ := strings.Cut(name, ".so")
	return slices.Contains([]string{"libc", "libm", "libdl", "librt", "libpthread", "libstdc++", "libgcc_s", "libutil"}, stem) ||
		strings.HasPrefix(name, "ld-linux")
}

// near lists directories that belong to the core: its own, and those of NVIDIA's
// packages in the Python environment that it lies in.
func (s system) near(dir string) []string {
	list := []string{dir}
	if filepath.Base(dir) != "capi" {
		return list
	}
	packages := filepath.Dir(filepath.Dir(dir))
	found, _ := filepath.Glob(escapeGlob(packages) + "/nvidia/*/lib") // the pattern is well formed
	return append(append(list, found...), filepath.Join(packages, "tensorrt_libs"))
}

// fileVersion is what follows ".so." in a file's name, where it has at least
// two numbers.
func fileVersion(path string) string {
	_, version, _ := strings.Cut(filepath.Base(path), ".so.")
	if !strings.Contains(version, ".") {
		return ""
	}
	return version
}

func hostSystem() system {
	s := system{needed: elfNeeded, real: realFile}
	s.loader = filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	s.loader = append(s.loader, loaderDirs("/etc/ld.so.conf", 0)...)
	s.loader = append(s.loader, "/lib/"+triplet(), "/usr/lib/"+triplet(), "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	arch := "x86_64-linux"
	if runtime.GOARCH == "arm64" {
		arch = "aarch64-linux"
	}
	for _, pattern := range []string{
		"/usr/local/cuda/lib64", "/usr/local/cuda/targets/" + arch + "/lib", "/usr/local/cuda-*/targets/" + arch + "/lib",
		"/usr/lib/" + triplet() + "/nvidia", "/usr/lib/" + triplet() + "/tegra", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib",
		"/opt/tensorrt/lib", "/usr/local/tensorrt/lib", "/usr/local/TensorRT*/lib",
		"/usr/lib/python3*/dist-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
		"/usr/local/lib/python3*/*-packages/tensorrt_libs",
	} {
		found, _ := filepath.Glob(pattern) // the pattern is well formed
		s.extra = append(s.extra, found...)
	}
	return s
}

var includeLine = regexp.MustCompile(`^include\s+(\S+)`)

// loaderDirs reads the dynamic linker's configuration.
func loaderDirs(path string, depth int) []string {
	f, err := os.Open(path)
	if err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	var dirs []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		line = strings.TrimSpace(line)
		if m := includeLine.FindStringSubmatch(line); m != nil {
			files, _ := filepath.Glob(m[1]) // a bad pattern includes nothing, as for the linker
			for _, file := range files {
				dirs = append(dirs, loaderDirs(file, depth+1)...)
			}
		} else if filepath.IsAbs(line) {
			dirs = append(dirs, line)
		}
	}
	return dirs
}

func elfNeeded(path string) []string {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil
	}
	return names
}

func realFile(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	return real, err == nil && info.Mode().IsRegular()
}

// Preload loads the libraries of the inventory that the dynamic linker would
// not find by itself, so that a provider which needs them finds them loaded.
// What cannot be loaded is left for the provider to complain about.
func Preload(components []Component) {
	runtime.LockOSThread() // dlerror answers for the calling thread only
	defer runtime.UnlockOSThread()
	for _, c := range components {
		if c.Missing() || c.ByLoader || checkFile(c.Path) != nil {
			continue
		}
		// Never closed: the provider stays loaded for the life of the process.
		_, _ = purego.Dlopen(c.Path, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
	}
}
