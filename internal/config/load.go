package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds the text of a configuration: thousands of cameras fit, and a
// video named by mistake is not parsed for minutes.
const maxFile = 1 << 20

// Options says what a configuration is read with.
type Options struct {
	// Env is the environment as NAME=value, like os.Environ. Nil is empty.
	Env []string
	// CheckURL, if not nil, says what is wrong with a camera's URL, user and
	// password beyond what this package sees. Its error must not hold the
	// password.
	CheckURL func(url, user, password string) error
	// CheckBuiltin, if not nil, says why there is no built-in model of a name
	// in a precision.
	CheckBuiltin func(model, precision string) error
	// Families are the families of models that there are. Nil = not checked.
	Families []string
	// CheckModel, if not nil, holds a model against its file and gives its labels.
	// Paths start at the root of the file system.
	CheckModel func(m Model, precision string) (labels []string, problems []ModelProblem)
}

// Load reads and checks the file at path; see Parse.
func Load(path string, o Options) (*Config, error) {
	data, err := readFile(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read config %s: %w", path, err)
	}
	return Parse(data, path, o)
}

// Parse reads and checks a file's text; path names it in errors and is where
// its relative paths start. The error is of type Errors and lists all
// problems. If all of them concern single cameras the configuration comes
// along without those, else it is nil.
func Parse(data []byte, path string, o Options) (*Config, error) {
	d := newDecoder(path, environment(o.Env))
	cfg := Default()
	d.decode(data, cfg)
	if !d.broken {
		d.override(cfg)
		d.check(cfg, o)
		d.resolve(cfg)
	}
	if len(d.errs) == 0 {
		return cfg, nil
	}
	slices.SortStableFunc(d.errs, func(a, b *FieldError) int {
		return cmp.Or(strings.Compare(source(a), source(b)), a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Path, b.Path))
	})
	ids, only := d.errs.Cameras()
	if !only {
		return nil, d.errs
	}
	for _, id := range ids {
		delete(cfg.Cameras, id)
	}
	return cfg, d.errs
}

// source sorts the file before the environment.
func source(e *FieldError) string {
	if strings.HasPrefix(e.Source, envPrefix) {
		return e.Source
	}
	return ""
}

// resolve makes relative paths start at the file's directory, so that they
// mean the same in a shell and under systemd.
func (d *decoder) resolve(cfg *Config) {
	cfg.Inference.Model = d.resolved(cfg.Inference.Model)
	for name, m := range cfg.Inference.Models {
		cfg.Inference.Models[name] = d.resolved(m)
	}
	for _, p := range []*string{&cfg.StateDir, &cfg.Inference.Library} {
		switch {
		case *p == "":
		case p == &cfg.Inference.Library && !strings.ContainsRune(*p, '/'):
			// A bare name is searched for by the loader.
		default:
			*p = d.resolvePath(*p)
		}
	}
}

func (d *decoder) resolvePath(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(d.file), p)
}
