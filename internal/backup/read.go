package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// maxPadding is what may follow the last file: tar fills up its blocks.
const maxPadding = 1 << 20

// Read reads an archive to its end. visit, if not nil, gets every file with its
// content, and may read less than all of it. A nil error says that the archive is
// whole and every checksum right; what visit was given before must not count until
// then.
func Read(r io.Reader, visit func(m *Manifest, f File, content io.Reader) error) (*Manifest, error) {
	m, err := read(r, visit)
	if err == nil {
		return m, nil
	}
	var newer *NewerError
	var foreign *visitError
	switch {
	case errors.As(err, &newer):
		return nil, newer
	case errors.As(err, &foreign):
		return nil, foreign.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it is cut short")
	}
	return nil, fmt.Errorf("not a usable backup: %w", err)
}

// visitError is a failure that is not the archive's.
type visitError struct{ err error }

func (e *visitError) Error() string { return e.err.Error() }

func read(r io.Reader, visit func(m *Manifest, f File, content io.Reader) error) (*Manifest, error) {
	in := bufio.NewReader(r)
	z, err := gzip.NewReader(in)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty")
	}
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	t := tar.NewReader(z)
	m, err := readManifest(t)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if err := next(t, f.Name, f.Size); err != nil {
			return nil, err
		}
		c := &content{r: t, left: f.Size, sum: sha256.New()}
		if visit != nil {
			if err := visit(m, f, c); err != nil {
				if c.err != nil {
					return nil, c.err
				}
				return nil, &visitError{err}
			}
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			return nil, err
		}
		if hex.EncodeToString(c.sum.Sum(nil)) != f.SHA256 {
			return nil, fmt.Errorf("%s is damaged: its checksum is another", f.Name)
		}
	}
	switch _, err := t.Next(); {
	case err == nil:
		return nil, errors.New("it holds more than its manifest lists")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return m, atEnd(z, in)
}

// atEnd wants nothing but padding, the right checksum of gzip, and no more.
func atEnd(z io.Reader, in io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(z, maxPadding+1))
	if err != nil {
		return err
	}
	if n > maxPadding {
		return errors.New("it goes on behind its end")
	}
	if n, err := in.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}

func readManifest(t *tar.Reader) (*Manifest, error) {
	h, err := header(t)
	if err != nil {
		return nil, err
	}
	if h.Name != manifestName || h.Size > maxManifest {
		return nil, errors.New("it does not begin with a manifest: edgecam backup has not written it")
	}
	text := make([]byte, h.Size)
	if _, err := io.ReadFull(t, text); err != nil {
		return nil, err
	}
	// What else a newer form has may be of other types.
	var begin struct {
		Format  int    `json:"format"`
		Program string `json:"program"`
	}
	if json.Unmarshal(text, &begin) == nil && begin.Format > Format && oneLine(begin.Program) {
		return nil, &NewerError{What: "format", Have: begin.Format, Know: Format, By: begin.Program}
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("its manifest: %w", err)
	}
	return m, m.check()
}

// Is says whether a file looks like an archive of this program's, whole or not.
func Is(path string) bool {
	s := Source{From: path}
	r, err := s.open()
	if err != nil {
		return false
	}
	defer r.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return false
	}
	_, err = readManifest(tar.NewReader(z))
	var newer *NewerError
	return err == nil || errors.As(err, &newer)
}

func header(t *tar.Reader) (*tar.Header, error) {
	h, err := t.Next()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if h.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%.100q is not a regular file", h.Name)
	}
	return h, nil
}

// next wants the file that the manifest has next.
func next(t *tar.Reader, name string, size int64) error {
	h, err := header(t)
	if err != nil {
		return err
	}
	if h.Name != name || h.Size != size {
		return fmt.Errorf("it has %.100q with %d bytes where its manifest lists %s with %d", h.Name, h.Size, name, size)
	}
	return nil
}

// content is one file, with its checksum taken on the way.
type content struct {
	r    io.Reader
	left int64
	sum  hash.Hash
	err  error // that the archive has
}

func (c *content) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.left <= 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	_, _ = c.sum.Write(b[:n]) // a hash takes everything
	if errors.Is(err, io.EOF) {
		err = nil
		if c.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	c.err = err
	return n, err
}
