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
// Candidates, /opt, and the Python environments of the system and of
// VIRTUAL_ENV, whose package onnxruntime-gpu holds one.
func CandidatesGPU(explicit string) []string {
	paths := Candidates(explicit)
	if explicit != "" || os.Getenv(EnvPath) != "" {
		return paths
	}
	patterns := []string{"/opt/onnxruntime*/lib", "/opt/edgecam/lib"}
	for _, prefix := range []string{os.Getenv("VIRTUAL_ENV"), "/usr", "/usr/local", "/opt/venv", "/opt/edgecam/venv"} {
		if prefix != "" {
			patterns = append(patterns, escapeGlob(prefix)+"/lib/python3*/*-packages/onnxruntime/capi")
		}
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern + "/libonnxruntime.so*") // the patterns are well formed
		slices.Reverse(found)
		for _, p := range found {
			if !slices.Contains(paths, p) {
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
	var first error
	var skipped []string
	plain := 0 // libraries without a provider
	for _, path := range paths {
		if len(paths) > 1 {
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				continue
			}
			if !cudaBeside(path) {
				plain++
				continue
			}
		}
		library, err := Open(path)
		if err == nil && !library.hasCUDA() {
			err = &UnavailableError{Path: path, Err: errors.New("has no CUDA provider, and no " + cudaLibrary + " lies beside it"), Hint: hintGPU}
			library.Close()
		}
		if err == nil {
			return library, skipped, nil
		}
		if first == nil {
			first = err
		}
		skipped = append(skipped, err.Error())
	}
	if first != nil {
		return nil, skipped, first
	}
	err := fmt.Errorf("no GPU build is there (%d libraries without %s were passed over)", plain, cudaLibrary)
	return nil, nil, &UnavailableError{Err: err, Hint: hintGPU}
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
