package onnxruntime

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// EnvPath names the environment variable that holds the library's path.
const EnvPath = "EDGECAM_ONNXRUNTIME"

// Candidates lists the paths where the library may be, best first: explicit
// (from the configuration) or, when that is empty, $EDGECAM_ONNXRUNTIME stands
// alone, since whoever names a file wants that file and no other. Otherwise:
// beside the executable and in the lib directories near it, the cache of a
// source checkout, LD_LIBRARY_PATH, the system's library directories. Paths
// need not exist.
func Candidates(explicit string) []string {
	executable, err := os.Executable()
	if err == nil {
		if real, err := filepath.EvalSymlinks(executable); err == nil {
			executable = real
		}
	}
	return candidates(explicit, os.Getenv, executable, filepath.Glob)
}

func candidates(explicit string, getenv func(string) string, executable string, glob func(string) ([]string, error)) []string {
	if explicit != "" {
		return []string{explicit}
	}
	if p := getenv(EnvPath); p != "" {
		return []string{p}
	}
	var dirs []string
	if executable != "" {
		dir := filepath.Dir(executable)
		dirs = append(dirs, dir, filepath.Join(dir, "lib"), filepath.Join(dir, "../lib/edgecam"), filepath.Join(dir, "../lib"))
		cached, _ := glob(filepath.Join(dir, "../.cache/onnxruntime/*")) // the pattern is well formed
		cached = slices.DeleteFunc(cached, foreign)
		slices.Sort(cached)
		slices.Reverse(cached) // the newest version first
		dirs = append(dirs, cached...)
	}
	for _, dir := range filepath.SplitList(getenv("LD_LIBRARY_PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, "/usr/local/lib", "/usr/lib/"+triplet(), "/usr/lib64", "/usr/lib", "/opt/onnxruntime/lib")

	var paths []string
	add := func(p string) {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	for _, dir := range dirs {
		add(filepath.Join(dir, "libonnxruntime.so"))
		add(filepath.Join(dir, "libonnxruntime.so.1"))
		// Distributions ship only the file with the full version.
		versioned, _ := glob(filepath.Join(escapeGlob(dir), "libonnxruntime.so.1.*"))
		slices.Sort(versioned)
		slices.Reverse(versioned)
		for _, p := range versioned {
			add(p)
		}
	}
	return paths
}

// foreign says that a directory of the cache is another architecture's: a
// release needs them all, and they lie side by side.
func foreign(dir string) bool {
	return runtime.GOARCH != "amd64" && strings.HasSuffix(dir, "-amd64") ||
		runtime.GOARCH != "arm64" && strings.HasSuffix(dir, "-arm64")
}

// escapeGlob makes a directory's name mean itself in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
