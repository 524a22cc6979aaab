package model

import (
	"bytes"
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
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, reason(err)
	}
	size, err := check(f)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
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
	case info.IsDir():
		return 0, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return 0, errors.New("is not a regular file")
	case info.Size() == 0:
		return 0, errors.New("is empty")
	}
	head := make([]byte, 256)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, reason(err)
	}
	if what := otherFormat(head[:n]); what != "" {
		return 0, fmt.Errorf("is %s, no ONNX model", what)
	}
	if info.Size() >= maxFile {
		return 0, fmt.Errorf("has %.1f GB, and no ONNX file can be larger than 2 GB: export it with its weights as external data", float64(info.Size())/1e9)
	}
	return info.Size(), nil
}

// otherFormat names what else people hand over as a model.
func otherFormat(head []byte) string {
	starts := func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }
	at := func(i int, s string) bool { return len(head) >= i+len(s) && string(head[i:i+len(s)]) == s }
	switch {
	case starts("PK\x03\x04"):
		return "a ZIP archive (a PyTorch .pt file is one: export it to ONNX)"
	case starts("\x80\x02") || starts("\x80\x03") || starts("\x80\x04") || starts("\x80\x05"):
		return "a Python pickle (an old PyTorch file: export it to ONNX)"
	case starts("version https://git-lfs"):
		return "a Git LFS pointer: the file itself was not downloaded (git lfs pull)"
	case at(4, "TFL3"):
		return "a TensorFlow Lite model"
	case at(4, "ORTM"):
		return "a model in ONNX Runtime's own format: use the .onnx file that it was made from"
	case starts("ftrt") || starts("ptrt"):
		return "a TensorRT engine, which fits one GPU and one version: use the .onnx file that it was made from"
	case starts("\x89HDF"):
		return "an HDF5 file (Keras)"
	case starts("\x1f\x8b") || starts("BZh") || starts("\xfd7zXZ") || starts("\x28\xb5\x2f\xfd") || starts("7z\xbc\xaf"):
		return "compressed: unpack it first"
	case starts("\x7fELF"):
		return "a program or library"
	case starts("7767517"):
		return "an ncnn description"
	case starts("GGUF"):
		return "a GGUF model"
	}
	text := bytes.ToLower(bytes.TrimSpace(head))
	switch {
	case bytes.HasPrefix(text, []byte("<!doctype")) || bytes.HasPrefix(text, []byte("<html")):
		return "a web page (a download that went wrong)"
	case bytes.HasPrefix(text, []byte("<?xml")) || bytes.HasPrefix(text, []byte("<net")):
		return "XML (OpenVINO: use the .onnx file)"
	case bytes.HasPrefix(text, []byte("{\"")):
		return "JSON"
	case bytes.HasPrefix(text, []byte("[net]")):
		return "a Darknet configuration"
	}
	return ""
}

// digest is the file's SHA-256.
func digest(f io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return "", reason(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// external finds the files beside the model that hold weights, and gives their bytes together.
func external(g *onnx.Graph, dir string) (files []string, size int64, err error) {
	needs := map[string]int64{}
	for _, t := range tensors(g, nil) {
		e := t.External
		if e == nil {
			continue
		}
		if e.Location == "" || !filepath.IsLocal(filepath.FromSlash(e.Location)) {
			return nil, 0, fmt.Errorf("keeps weights in %q, which is not a file beside it", e.Location)
		}
		if e.Offset > 1<<50 || e.Length > 1<<50 {
			return nil, 0, fmt.Errorf("keeps weights in %q from byte %d on, which cannot be", e.Location, e.Offset)
		}
		needs[e.Location] = max(needs[e.Location], e.Offset+e.Length)
		if !slices.Contains(files, e.Location) {
			files = append(files, e.Location)
		}
	}
	for _, name := range files {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return files, size, fmt.Errorf("keeps its weights in %s, which is not beside it: copy both files", name)
		case err != nil:
			return files, size, fmt.Errorf("keeps its weights in %s: %w", name, reason(err))
		case !info.Mode().IsRegular():
			return files, size, fmt.Errorf("keeps its weights in %s, which is not a regular file", name)
		case info.Size() < needs[name]:
			return files, size, fmt.Errorf("keeps its weights in %s, which is cut off: it has %d bytes and should have at least %d", name, info.Size(), needs[name])
		}
		size += info.Size()
	}
	return files, size, nil
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
