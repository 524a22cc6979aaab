package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadFile reads the text of a configuration without looking at it. The error
// does not name the file.
func ReadFile(name string) ([]byte, error) { return readFile(name, maxFile) }

// readFile reads a regular file of at most limit bytes. A pipe that nobody
// writes to would hold up the start, and every reload, for good; a device has
// no end. The error does not name the file: the caller does.
func readFile(name string, limit int64) ([]byte, error) {
	// Opening a pipe waits for a writer, unless it is told not to.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, plain(err)
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	// Files of /proc and the like have no size: the bound is on what comes.
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plain(err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("has more than %d bytes", limit)
	}
	return b, nil
}

// plain is the cause of an error of a file without the path, which the caller
// names itself.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
