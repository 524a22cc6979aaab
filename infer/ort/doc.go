// Package ort is the inference engine on ONNX Runtime.
//
// # Position
//
// It fulfils infer.Engine with platform/onnxruntime; infer decodes what comes
// out, infer/builtin gives the model that needs no file.
//
// # Ownership
//
// An Engine owns the library, one session and a fixed number of slots with
// their tensors, all made in New. Whoever acquires a slot owns it until
// Release; Close waits for that.
//
// # Concurrency
//
// All slots share the one session, whose Run is safe for concurrent use and
// uses the calling thread alone: several cameras fill the cores better than one
// run spread over them, and no idle thread spins on a core that decoding needs.
// Nothing runs in the background.
//
// # Failure
//
// A library that cannot be used is an *onnxruntime.UnavailableError, a model
// that cannot an *infer.ModelError. New ends with a run of a test picture, so a
// model that loads but cannot run is found there. Impossible results at run
// time are an *infer.UnhealthyError and counted in Stats.
//
// # Hardware
//
// The CPU provider. "auto" precision takes the int8 model only where the CPU
// multiplies int8 in one instruction and a measurement finds it faster: without
// those instructions x86 adds pairs of products with saturation, which costs
// accuracy.
package ort
