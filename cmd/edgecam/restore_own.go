package main

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"edgecam/internal/backup"
)

// own gives a staged file the owner and mode of the one that it replaces, or those
// that the package gives: root writes, the service reads. Files in the state
// directory go to its owner with all the others.
func (t *target) own(f *os.File) error {
	like := t.like
	if like == "" {
		like = t.path
	}
	mode, uid, gid := fs.FileMode(0o640), -1, -1
	if t.file.Kind == backup.Named {
		mode = 0o644
	}
	if info, err := os.Lstat(like); err == nil && info.Mode().IsRegular() {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			mode, uid, gid = info.Mode().Perm(), int(st.Uid), int(st.Gid)
		}
	} else if g, err := user.LookupGroup(serviceName); err == nil && t.file.Base != backup.InState {
		uid = 0
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 && gid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	return f.Chmod(mode)
}

// makeDirs makes a directory that the service can look into, with those above it.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755) //nolint:gosec // models are no secret, and the service is another user
}

// makeStateDir makes the state directory as the package does: it is the service's.
func makeStateDir(dir string) error {
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		return err
	}
	u, err := user.Lookup(serviceName)
	if err != nil || os.Geteuid() != 0 {
		return nil //nolint:nilerr // without that user it is of whoever restores
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}
