package onnxruntime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const hintGPU = "install the GPU build of ONNX Runtime (the library with " + cudaLibrary + " beside it) and name its path in inference.library or " + EnvPath

// CandidatesGPU lists where a GPU build of the library may be: the places of
// Candidates, /opt, and the Python environments, whose package onnxruntime-gpu
// holds one: that of VIRTUAL_ENV or CONDA_PREFIX, those below /opt, the system's.
// Those that lack nothing come first.
func CandidatesGPU(explicit string) []string {
	paths := Candidates(explicit)
	if explicit != "" || os.Getenv(EnvPath) != "" {
		return paths
	}
	s := hostSystem()
	return s.completeFirst(append(paths, s.builds(paths)...))
}

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

// FindGPU opens the first library among CandidatesGPU that has the CUDA
// provider built in or beside it; see Find for the rest.
func FindGPU(explicit string) (*Library, []string, error) {
	return findGPU(CandidatesGPU(explicit))
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
