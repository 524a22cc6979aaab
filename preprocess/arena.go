package preprocess

// arena hands out pieces of a ring in the order in which they come back. Offsets
// are multiples of arenaAlign.
type arena struct {
	size int
	head int // where the next piece begins
	used int // bytes from the oldest piece to head, waste at the end included
}

// arenaAlign is what device memory is aligned to: pieces begin at whole lines.
const arenaAlign = 256

func alignPiece(n int) int { return (n + arenaAlign - 1) &^ (arenaAlign - 1) }

// take gives room for n bytes, and how much must be given back for it: a piece
// that does not fit before the end begins at 0, and the rest is its waste.
func (a *arena) take(n int) (at, cost int, ok bool) {
	n = alignPiece(n)
	if a.used == 0 {
		a.head = 0
	}
	at, cost = a.head, n
	if at+n > a.size {
		at, cost = 0, a.size-a.head+n
	}
	if n > a.size || a.used+cost > a.size {
		return 0, 0, false
	}
	a.head = at + n
	a.used += cost
	return at, cost, true
}

// give takes the oldest pieces back by their cost.
func (a *arena) give(cost int) { a.used -= cost }
