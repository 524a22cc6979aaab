package infer

import (
	"errors"
	"fmt"
)

// ErrClosed is what a closed engine and its slots return.
var ErrClosed = errors.New("engine is closed")

// ModelError says why a model cannot be used. Model is what the configuration
// names: a path, or the name of a built-in model.
type ModelError struct {
	Model string
	Err   error
	Hint  string // what the operator can do; may be empty
}

func (e *ModelError) Error() string { return fmt.Sprintf("load model %s: %v", e.Model, e.Err) }
func (e *ModelError) Unwrap() error { return e.Err }

// Try is what the operator can do; may be empty.
func (e *ModelError) Try() string { return e.Hint }

// UnhealthyError says that a run gave a number that cannot be, and where.
type UnhealthyError struct {
	Image  int    // of the batch
	Output string // boxes, scores; of lists also classes, count, selected
	Index  int    // of the first such value in the image's part of the output
	Value  float32
	Reason string
}

func (e *UnhealthyError) Error() string {
	return fmt.Sprintf("read output %s of image %d: value %d is %v: %s", e.Output, e.Image, e.Index, e.Value, e.Reason)
}
