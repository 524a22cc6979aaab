package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// NewerError is a directory that a newer program has written.
type NewerError struct {
	Dir  string
	Have int    // its schema
	Know int    // the newest that this program understands
	By   string // who wrote it
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s was written by %s in a newer form (schema %d) than this program knows (%d): it is left as it is",
		e.Dir, e.by("an edgecam"), e.Have, e.Know)
}

// Hint is what to do.
func (e *NewerError) Hint() string {
	return fmt.Sprintf("install %s again, or move %s away and restore a backup of this version into a new one: edgecam restore FILE", e.by("that version"), shell(e.Dir))
}

func (e *NewerError) by(unknown string) string {
	if e.By == "" {
		return unknown
	}
	return "edgecam " + e.By
}

// LockedError is a directory that another process uses.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string { return "another edgecam uses " + e.Dir }

// Hint is what to do.
func (e *LockedError) Hint() string {
	return "stop the other one (systemctl stop edgecam), or give this one a state_dir of its own"
}

// UnusableError says why a directory cannot be used, or only be read.
type UnusableError struct {
	Dir  string
	Path string // what of it; may be Dir
	Err  error
	Try  string
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("state directory %s: %s: %v", e.Dir, e.Path, e.Err)
}

// Unwrap gives the cause.
func (e *UnusableError) Unwrap() error { return e.Err }

// Hint is what to do.
func (e *UnusableError) Hint() string { return e.Try }

// unusable says what a failure means and how to mend it.
func unusable(dir, path string, err error) *UnusableError {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	e := &UnusableError{Dir: dir, Path: path, Err: err}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		e.Try = "make room on its disk: df -h " + shell(dir)
	case errors.Is(err, unix.EROFS):
		e.Try = "mount it for writing, or set state_dir to a directory that can be written"
	case errors.Is(err, fs.ErrPermission):
		e.Try = fmt.Sprintf("give it to the user that runs edgecam: chown -R %s %s && chmod u+rwX -R %s", self(), shell(dir), shell(dir))
	case errors.Is(err, unix.ENOTDIR):
		e.Try = "set state_dir to a directory"
	default:
		e.Try = "see what is wrong with " + path + ", or set state_dir to another directory"
	}
	return e
}

// self is this process's user and group, as chown takes them.
func self() string {
	uid, gid := strconv.Itoa(unix.Geteuid()), strconv.Itoa(unix.Getegid())
	if u, err := user.LookupId(uid); err == nil {
		uid = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		gid = g.Name
	}
	return uid + ":" + gid
}

// shell quotes a path where a shell would take it apart.
func shell(path string) string {
	if strings.ContainsAny(path, " \t\n'\"\\$&;|<>()*?[]#~`!") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// Examine says why a user may not use a directory, and touches nothing: a
// *NewerError, an *UnusableError, or nil.
func Examine(dir string, uid int, gids []int) error {
	i, err := Read(dir)
	if err != nil {
		return err
	}
	if i.Schema > Schema() {
		return &NewerError{Dir: dir, Have: i.Schema, Know: Schema(), By: i.WrittenBy}
	}
	path, err := foreign(dir, func(path string, want uint32) error { return allowed(path, want, uid, gids) })
	if err == nil {
		return nil
	}
	e := unusable(dir, path, err)
	if u, lookup := user.LookupId(strconv.Itoa(uid)); lookup == nil {
		e.Try = fmt.Sprintf("chown -R %s: %s", u.Username, shell(dir))
	}
	return e
}

// allowed is access(2) for another user, by owner and mode.
func allowed(path string, want uint32, uid int, gids []int) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	shift := 0
	switch {
	case uid == 0:
		return nil
	case int(st.Uid) == uid:
		shift = 6
	case slices.Contains(gids, int(st.Gid)):
		shift = 3
	}
	if st.Mode>>shift&want != want {
		return unix.EACCES
	}
	return nil
}
