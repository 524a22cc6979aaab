// Package schedule decides whose frame is inferred when, how often, and where.
// It holds no goroutine, reads no clock and touches no frame: it is told what
// happened and answers, so that every rule can be tested with a time of its own.
//
// # Position
//
// internal/pipeline asks it, and nobody else. Board orders the cameras that wait,
// Flight says when a batch is to be begun, Times is what both know of the engine,
// Pace picks a camera's pictures at a rate, Turn tells which of them the engine missed,
// Governor lowers rates under overload, Choice is which pictures are taken then,
// SkipFor says what need not even be decoded, Place and Balance spread cameras
// over devices.
//
// # Ownership
//
// Nothing here is given back. Values that are handed in are read until the call
// returns.
//
// # Concurrency
//
// Times is safe for concurrent use, as workers share it. Everything else belongs
// to one goroutine or is guarded by its owner's lock.
//
// # Failure
//
// There is none: what is not known yet (the time of a batch size that was never
// run, the rate of a camera that is silent) is left out of account.
package schedule
