package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	tempName     = "tmp"
	gpuCacheName = "cuda"
)

// caches are what is made anew where it is missing, and bound to this machine,
// its cards and their driver.
func caches() []string {
	return []string{"tensorrt", gpuCacheName, tempName, "memory-strategies*.json", "gpu-losses.json"}
}

// leftovers are what is only there after a process was ended amid its work.
func leftovers() []string {
	return []string{tempName + "/*", "tensorrt/.*-*", "memory-strategies*.json.*", ".*.json-*"}
}

func removeLeftovers(dir string) {
	for _, pattern := range leftovers() {
		found, _ := fs.Glob(os.DirFS(dir), pattern) // the patterns are well formed
		for _, name := range found {
			_ = os.RemoveAll(filepath.Join(dir, name)) // what cannot be removed takes room, no more
		}
	}
}

// Kept are the files of a directory that a backup holds, by their paths below it:
// all but caches, the stamp, and what begins with a dot.
func Kept(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path) // it is below
		top := !strings.ContainsRune(name, filepath.Separator)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), "."), top && isCache(name):
			if e.IsDir() {
				return filepath.SkipDir
			}
		case e.Type().IsRegular() && name != stampName:
			names = append(names, name)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

func isCache(name string) bool {
	return slices.ContainsFunc(caches(), func(pattern string) bool {
		ok, _ := filepath.Match(pattern, name)
		return ok
	})
}

// Size is the bytes that the files of a directory take together.
func Size(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // what cannot be read is not counted
		if err != nil {
			return nil //nolint:nilerr // the rest counts
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// foreign finds what may not be used, as after root has started the program once
// by hand: the first such path and the reason. access is access(2) for whoever it
// is about.
func foreign(dir string, access func(path string, want uint32) error) (path string, err error) {
	const all = unix.R_OK | unix.W_OK | unix.X_OK
	if err := access(dir, all); err != nil {
		return dir, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dir, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		want := uint32(unix.R_OK)
		switch {
		case e.IsDir():
			want = all
		case !e.Type().IsRegular():
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := access(path, want); err != nil {
			return path, err
		}
	}
	return "", nil
}

// myAccess is access(2) for this process.
func myAccess(path string, want uint32) error {
	return unix.Faccessat(unix.AT_FDCWD, path, want, unix.AT_EACCESS)
}

// Inherit gives what root has made in a directory of another user's to that user.
func Inherit(dir string) error {
	if unix.Geteuid() != 0 {
		return nil
	}
	var own unix.Stat_t
	err := unix.Stat(dir, &own)
	if errors.Is(err, fs.ErrNotExist) || err == nil && own.Uid == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // the directory's user must not lead root out of it
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if ok && st.Uid == 0 && (info.IsDir() || info.Mode().IsRegular() && st.Nlink == 1) {
			return root.Lchown(name, int(own.Uid), int(own.Gid))
		}
		return nil
	})
}

// Remade says whether a path below the state directory is a cache, the stamp or
// begins with a dot: no backup holds it.
func Remade(name string) bool {
	name = filepath.ToSlash(name)
	first, _, _ := strings.Cut(name, "/")
	return isCache(first) || name == stampName || strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}
