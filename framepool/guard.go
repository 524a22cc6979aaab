package framepool

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

// stride is the distance of slots of size bytes: whole pages, one of them the
// guard's, as the kernel takes the access away by pages alone.
func (g Guard) stride(size, page int) int {
	if g == GuardNone {
		return alignUp(size, slotAlign)
	}
	return alignUp(size, page) + page
}
