package ort

import (
	"fmt"
	"regexp"
	"strings"
)

// ProviderError says why a provider cannot serve on this machine.
type ProviderError struct {
	Provider string // CUDA or TensorRT
	Err      error
	Hint     string // what the operator can do; may be empty
}

func (e *ProviderError) Error() string { return e.Provider + ": " + words(e.Err) }
func (e *ProviderError) Unwrap() error { return e.Err }

var (
	missingLibrary = regexp.MustCompile(`Failed to load library (\S+) with error: (\S+): cannot open shared object file`)
	missingBuilder = regexp.MustCompile(`(libnvinfer_builder_resource\S*?\.so[.0-9]*)`)
	sourcePlace    = regexp.MustCompile(`/onnxruntime_src/\S+:\d+ .*?\[ONNXRuntimeError\] : \d+ : \w+ : `)
)

// words puts a refusal of the libraries the way an operator can read it.
func words(err error) string {
	text := err.Error()
	if m := missingBuilder.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("it cannot build for this GPU: %s is missing", strings.TrimRight(m[1], "."))
	}
	if m := missingLibrary.FindStringSubmatch(text); m != nil {
		if m[1] == m[2] {
			return m[2] + " is missing"
		}
		return fmt.Sprintf("%s is missing, which %s needs", m[2], m[1][strings.LastIndexByte(m[1], '/')+1:])
	}
	switch {
	case strings.Contains(text, "is not enabled in this build"):
		return "this build of ONNX Runtime is without it"
	case strings.Contains(text, "driver version is insufficient"):
		return "the NVIDIA driver is too old for this build of ONNX Runtime"
	case strings.Contains(text, "no kernel image is available"):
		return "this build of ONNX Runtime has no kernels for this GPU"
	}
	return strings.TrimPrefix(sourcePlace.ReplaceAllString(text, ""), "load model: ")
}
