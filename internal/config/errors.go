package config

import (
	"fmt"
	"slices"
	"strings"
)

// FieldError is one problem of a configuration.
type FieldError struct {
	Source string // the file's path, or the name of an environment variable
	Line   int    // from 1; 0 where the file does not name the field
	Column int    // from 1, in characters
	Path   string // of the field, like cameras.gate.transport; "" for the whole file
	Value  string // as written; empty for secrets
	Err    error  // what is wanted, or what is wrong
}

// Error is the place, the field, and what to do.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Source)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Value != "" {
		fmt.Fprintf(&b, ", not %q", shorten(e.Value))
	}
	return b.String()
}

// Camera is the id of the camera that the problem is in, "" for any other.
func (e *FieldError) Camera() string {
	rest, ok := strings.CutPrefix(e.Path, "cameras.")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, ".")
	return id
}

// Model is the name of the model that the problem is in, "" for any other.
func (e *FieldError) Model() string {
	if e.Path == "inference.model" || strings.HasPrefix(e.Path, "inference.model.") {
		return DefaultModel
	}
	rest, ok := strings.CutPrefix(e.Path, "inference.models.")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// Unwrap gives the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// Errors is every problem of a configuration, in the order of the file.
type Errors []*FieldError

// Error lists the problems, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, f := range e {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems to errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, f := range e {
		out[i] = f
	}
	return out
}

// Cameras gives the ids of the cameras that have problems, sorted, and whether
// there are no others: then the rest of the configuration can be used.
func (e Errors) Cameras() (ids []string, only bool) {
	only = true
	for _, f := range e {
		id := f.Camera()
		if id == "" {
			only = false
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), only
}

// shorten keeps a foreign text to a length that a line bears.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
