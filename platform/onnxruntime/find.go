package onnxruntime

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Find opens the first library among Candidates(explicit) that can be used.
// The second result says, one line each, which files were there and could not
// be used. Without any the error is an *UnavailableError: of the file that was
// named, or of the first that was there, or with the places that were searched.
func Find(explicit string) (*Library, []string, error) {
	paths := Candidates(explicit)
	library, skipped, err := firstUsable(paths, func(string) bool { return true }, Open)
	if library != nil || err != nil {
		return library, skipped, err
	}
	return nil, nil, &UnavailableError{
		Err:  fmt.Errorf("no libonnxruntime.so in %s", strings.Join(directories(paths), ", ")),
		Hint: hintInstall,
	}
}

// firstUsable opens the first of paths that is there, is wanted and can be
// opened. skipped says, one line each, which could not; err is the first of
// these where none could, and nil where there was none to try. A path that
// stands alone was named: it is tried whatever it is.
func firstUsable(paths []string, wanted func(path string) bool, open func(path string) (*Library, error)) (library *Library, skipped []string, err error) {
	for _, path := range paths {
		if len(paths) > 1 {
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				continue
			}
			if !wanted(path) {
				continue
			}
		}
		library, failed := open(path)
		if failed == nil {
			return library, skipped, nil
		}
		if err == nil {
			err = failed
		}
		skipped = append(skipped, failed.Error())
	}
	return nil, skipped, err
}

const hintInstall = "install the edgecam package again, which brings it (from source: scripts/fetch-onnxruntime.sh), or name the library's path in inference.library or " + EnvPath

func directories(paths []string) []string {
	var dirs []string
	for _, p := range paths {
		dir := p[:max(strings.LastIndexByte(p, '/'), 0)]
		if len(dirs) == 0 || dirs[len(dirs)-1] != dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// triplet is Debian's name of the architecture's library directory.
func triplet() string { return tripletOf(runtime.GOARCH) }

func tripletOf(goarch string) string {
	if goarch == "arm64" {
		return "aarch64-linux-gnu"
	}
	return "x86_64-linux-gnu"
}
