package onnxruntime

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"edgecam/platform"
)

// owner is what the package that a library came with says of it.
type owner struct {
	version string // "" = unknown
	cuda    int    // that the library was built for; 0 = unknown
}

// ownerOf asks the package of a library: a wheel in a Python environment, else one
// of NVIDIA's for dpkg. Libraries such as cuDNN have the same name for every CUDA,
// and only their packages tell which one they are for.
func (s *system) ownerOf(path string) owner {
	dir := filepath.Dir(path)
	if packages, ok := pythonPackages(dir); ok {
		return wheel(packages, dir)
	}
	if strings.HasPrefix(path, s.at("/usr/lib/")) || strings.HasPrefix(path, s.at("/lib/")) {
		return s.debian(filepath.Base(path))
	}
	return owner{}
}

// pythonPackages gives the directory of a Python environment that holds packages
// and has dir in it.
func pythonPackages(dir string) (string, bool) {
	for ; len(dir) > 1; dir = filepath.Dir(dir) {
		if base := filepath.Base(dir); base == "site-packages" || base == "dist-packages" {
			return dir, true
		}
	}
	return "", false
}

// wheelName takes apart "nvidia_cudnn_cu12-9.14.0.64.dist-info".
var wheelName = regexp.MustCompile(`^(.+?)-([0-9][^-]*)\.dist-info$`)

var forCUDA = regexp.MustCompile(`_cu(\d+)`)

// wheel finds the wheel that a directory of libraries belongs to. Two that share
// the directory, as those of one library for two CUDAs do, overwrite each other:
// nothing is known then.
func wheel(packages, dir string) owner {
	rest, err := filepath.Rel(packages, dir)
	if err != nil {
		return owner{}
	}
	parts := strings.Split(filepath.ToSlash(rest), "/")
	pattern := parts[0] // "tensorrt_libs", "onnxruntime"
	switch {
	case parts[0] == "nvidia" && len(parts) > 1:
		pattern = "nvidia_" + parts[1]
	case parts[0] == "tensorrt_libs":
		pattern = "tensorrt*_libs"
	case parts[0] == "onnxruntime":
		pattern = "onnxruntime_gpu"
	}
	found, _ := filepath.Glob(escapeGlob(packages) + "/" + pattern + "*.dist-info") // the pattern is well formed
	if len(found) != 1 {
		return owner{}
	}
	m := wheelName.FindStringSubmatch(filepath.Base(found[0]))
	if m == nil {
		return owner{}
	}
	o := owner{version: m[2]}
	if n := forCUDA.FindStringSubmatch(m[1]); n != nil {
		o.cuda, _ = strconv.Atoi(n[1]) // digits
	}
	return o
}

var (
	debianCUDA  = regexp.MustCompile(`-cuda-(\d+)`)   // of a package's name: libcudnn9-cuda-12
	debianBuilt = regexp.MustCompile(`\+cuda(\d+)\.`) // of a version: 10.6.0.26-1+cuda12.6
)

// debian finds the package of a library such as libcudnn.so.9.14.0.
func (s *system) debian(file string) owner {
	stem, rest, _ := strings.Cut(file, ".so.")
	major, _, _ := strings.Cut(rest, ".")
	var owners []owner
	for name, version := range s.packages() {
		if name != stem+major && !strings.HasPrefix(name, stem+major+"-cuda-") {
			continue
		}
		upstream, _, _ := strings.Cut(version, "-")
		o := owner{version: upstream}
		for _, m := range [][]string{debianCUDA.FindStringSubmatch(name), debianBuilt.FindStringSubmatch(version)} {
			if m != nil {
				o.cuda, _ = strconv.Atoi(m[1]) // digits
			}
		}
		owners = append(owners, o)
	}
	if len(owners) != 1 { // of several it may be any one's
		return owner{}
	}
	return owners[0]
}

// packages lists what dpkg has installed, with versions.
func (s *system) packages() map[string]string {
	if s.installed == nil {
		s.installed = platform.DebianPackages(os.DirFS(s.at("/")))
	}
	return s.installed
}

// cudaOfName knows the CUDA of libraries whose numbers follow it.
func cudaOfName(name string) int {
	stem, rest, _ := strings.Cut(name, ".so.")
	text, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	switch stem {
	case "libcudart", "libcublas", "libcublasLt", "libnvrtc":
		return n
	case "libcufft":
		return n + 1 // libcufft.so.11 is of CUDA 12
	}
	return 0
}

// sharedName says that a library has one name for several CUDAs and serves only one
// of them.
func sharedName(name string) bool {
	return strings.HasPrefix(name, "libcudnn") || strings.HasPrefix(name, "libnvinfer") || strings.HasPrefix(name, "libnvonnxparser")
}

// cudaOfNeeds is the CUDA of what a library is linked with, 0 = of none, or of two.
func cudaOfNeeds(needed []string) int {
	cuda := 0
	for _, n := range needed {
		switch of := cudaOfName(n); {
		case of == 0:
		case cuda == 0:
			cuda = of
		case cuda != of:
			return 0
		}
	}
	return cuda
}
