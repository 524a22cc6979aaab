//go:build linux && !race

package framepool

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fence takes away the access to a page on one side of every slot, and moves the
// slots up to it. The region has room for those pages: see Options.slotStride.
func (r *region) fence(g Guard, size, stride, slots int) error {
	page := os.Getpagesize()
	first, inset := 0, page
	if g == GuardAbove {
		first = stride - page
		inset = (first - size) &^ (strideAlign - 1)
	}
	for i := range slots {
		at := i*stride + first
		if err := unix.Mprotect(r.pixels[at:at+page], unix.PROT_NONE); err != nil {
			return fmt.Errorf("guard slot %d: %w", i, err)
		}
	}
	r.pixels = r.pixels[inset:]
	return nil
}
