//go:build linux && !race

package framepool

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/mempolicy.h.
const (
	mpolPreferred = 1
	mpolFNode     = 1 << 0
	mpolFAddr     = 1 << 1
)

// bindNode asks for pages of one NUMA node, before they are touched. It
// prefers rather than binds: with the node full, pages from another are slower
// but MPOL_BIND would end in the OOM killer. Kernels without NUMA and
// containers without the right refuse, which only costs speed.
func bindNode(b []byte, o regionOptions) {
	if o.node < 0 || o.node >= 1024 {
		return
	}
	var mask [1024 / 64]uint64
	mask[o.node/64] = 1 << (o.node % 64)
	// maxnode counts one more than the bits (a quirk of the call since ever).
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		mpolPreferred, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*64+1), 0)
	if errno != 0 {
		o.log.Debug("frame pool is not bound to its NUMA node", "pool", o.name, "node", o.node, "err", errno)
	}
}

// nodeOf is the NUMA node of the first page, -1 where the kernel does not say.
func nodeOf(b []byte) int {
	node := int32(-1)
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&node)), 0, 0,
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), mpolFNode|mpolFAddr, 0)
	if errno != 0 {
		return -1
	}
	return int(node)
}
