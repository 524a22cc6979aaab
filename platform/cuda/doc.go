// Package cuda opens NVIDIA's driver library, libcuda, at run time, asks it about
// devices and runs work on them.
//
// # Position
//
// Under platform. Driver is the platform.Driver that cmd hands to
// platform.Detect; its NewDevice gives a Device, whose Context preprocess and the
// engines of infer call; Mapper shows the pools of framepool to a Device. Nothing
// is linked: the program builds and starts on machines that have never seen an
// NVIDIA driver.
//
// # Ownership
//
// The library stays open for the life of the process, as the driver cannot be
// closed safely. A Device holds a reference on its GPU's primary context, the one
// that FFmpeg and ONNX Runtime use too; what is made in it belongs to whoever
// made it and is given back by that one before Device.Close. Nothing that C may
// keep points into Go memory; what C reads and writes during a call lies on the
// heap, which does not move.
//
// # Concurrency
//
// A Driver, a Device and a Mapper are safe for concurrent use. A Device is one
// goroutine on a thread of its own, as CUDA keeps the current context per
// thread; Device.Do hands it work, one piece at a time, and a Context is valid in
// there only. Waits for the device sleep in the kernel rather than spin.
//
// # Failure
//
// A library that is not there, is too old or is damaged is a
// *platform.UnavailableError; a refusal is a *platform.DriverError with the
// driver's name and text for it and a hint; Code tells them apart. A call that
// does not return in time, or an error after which the context is dead (Sticky),
// loses the Device: Lost is closed, and every Do answers with a *LostError at
// once. A thread that hangs in the driver is left behind and counted
// (Driver.Stuck); nothing else leaks. Where the context answers after all,
// Device.Salvage lets what is open in it be closed, and a new Device works; where an
// error ended it the process has to be ended. Memory that a device cannot see is a
// *MapError. Nothing panics, but for kernel arguments of the wrong size.
//
// # Hardware
//
// linux on amd64 and arm64; elsewhere Init says that there is no driver. Drivers
// of CUDA 10 and newer. CUDA_VISIBLE_DEVICES is applied by the driver itself, so
// Devices lists what it leaves visible. Memory that exists is registered; devices
// that cannot (Jetsons before Xavier) have their frames copied, as pools in
// memory of HostAlloc are not made yet.
//
// Nothing of this has run on a card yet: the stand-in of the tests (testdata) is
// what it has been proved on. The tests with the tag hw are for the card.
package cuda
