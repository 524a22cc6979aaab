// Package cuda opens NVIDIA's driver library, libcuda, at run time and asks it
// about devices.
//
// # Position
//
// Under platform: Driver is the platform.Driver that cmd hands to
// platform.Detect. Nothing is linked: the program builds and starts on machines
// that have never seen an NVIDIA driver.
//
// # Ownership
//
// The library stays open for the life of the process, as the driver cannot be
// closed safely. Nothing that C may keep points into Go memory.
//
// # Concurrency
//
// A Driver is safe for concurrent use. The queries are bound to no thread and
// make no context.
//
// # Failure
//
// A library that is not there, is too old or is damaged is a
// *platform.UnavailableError; a refusal is a *platform.DriverError with the
// driver's name and text for it and a hint. Nothing panics.
//
// # Hardware
//
// linux on amd64 and arm64; elsewhere Init says that there is no driver.
// CUDA_VISIBLE_DEVICES is applied by the driver itself, so Devices lists what it
// leaves visible.
package cuda
