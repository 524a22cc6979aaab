package sysav

import (
	"fmt"
	"os"
	"path/filepath"
)

// candidates are the files that may be the system's libavcodec, best first: what
// the loader finds by name, then places that a loader is not told of. Of versions
// those come first that NVIDIA's FFmpeg has had.
func candidates() []string {
	if path := os.Getenv(EnvPath); path != "" {
		return []string{path}
	}
	var out []string
	names := libraryNames()
	out = append(out, names...)
	for _, pattern := range []string{
		"/usr/lib/aarch64-linux-gnu/tegra*", "/usr/lib/aarch64-linux-gnu/nvidia", "/usr/local/lib", "/usr/lib/aarch64-linux-gnu",
	} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			continue // only a malformed pattern is an error
		}
		for _, dir := range dirs {
			for _, name := range names {
				if path := filepath.Join(dir, name); exists(path) {
					out = append(out, path)
				}
			}
		}
	}
	return out
}

func libraryNames() []string {
	var names []string
	for _, major := range []int{60, 59, 58, 61, 62} {
		names = append(names, fmt.Sprintf("libavcodec.so.%d", major))
	}
	return names
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
