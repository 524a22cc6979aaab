package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Format is the newest form of archives that this program understands, and the
// one that it writes.
const Format = 1

const (
	manifestName = "manifest.json"

	maxManifest = 8 << 20
	maxFiles    = 10000
	maxName     = 1024
	// MaxConfig is the size of the largest configuration that is taken.
	MaxConfig = 1 << 20
	// maxTotal is more than any box holds of models.
	maxTotal = 64 << 30
)

// Kind says what a file is.
type Kind string

// The kinds.
const (
	Config Kind = "config" // the configuration, exactly one
	Named  Kind = "file"   // that the configuration names
	Secret Kind = "secret" // that holds one
	State  Kind = "state"  // of the state directory
)

// Base is where a file's path starts.
type Base string

// The bases.
const (
	BesideConfig Base = "config" // the directory of the configuration
	InState      Base = "state"  // the state directory
	Elsewhere    Base = "/"      // the root of the file system
)

// File is one file of an archive.
type File struct {
	Name   string `json:"name"` // in the archive
	Kind   Kind   `json:"kind"`
	Base   Base   `json:"base"`
	Path   string `json:"path"` // from Base on, with / between its parts
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// Omission is something that is not in an archive.
type Omission struct {
	What string `json:"what"` // a key of the configuration, or a path
	Why  string `json:"why"`
}

// Manifest says what an archive holds.
type Manifest struct {
	Format  int        `json:"format"`
	Schema  int        `json:"state_schema"`
	Program string     `json:"program"` // version that wrote it
	At      time.Time  `json:"at"`
	Secrets bool       `json:"secrets"` // whether they are in it
	Files   []File     `json:"files"`
	LeftOut []Omission `json:"left_out,omitempty"`
}

// NewerError is an archive of a newer program.
type NewerError struct {
	What       string // format or state schema
	Have, Know int
	By         string
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the backup was written by edgecam %s in a newer form (%s %d) than this program knows (%d)", e.By, e.What, e.Have, e.Know)
}

// Hint is what to do.
func (e *NewerError) Hint() string {
	return fmt.Sprintf("restore it with edgecam %s or newer", e.By)
}

// check wants a manifest that an honest program could have written.
func (m *Manifest) check() error {
	if m.Format < 1 || m.Format > Format || m.Schema < 0 || !oneLine(m.Program) {
		return errors.New("its manifest makes no sense")
	}
	if len(m.Files) > maxFiles {
		return fmt.Errorf("its manifest lists %d files, more than %d", len(m.Files), maxFiles)
	}
	names, paths := map[string]bool{manifestName: true}, map[string]bool{}
	configs, total := 0, int64(0)
	for _, f := range m.Files {
		if err := f.check(); err != nil {
			return fmt.Errorf("its manifest lists %.100q: %w", f.Name, err)
		}
		where := string(f.Base) + ":" + f.Path
		if names[f.Name] || paths[where] {
			return fmt.Errorf("its manifest lists %.100q twice", f.Name)
		}
		names[f.Name], paths[where] = true, true
		if f.Kind == Config {
			configs++
		}
		if total += f.Size; total > maxTotal {
			return fmt.Errorf("it holds more than %d GiB", maxTotal>>30)
		}
	}
	for where := range paths { // a file cannot be the directory of another one
		for dir := path.Dir(where); dir != "." && dir != "/" && len(dir) < len(where); dir = path.Dir(dir) {
			if paths[dir] {
				return fmt.Errorf("its manifest takes %.100q for a file and for a directory", dir)
			}
		}
	}
	if configs != 1 {
		return fmt.Errorf("it holds %d configurations in place of one", configs)
	}
	return nil
}

func (f *File) check() error {
	if !fs.ValidPath(f.Name) || len(f.Name) > maxName || !oneLine(f.Name) {
		return errors.New("not a plain name")
	}
	if f.Size < 0 || f.Size > maxTotal || len(f.SHA256) != 64 {
		return errors.New("size or checksum makes no sense")
	}
	local := f.Path
	if f.Base == Elsewhere {
		local = strings.TrimPrefix(f.Path, "/")
		if local == f.Path {
			return errors.New("its path does not start at the root")
		}
	}
	if !fs.ValidPath(local) || local == "." || !filepath.IsLocal(local) || len(f.Path) > maxName || !oneLine(f.Path) {
		return errors.New("its path leads elsewhere")
	}
	switch f.Kind {
	case Config:
		if f.Base != BesideConfig || strings.Contains(f.Path, "/") || f.Size > MaxConfig {
			return errors.New("not a configuration")
		}
	case State:
		if f.Base != InState {
			return errors.New("not of the state directory")
		}
	case Named, Secret:
	default:
		return errors.New("of no known kind")
	}
	switch f.Base {
	case BesideConfig, InState, Elsewhere:
		return nil
	}
	return errors.New("of no known place")
}

// oneLine says whether a text can be shown as it is.
func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\\' })
}

// Storable says whether a path is one that archives take.
func Storable(path string) bool { return len(path) <= maxName/2 && oneLine(path) }
