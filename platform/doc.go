// Package platform says what machine this is: Detect looks at the kernel's
// files and asks the NVIDIA driver, and answers with plain values.
//
// # Position
//
// Beneath everything. It knows nothing of frames, models or cameras; the
// directories below it (platform/<lib>) are the only places with import "C" or
// calls into libraries that are opened at run time. cmd and internal/pipeline
// hand what Detect found to those who need it.
//
// # Ownership
//
// A Platform is a value: nothing in it is shared or refers to the driver.
//
// # Concurrency
//
// Detect may be called from any goroutine; it starts none.
//
// # Failure
//
// Detect never fails and never panics: what is missing or wrong is a Problem
// with a hint, and the machine is then KindCPU. A library that cannot be opened
// is an *UnavailableError, a refusal by the driver a *DriverError.
//
// # Hardware
//
// Runs on any Linux machine. Jetsons are told by the device tree or, in a
// container, by the chip's entry in /sys, their libraries by the names of files;
// GPUs by the driver and, where it is silent, by the PCI bus. All that is known of
// Jetsons is known from fixtures: none has run this.
package platform
