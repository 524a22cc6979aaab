// Package onnxruntime binds the part of ONNX Runtime's C API that edgecam
// needs, without cgo: the library is opened at run time, so the binary builds
// and starts where it is missing.
//
// # Position
//
// infer/ort builds its engine from it. It knows tensors and sessions, nothing
// of models, frames or detections.
//
// # Ownership
//
// A Library owns the process-wide environment, a Session a loaded model, a
// Tensor its memory, a Binding the connection of tensors to a session's inputs
// and outputs. Tensors lie outside the Go heap (ONNX Runtime allocates them),
// so the garbage collector neither moves nor scans them: a slice from
// Tensor.Data must not be used after Tensor.Close. Close in the order Binding,
// Tensor, Session, Library; every Close may be called twice.
//
// # Concurrency
//
// Sessions are safe for concurrent use: many bindings of one session may Run at
// once. A binding and its tensors belong to one goroutine at a time. Run blocks
// its thread for the time of the inference.
//
// # Failure
//
// What keeps a library from being used is an *UnavailableError with the path,
// the cause and what to do about it; a file is examined before the dynamic
// linker may see it, because the linker maps a truncated file and dies of it
// later. What the library itself refuses is a *StatusError with its code.
//
// # Hardware
//
// The CUDA provider is used in both ways that there are: built into the core
// (GPU builds from 1.17 on), and as a provider library that is registered, which
// also serves the CPU build of the core (from 1.22 on). TensorRT is only there
// built in. Inventory lists what the providers need of the system.
//
// Linux on x86-64 and arm64. Version 1.17 or newer of the library: the function
// table only grows, so indices into it hold for every later version.
package onnxruntime
