//go:build linux && !race

package framepool

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allocate maps, binds, populates and locks the memory of a plan. Only a
// kernel that gives no memory at all is an error.
func (p regionPlan) allocate(o regionOptions) (*region, error) {
	if p.huge {
		if r, err := p.allocateHugeTLB(o); err == nil {
			return r, nil
		}
		// No reserved huge pages: the usual case. Transparent ones below.
	}
	mem, err := mapAligned(p.total())
	if err != nil {
		return nil, fmt.Errorf("map %s of memory: %w", FormatBytes(int64(p.total())), err)
	}
	words := p.pixels + p.guard
	r := &region{pixels: mem[:p.pixels:p.pixels], words: mem[words:], size: p.total(), node: -1, free: func() error { return unmap(mem) }}
	if err := p.prepare(r, mem, o); err != nil {
		return nil, errors.Join(fmt.Errorf("populate %s of memory: %w", FormatBytes(int64(p.total())), err), unmap(mem))
	}
	return r, nil
}

func (p regionPlan) prepare(r *region, mem []byte, o regionOptions) error {
	// A decoder that runs over the last slot faults here instead of writing
	// over the words. A kernel that refuses leaves plain memory.
	_ = unix.Mprotect(mem[p.pixels:p.pixels+p.guard], unix.PROT_NONE)
	if p.huge {
		_ = unix.Madvise(r.pixels, unix.MADV_HUGEPAGE)
	}
	bindNode(r.pixels, o)
	if err := populate(r.pixels); err != nil {
		return err
	}
	if err := populate(r.words); err != nil {
		return err
	}
	r.finish(o, r.pixels, r.words)
	return nil
}

// allocateHugeTLB takes the memory from the reserved huge pages. The guard
// would cost one of them, so there is none.
func (p regionPlan) allocateHugeTLB(o regionOptions) (*region, error) {
	size := alignUp(p.total(), hugePage)
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB | unix.MAP_HUGE_2MB
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	mem := unsafe.Slice((*byte)(at), size)
	bindNode(mem, o)
	// Reserved pages can still be missing where a cpuset or the hugetlb cgroup
	// has its say, and the first touch would then be a SIGBUS. The call reports
	// it instead; kernels before 5.14 lack it and get transparent pages.
	if err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE); err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	words := p.pixels + p.guard
	r := &region{pixels: mem[:p.pixels:p.pixels], words: mem[words : words+p.words], size: size, hugeBytes: size, node: -1, free: func() error { return unmap(mem) }}
	r.finish(o, mem)
	return r, nil
}

// finish applies to the mapped parts what may fail without harm once the pages
// are there.
func (r *region) finish(o regionOptions, parts ...[]byte) {
	for _, b := range parts {
		// A forked child must not make the pages copy-on-write under a device
		// that reads them, and a core dump must not hold pictures.
		_ = unix.Madvise(b, unix.MADV_DONTFORK)
		_ = unix.Madvise(b, unix.MADV_DONTDUMP)
	}
	if r.hugeBytes == 0 {
		r.hugeBytes = transparentHuge(r.base(), len(r.pixels))
	}
	r.node = nodeOf(r.pixels)
	if !o.lock {
		return
	}
	err := unix.Mlock(r.pixels)
	if err == nil {
		r.locked = true
		return
	}
	if o.firstWarning() {
		o.log.Warn("frame pools stay unlocked: the kernel refuses to keep them in memory; set LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited in a shell",
			"pool", o.name, "bytes", len(r.pixels), "limit", lockText(), "err", err)
	}
}

// mapAligned maps size bytes on a 2 MiB boundary: one huge page too much, cut
// off at both ends.
func mapAligned(size int) ([]byte, error) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(size+hugePage), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	skip := int(-uintptr(at) & (hugePage - 1))
	if skip > 0 {
		if err := unix.MunmapPtr(at, uintptr(skip)); err != nil {
			return nil, err
		}
	}
	mem := unsafe.Add(at, skip)
	if rest := hugePage - skip; rest > 0 {
		if err := unix.MunmapPtr(unsafe.Add(mem, size), uintptr(rest)); err != nil {
			return nil, err
		}
	}
	return unsafe.Slice((*byte)(mem), size), nil
}

func unmap(mem []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)))
}

// populate makes the pages resident. Kernels before 5.14 lack the call; a
// write to each page does the same for ordinary memory.
func populate(b []byte) error {
	err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	for i := 0; i < len(b); i += slotAlign {
		b[i] = 0
	}
	return nil
}
