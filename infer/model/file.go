package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"edgecam/infer/model/onnx"
)

// maxFile is what one protobuf message, and so one ONNX file, can hold.
const maxFile = 2 << 30

// open opens a model file and finds what is no ONNX file at all.
func open(path string) (*os.File, int64, error) {
	f, err := regular(path)
	if err != nil {
		return nil, 0, err
	}
	size, err := check(f)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// regular opens a file of the ordinary kind. It asks what it is first: opening a pipe waits for who writes to it.
func regular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, reason(err)
	case info.IsDir():
		return nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	return f, nil
}

// reason takes the path out of an error, which whoever reports it names.
func reason(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func check(f *os.File) (int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, reason(err)
	case info.Size() == 0:
		return 0, errors.New("is empty")
	}
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, reason(err)
	}
	if what, instead := otherFormat(head[:n]); what != "" {
		if instead != "" {
			instead = ": " + instead
		}
		return 0, fmt.Errorf("is %s, no ONNX model%s", what, instead)
	}
	if info.Size() >= maxFile {
		return 0, fmt.Errorf("has %.1f GB, and no ONNX file can be larger than 2 GB: export it with its weights as external data", float64(info.Size())/1e9)
	}
	return info.Size(), nil
}

// digest is the file's SHA-256.
func digest(f io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return "", reason(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// external finds the files beside the model that hold weights, and gives their bytes together. The stamp changes with them.
func external(g *onnx.Graph, dir string) (files []string, size int64, stamp string, err error) {
	needs := map[string]int64{}
	for _, t := range tensors(g, nil) {
		e := t.External
		if e == nil {
			continue
		}
		if e.Location == "" || !filepath.IsLocal(filepath.FromSlash(e.Location)) {
			return nil, 0, "", fmt.Errorf("keeps weights in %q, which is not a file beside it", e.Location)
		}
		if e.Offset > 1<<50 || e.Length > 1<<50 {
			return nil, 0, "", fmt.Errorf("keeps weights in %q from byte %d on, which cannot be", e.Location, e.Offset)
		}
		length := e.Length
		if length == 0 { // to the end: as much as the shape says
			length = t.Elements() * int64(t.Type.Bytes())
		}
		if length < 0 || length > 1<<50 {
			return nil, 0, "", fmt.Errorf("has a tensor of %v numbers, which cannot be", t.Dims)
		}
		needs[e.Location] = max(needs[e.Location], e.Offset+length)
		if !slices.Contains(files, e.Location) {
			files = append(files, e.Location)
		}
	}
	for _, name := range files {
		info, err := beside(dir, name)
		if err == nil && info.Size() < needs[name] {
			err = fmt.Errorf("which is cut off: it has %d bytes and should have at least %d", info.Size(), needs[name])
		}
		if err != nil {
			return files, size, stamp, fmt.Errorf("keeps its weights in %q, %w", name, err)
		}
		size += info.Size()
		stamp += fmt.Sprintf("%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	}
	return files, size, stamp, nil
}

// beside finds a file of weights. A link that leads elsewhere is refused, as ONNX Runtime does.
func beside(dir, name string) (os.FileInfo, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("which is not beside it: copy both files")
	case err != nil:
		return nil, fmt.Errorf("which cannot be read: %w", reason(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("which is not a regular file")
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("which cannot be read: %w", reason(err))
	}
	root, err := filepath.EvalSymlinks(cmp.Or(dir, "."))
	if err != nil {
		return nil, fmt.Errorf("which cannot be read: %w", reason(err))
	}
	if to, err := filepath.Rel(root, at); err != nil || !filepath.IsLocal(to) {
		return nil, errors.New("which is a link out of its directory: put the file itself there")
	}
	return info, nil
}

// tensors are all constants of a graph and those inside of it.
func tensors(g *onnx.Graph, all []*onnx.Tensor) []*onnx.Tensor {
	for i := range g.Initializers {
		all = append(all, &g.Initializers[i])
	}
	for i := range g.Nodes {
		for k := range g.Nodes[i].Attributes {
			a := &g.Nodes[i].Attributes[k]
			if a.Tensor != nil {
				all = append(all, a.Tensor)
			}
			for _, inner := range a.Graphs {
				all = tensors(inner, all)
			}
		}
	}
	return all
}

// params counts weights: numbers of types that weights have. Shapes and sizes are integers.
func params(g *onnx.Graph) (n int64) {
	for _, t := range tensors(g, nil) {
		switch t.Type {
		case onnx.Float32, onnx.Float16, onnx.BFloat16, onnx.Float64, onnx.Int8, onnx.Uint8:
			n += t.Elements()
		}
	}
	return n
}

// producer puts the exporter's name and version together.
func producer(m *onnx.Model) string { return strings.TrimSpace(m.Producer + " " + m.ProducerVersion) }
