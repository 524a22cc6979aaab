package onnxruntime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const hintGPU = "install the GPU build of ONNX Runtime (the library with " + cudaLibrary + " beside it) and name its path in inference.library or " + EnvPath

// cores lists where a GPU build of the library may be: what is named alone, else the
// places of Candidates, /opt, and the Python environments, whose package
// onnxruntime-gpu holds one: that of VIRTUAL_ENV or CONDA_PREFIX, those below /opt,
// the system's. Those that lack nothing come first.
func (s *system) cores(named string) []string {
	executable := ""
	if s.root == "" {
		if own, err := os.Executable(); err == nil {
			executable, _ = realFile(own)
		}
	}
	paths := candidates(named, s.getenv, executable, func(pattern string) ([]string, error) {
		found, err := filepath.Glob(escapeGlob(s.root) + pattern)
		for i := range found {
			s.outside(&found[i])
		}
		return found, err
	})
	for i := range paths {
		paths[i] = s.at(paths[i])
	}
	if s.named(named) {
		return paths
	}
	return s.completeFirst(append(paths, s.builds(paths)...))
}

// named says that an operator names the library, and no other is looked for.
func (s *system) named(library string) bool { return library != "" || s.getenv(EnvPath) != "" }

// completeFirst puts builds that lack nothing before those that cannot serve as they
// are, and leaves the order otherwise.
func (s *system) completeFirst(paths []string) []string {
	var complete, rest []string
	for _, p := range paths {
		if cudaBeside(p) && len((&Build{Components: s.inventory(p)}).Missing(CUDAProvider)) == 0 {
			complete = append(complete, p)
		} else {
			rest = append(rest, p)
		}
	}
	return append(complete, rest...)
}

// builds gives the libraries in the places of GPU builds that are not among known.
func (s *system) builds(known []string) []string {
	dirs := slices.Concat(s.glob("/opt/onnxruntime*/lib"), s.glob("/opt/edgecam/lib"), s.glob("/opt/*/lib"), s.glob("/opt/*/lib64"))
	for _, packages := range s.pythons() {
		dirs = append(dirs, filepath.Join(packages, "onnxruntime/capi"))
	}
	var paths []string
	for _, dir := range dirs {
		found, _ := filepath.Glob(escapeGlob(dir) + "/libonnxruntime.so*") // the pattern is well formed
		slices.Reverse(found)
		for _, p := range found {
			if !slices.Contains(known, p) && !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// FindGPU opens the first library that has the CUDA provider built in or beside it:
// of the places of Candidates, of those below /opt, and of the Python environments.
// Builds that lack nothing come first. See Find for the rest.
func FindGPU(explicit string) (*Library, []string, error) {
	return findGPU(hostSystem().cores(explicit))
}

func findGPU(paths []string) (*Library, []string, error) {
	plain := 0 // libraries without a provider
	withProvider := func(path string) bool {
		if cudaBeside(path) {
			return true
		}
		plain++
		return false
	}
	library, skipped, err := firstUsable(paths, withProvider, openWithCUDA)
	if library != nil || err != nil {
		return library, skipped, err
	}
	err = fmt.Errorf("no GPU build is there (%d libraries without %s were passed over)", plain, cudaLibrary)
	return nil, nil, &UnavailableError{Err: err, Hint: hintGPU}
}

// openWithCUDA opens a library that has the CUDA provider, or can be given it.
func openWithCUDA(path string) (*Library, error) {
	library, err := Open(path)
	if err == nil && !library.hasCUDA() {
		library.Close()
		return nil, &UnavailableError{Path: path, Err: errors.New("has no CUDA provider, and no " + cudaLibrary + " lies beside it"), Hint: hintGPU}
	}
	return library, err
}

// cudaBeside says whether the CUDA provider's file lies beside a library or
// beside the file that it links to.
func cudaBeside(path string) bool {
	dirs := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, cudaLibrary)); err == nil {
			return true
		}
	}
	return false
}

func (l *Library) hasCUDA() bool {
	names, err := l.Providers()
	return err == nil && slices.Contains(names, CUDAProvider) || l.api >= pluginAPI && cudaBeside(l.path)
}
