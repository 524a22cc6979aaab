package ort

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"edgecam/platform/wholefile"
)

// engineKey is all that a TensorRT engine depends on. An engine of any other
// key is never loaded.
type engineKey struct {
	Format            int    `json:"format"` // of the cache itself
	Model             string `json:"model"`  // SHA-256
	GPU               string `json:"gpu"`    // its kind: cards of one kind share an engine
	Name              string `json:"name"`
	ComputeCapability string `json:"compute_capability"`
	Driver            string `json:"driver"`
	TensorRT          string `json:"tensorrt"`
	ONNXRuntime       string `json:"onnxruntime"`
	Shapes            string `json:"shapes"` // minimum, optimum and maximum of the profile
	Precision         string `json:"precision"`
	Level             int    `json:"level"` // of the builder's optimization
}

// cacheFormat changes when the meaning of the files does.
const cacheFormat = 2

const (
	engineSuffix = ".engine.onnx"
	noteSuffix   = ".engine.json"
	// maxNote and maxEngine bound what is read.
	maxNote   = 64 << 10
	maxEngine = 2 << 30
	// maxEngines bounds the engines of all models and GPUs together.
	maxEngines = 8
)

// errNoEngine says that the cache has none of the key.
var errNoEngine = errors.New("none is stored")

// stem is the beginning of the names of the key's files: the model, the GPU, then
// all of the key.
func (k engineKey) stem() string {
	text, err := json.Marshal(k)
	if err != nil {
		panic("ort: engine key: " + err.Error()) // strings and numbers alone
	}
	sum := sha256.Sum256(text)
	return k.family() + "-" + hex.EncodeToString(sum[:10])
}

// family is the beginning that an engine shares with those that it replaces: those
// of the same model on the same GPU.
func (k engineKey) family() string {
	gpu := sha256.Sum256([]byte(k.GPU))
	return k.Model[:min(16, len(k.Model))] + "-" + hex.EncodeToString(gpu[:4])
}

// engineNote lies beside an engine and says what it is.
type engineNote struct {
	Key    engineKey `json:"key"`
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256"`
}

// engineCache keeps TensorRT engines as context models in a directory. A file
// is only used when the note beside it names the same key, size and checksum.
type engineCache struct {
	dir string // "" = nothing is kept
}

// load gives the engine of the key, or the reason why there is none that can
// be trusted.
func (c engineCache) load(key engineKey) ([]byte, error) {
	if c.dir == "" {
		return nil, errNoEngine
	}
	info, err := os.Stat(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoEngine
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("others may write to %s", c.dir)
	}
	root, err := os.OpenRoot(c.dir) // no link leads out of it
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return loadEngine(root, key)
}

func loadEngine(root *os.Root, key engineKey) ([]byte, error) {
	text, err := readBounded(root, key.stem()+noteSuffix, maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoEngine
	}
	if err != nil {
		return nil, err
	}
	var note engineNote
	if err := json.Unmarshal(text, &note); err != nil {
		return nil, fmt.Errorf("its note is damaged: %w", err)
	}
	if note.Key != key {
		return nil, errors.New("its note names another model, GPU or version")
	}
	content, err := readBounded(root, key.stem()+engineSuffix, maxEngine)
	if err != nil {
		return nil, err
	}
	if int64(len(content)) != note.Size {
		return nil, fmt.Errorf("it is damaged: %d bytes instead of %d", len(content), note.Size)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != note.SHA256 {
		return nil, errors.New("it is damaged: its checksum is another")
	}
	return content, nil
}

func readBounded(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, trimPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("it is damaged: %d bytes", info.Size())
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, trimPath(err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// trimPath drops the path of an *fs.PathError and keeps what can be tested for.
func trimPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// store keeps an engine and removes others of the same model, and the oldest
// beyond maxEngines. Each file appears whole or not at all; the note comes
// last, so that an engine without its own note is never used.
func (c engineCache) store(key engineKey, content []byte) error {
	if c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return trimPath(err)
	}
	sum := sha256.Sum256(content)
	text, err := json.MarshalIndent(engineNote{Key: key, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}, "", "  ")
	if err != nil {
		return err
	}
	if err := c.replace(key.stem()+engineSuffix, content); err != nil {
		return err
	}
	if err := c.replace(key.stem()+noteSuffix, text); err != nil {
		return err
	}
	c.evict(key)
	return nil
}

func (c engineCache) replace(name string, content []byte) error {
	return trimPath(wholefile.Write(filepath.Join(c.dir, name), content, 0o600))
}

// evict removes what the new entry replaces. What cannot be removed stays: it
// costs room, not truth.
func (c engineCache) evict(key engineKey) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type engine struct {
		stem string
		age  int64
	}
	var others []engine
	for _, e := range entries {
		stem, found := strings.CutSuffix(e.Name(), engineSuffix)
		if !found {
			if stem, found = strings.CutSuffix(e.Name(), noteSuffix); !found {
				continue
			}
		}
		if stem == key.stem() {
			continue
		}
		if strings.HasPrefix(stem, key.family()+"-") {
			_ = os.Remove(filepath.Join(c.dir, e.Name()))
			continue
		}
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), engineSuffix) {
			others = append(others, engine{stem, info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(others, func(a, b engine) int { return int(min(max(b.age-a.age, -1), 1)) })
	for i := maxEngines - 1; i < len(others); i++ {
		_ = os.Remove(filepath.Join(c.dir, others[i].stem+noteSuffix))
		_ = os.Remove(filepath.Join(c.dir, others[i].stem+engineSuffix))
	}
}

// remove drops the key's engine, which turned out useless.
func (c engineCache) remove(key engineKey) {
	if c.dir == "" {
		return
	}
	_ = os.Remove(filepath.Join(c.dir, key.stem()+noteSuffix))
	_ = os.Remove(filepath.Join(c.dir, key.stem()+engineSuffix))
}
