package onnxruntime

import (
	"errors"
	"fmt"
)

// ErrClosed is what methods of a closed Library, Session or Binding return.
var ErrClosed = errors.New("closed")

// UnavailableError says why the library at Path cannot be used, or, with an
// empty Path, that none was found. Hint is what the operator can do.
type UnavailableError struct {
	Path string
	Err  error
	Hint string
}

func (e *UnavailableError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("find onnx runtime: %v", e.Err)
	}
	return fmt.Sprintf("open onnx runtime %s: %v", e.Path, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Try is what the operator can do.
func (e *UnavailableError) Try() string { return e.Hint }

// Code is an OrtErrorCode.
type Code int32

// The codes that callers tell apart, as onnxruntime_c_api.h numbers them.
const (
	CodeFail            Code = 1
	CodeInvalidArgument Code = 2
	CodeNoSuchFile      Code = 3
	CodeNoModel         Code = 4
	CodeEngineError     Code = 5
	CodeRuntime         Code = 6
	CodeInvalidProtobuf Code = 7
	CodeModelLoaded     Code = 8
	CodeNotImplemented  Code = 9
	CodeInvalidGraph    Code = 10
	CodeEPFail          Code = 11
)

// StatusError is an OrtStatus: what the library refused and why.
type StatusError struct {
	Call string // the C function
	Code Code
	Text string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("onnx runtime %s: %s (code %d)", e.Call, e.Text, e.Code)
}
