package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"edgecam/platform/wholefile"
)

const (
	stampName = "state.json"
	// maxStamp is more than the file ever has.
	maxStamp = 64 << 10
	// maxVersion is more than the name of a version ever has.
	maxVersion = 100
	// dirMode keeps others out, as engines are programs that are run.
	dirMode = 0o750
)

// Info is what a directory says of itself.
type Info struct {
	Schema    int       `json:"schema"`
	WrittenBy string    `json:"written_by"` // version of the program
	At        time.Time `json:"at"`
}

// Dir is a directory that this process has to itself.
type Dir struct {
	path string
	lock *os.File
	info Info
}

// Open takes a directory into use, and makes it where it is missing; program is
// this program's version. What unfinished work has left there is removed, and an
// older schema brought to this program's.
//
// The error is a *NewerError, a *LockedError or an *UnusableError. With the last
// the directory may come along: then what is there can be read, and nothing be
// added.
func Open(dir, program string) (*Dir, error) {
	return open(dir, program, migrations(), time.Now)
}

func open(dir, program string, steps []step, now func() time.Time) (*Dir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, unusable(dir, dir, err)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, unusable(dir, dir, err)
	}
	d := &Dir{path: dir}
	if d.lock, err = lock(dir); err != nil {
		return nil, err
	}
	err = d.take(program, steps, now)
	var limited *UnusableError
	if errors.As(err, &limited) && d.info.Schema == len(steps)+1 {
		return d, err
	}
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// take reads the stamp, and writes it anew, which shows that writing works.
func (d *Dir) take(program string, steps []step, now func() time.Time) error {
	var err error
	if d.info, err = Read(d.path); err != nil {
		return err
	}
	known := len(steps) + 1
	if d.info.Schema > known {
		return &NewerError{Dir: d.path, Have: d.info.Schema, Know: known, By: d.info.WrittenBy}
	}
	if path, err := foreign(d.path, myAccess); err != nil {
		return unusable(d.path, path, err)
	}
	removeLeftovers(d.path)
	for d.info.Schema < known {
		// Again from its begin, should the power go in between.
		if d.info.Schema > 0 {
			if err := steps[d.info.Schema-1](d.path); err != nil {
				return unusable(d.path, d.path, fmt.Errorf("bring it from schema %d to %d: %w", d.info.Schema, d.info.Schema+1, err))
			}
		}
		if err := d.stamp(max(d.info.Schema+1, 1), program, now()); err != nil {
			return err
		}
	}
	if err := d.stamp(known, program, now()); err != nil {
		return err
	}
	if err := os.MkdirAll(d.Temp(), 0o700); err != nil {
		return unusable(d.path, d.Temp(), err)
	}
	return Inherit(d.path)
}

// Path is the directory, from the root of the file system.
func (d *Dir) Path() string { return d.path }

// Info is what the directory says of itself by now.
func (d *Dir) Info() Info { return d.info }

// Temp is a directory for what need not outlive the process. It is empty at Open.
func (d *Dir) Temp() string { return filepath.Join(d.path, tempName) }

// GPUCache is where the GPU's driver may keep what it compiles.
func (d *Dir) GPUCache() string { return filepath.Join(d.path, gpuCacheName) }

// Close lets another process have the directory. What root has written in a
// directory of somebody else's is theirs then.
func (d *Dir) Close() error {
	if d == nil || d.lock == nil {
		return nil
	}
	err := Inherit(d.path)
	err = errors.Join(err, d.lock.Close())
	d.lock = nil
	return err
}

// Stamp declares the directory to be in the form that another program's was, as
// of a backup that was just restored; Open brings it on from there.
func (d *Dir) Stamp(schema int, program string) error {
	return errors.Join(d.stamp(schema, program, time.Now()), Inherit(d.path))
}

func (d *Dir) stamp(schema int, program string, at time.Time) error {
	i := Info{Schema: schema, WrittenBy: program, At: at.UTC().Truncate(time.Second)}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(d.path, stampName)
	if err := wholefile.Write(path, append(text, '\n'), 0o640); err != nil {
		return unusable(d.path, path, err)
	}
	d.info = i
	return nil
}

// Read gives what a directory says of itself and touches nothing. One that says
// nothing has schema 0: it is empty, or from before there were schemas.
func Read(dir string) (Info, error) {
	path := filepath.Join(dir, stampName)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, nil
	}
	if err != nil {
		return Info{}, unusable(dir, path, err)
	}
	defer f.Close()
	var i Info
	text, err := io.ReadAll(io.LimitReader(f, maxStamp))
	if err == nil {
		err = json.Unmarshal(text, &i)
	}
	if err == nil && i.Schema < 1 {
		err = fmt.Errorf("schema %d", i.Schema)
	}
	if err != nil {
		e := unusable(dir, path, fmt.Errorf("is damaged: %w", err))
		e.Try = fmt.Sprintf("move it away, mv %s %s, and what it held is made anew, or comes from a backup: edgecam restore FILE", shell(dir), shell(dir+".damaged"))
		return Info{}, e
	}
	if len(i.WrittenBy) > maxVersion || strings.ContainsFunc(i.WrittenBy, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		i.WrittenBy = "" // it is shown in terminals
	}
	return i, nil
}

// lock has the directory for this process alone. The lock is on the directory
// itself: a file could belong to another user, and would stay.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, unusable(dir, dir, err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &LockedError{Dir: dir}
	}
	return nil, unusable(dir, dir, fmt.Errorf("lock: %w", err))
}

// Locked says whether some process has the directory. A directory that is not
// there, or cannot be looked at, is not in use by anybody that can be told.
func Locked(dir string) bool {
	f, err := lock(dir)
	if err == nil {
		f.Close()
	}
	var other *LockedError
	return errors.As(err, &other)
}
