package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Source is a file to be written: its content is Text, or where that is nil what
// From holds.
type Source struct {
	File

	Text []byte
	From string
}

// Measure fills in size and checksum. A file must be a regular one.
func (s *Source) Measure() error {
	r, err := s.open()
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	if s.Size, err = io.Copy(sum, r); err != nil {
		return err
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func (s *Source) open() (io.ReadCloser, error) {
	if s.Text != nil {
		return io.NopCloser(bytes.NewReader(s.Text)), nil
	}
	f, err := os.OpenFile(s.From, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("read %s: is not a regular file", s.From)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Write writes an archive of sources, which must have been measured; m's Files are
// filled in from them.
func Write(w io.Writer, m Manifest, sources []Source) error {
	m.Format, m.Files = Format, nil
	for i := range sources {
		s := &sources[i]
		s.Name = fmt.Sprintf("%s/%04d-%s", s.Kind, i, path.Base(s.Path))
		m.Files = append(m.Files, s.File)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	entry := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: m.At, Format: tar.FormatPAX})
	}
	if err := entry(manifestName, int64(len(text))); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	for i := range sources {
		s := &sources[i]
		if err := entry(s.Name, s.Size); err != nil {
			return err
		}
		if err := s.copyTo(t); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// copyTo writes the content that was measured, or fails.
func (s *Source) copyTo(w io.Writer) error {
	r, err := s.open()
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(r, s.Size))
	if err != nil {
		return err
	}
	if n != s.Size || hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
		return fmt.Errorf("read %s: it changed meanwhile; try again", s.From)
	}
	return nil
}
