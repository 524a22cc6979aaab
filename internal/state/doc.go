// Package state owns the directory that outlives a restart: who may use it, and
// which form of it this program understands.
//
// # Position
//
// cmd opens it before anything else and hands its path to whoever keeps files:
// engines of TensorRT, what was measured, caches of the GPU's driver. All of those
// are made anew where they are missing, so that a program without the directory
// works, only slower.
//
// # Schema
//
// state.json says the form that the directory is in. A program brings an older one
// to its own, step by step, and leaves a newer one alone.
//
// # Concurrency
//
// One process has the directory at a time: it holds a lock, which ends with it.
package state
