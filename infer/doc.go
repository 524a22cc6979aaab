// Package infer says what an inference engine is and turns a detector's raw
// numbers into detections: a Layout describes the outputs, a LayoutDecoder reads
// them. Boxes in input pixels with finished scores, as in the built-in models, have
// a Decoder of their own.
//
// # Position
//
// preprocess fulfils an engine's InputSpec and writes into its slots;
// internal/pipeline calls Run and hands the detections to infer/track. Engines
// are sub-packages: infer/ort runs ONNX models, infer/builtin holds the model
// that ships with edgecam.
//
// # Ownership
//
// A Slot and its Input belong to whoever acquired it, until Release.
// Detections are plain values: appended to the caller's slices, kept by nobody
// else.
//
// # Concurrency
//
// Engines are safe for concurrent use, a Slot and the decoders are not.
//
// # Failure
//
// A model that cannot be used is a *ModelError at load, with file and reason.
// A model that gives numbers that cannot be (NaN, infinite, scores beyond
// 0..1, inverted boxes, classes that it does not have) is an *UnhealthyError at
// run: an empty result would read as an empty scene.
//
// # Hardware
//
// What decoding costs is a look at every score: 283,920 of them take 0.05 ms of an
// AMD EPYC of 2023 with AVX2 and 0.20 with the twin in Go, which builds with the tag
// noasm or purego and other processors take. arm64 has the loop in NEON, of which
// only the results were tested, on an emulated processor. NMS is Go: 120 boxes of 20
// objects, with reading them, take 0.02 ms.
package infer
