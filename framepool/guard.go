package framepool

import "os"

// Guard puts a page that nobody may touch beside every slot: whoever writes
// beyond a slot faults at once. It is for tests of decoders; a pool without it
// costs nothing for it.
type Guard uint8

// The sides. A slot ends on the multiple of 64 bytes in front of a page above it,
// and starts right behind one below it.
const (
	GuardNone Guard = iota
	GuardAbove
	GuardBelow
)

// bytes is what a slot takes more.
func (g Guard) bytes() int {
	if g == GuardNone {
		return 0
	}
	return alignUp(os.Getpagesize(), slotAlign)
}
