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
package infer
