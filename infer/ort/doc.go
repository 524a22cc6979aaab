// Package ort is the inference engine on ONNX Runtime.
//
// # Position
//
// Engine fulfils infer.Engine on the CPU. DeviceEngine serves a GPU: whoever
// owns the device writes its input tensor, queues Run and reads its outputs, all
// in device memory. Both use platform/onnxruntime; infer/model says what a file is,
// infer decodes what comes out, infer/builtin gives the model that needs no file.
//
// A slot takes pictures as planes of float32 whatever the model wants: they are
// brought into float16, uint8 or [height,width,channels] before a run. A model with
// a fixed batch runs all of it for fewer pictures. Outputs whose size only a run
// tells are the library's, all others lie in tensors of the slot.
//
// # Ownership
//
// An Engine owns the library, one session and a fixed number of slots with
// their tensors, all made in New. Whoever acquires a slot owns it until
// Release; Close waits for that. A DeviceEngine owns its session and the memory
// of its tensors, which stay where they are until Close, also when TensorRT
// takes over from CUDA. The stream and the device are the caller's. Runs that are
// not waited for leave host memory taken, which every 256th run of a session gives
// back, and one more before it is released (settle.go).
//
// # Concurrency
//
// All slots of an Engine share the one session, whose Run is safe for concurrent
// use and uses the calling thread alone: several cameras fill the cores better
// than one run spread over them, and no idle thread spins on a core that
// decoding needs. Nothing runs in the background. A DeviceEngine's Run, Input
// and Outputs belong to the device's goroutine (inside cuda.Device.Do). One
// goroutine of its own prepares TensorRT and uses the device between batches;
// Close ends it, but for a build that is under way, which nothing can stop.
//
// # Failure
//
// A library that cannot be used is an *onnxruntime.UnavailableError, a model
// that cannot an *infer.ModelError. New ends with a run of a test picture, so a
// model that loads but cannot run is found there. Impossible results at run
// time are an *infer.UnhealthyError and counted in Stats. What a card cannot serve
// (pictures in other forms than planes of floats, outputs of no known size) is a
// *ProviderError that says so: the CPU takes such models. NewDevice believes no
// provider: a profile must name it for the nodes that ran, and every batch size
// must give the CPU's answer to the test picture, or the error is a
// *ProviderError. TensorRT that fails leaves CUDA serving, with the reason in
// Info's notes.
//
// # Hardware
//
// On the CPU "auto" precision takes the int8 model only where the CPU
// multiplies int8 in one instruction and a measurement finds it faster: without
// those instructions x86 adds pairs of products with saturation, which costs
// accuracy. On a GPU "auto" takes the float16 network where it is measured to be
// faster. A TensorRT engine is kept as a context model, which opens without the
// builder, in a file that is used only for the very model, GPU, driver and
// versions that it was built with.
package ort
