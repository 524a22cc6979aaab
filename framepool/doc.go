// Package framepool holds decoded pictures in pinned memory and lends them
// out.
//
// # Position
//
// Decoders write into the slots of a [Pool]; every later stage reads the
// picture where it lies through a [Frame]. The package imports nothing else
// of edgecam.
//
// # Ownership
//
// One rule holds everywhere: an argument is borrowed until the call returns;
// who keeps it Retains it; a channel send or [Mailbox.Put] transfers it; who
// drops it Releases it. A function that takes ownership says "consumes f".
//
// There are two phases and two types. A [Buffer] is exclusive and writable;
// [Buffer.Seal] spends it and returns a [Frame], which is shared and read-only
// for ever. One holder has one handle: [Frame.Retain] returns a new one and
// [Frame.Release] ends only its own. A second Release panics, and so does any
// use after it.
//
// A slot is kept by a count of references. They belong to buffers, to frame
// handles, and to decoders in C, which count in the same words (see
// [Control]). The slot is free again when the count is zero, whoever comes
// last. A picture that a decoder left in GPU memory ([NewDeviceFrame]) is kept
// the same way; its surface goes back with the last handle.
//
// # Concurrency
//
// A Pool, a Budget and a Mailbox may be used by any number of goroutines. A
// Buffer or a Frame handle belongs to one holder; two goroutines that read the
// same picture have a handle each. Nothing here waits: an exhausted pool says
// so at once.
//
// # Failure
//
// A pool over the [Budget] is refused with a *[BudgetError] that holds the
// sums. A kernel that does not lock, bind or enlarge pages is no failure: the
// pool works without and [Stats] says so. Broken ownership (double release,
// use after release, a stale generation, planes outside of the slot) panics:
// going on would show one camera's picture as another's.
//
// # Hardware
//
// On Linux a pool is one anonymous mapping, 2 MiB aligned, in huge pages where
// the kernel has them, populated, locked, and bound to a NUMA node if asked. A
// [Mapper] makes it visible to a GPU. Elsewhere, and under the race detector,
// which sees only Go's own memory, it is a plain heap block.
//
// Build with the tag framedebug to have every live handle with its stack in
// the pprof profile edgecam/framepool.Frame, pixels poisoned on the last
// release, and handles that the garbage collector finds unreleased reported.
package framepool
