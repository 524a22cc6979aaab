package schedule

// Skip says which pictures of a stream need not be decoded.
type Skip int

// The levels, each of which skips more. References are pictures that others are
// made from; key pictures stand for themselves.
const (
	SkipNothing Skip = iota
	SkipNonReference
	SkipNonKey
)

// leastKey is how many key pictures a second there must be for others to be left
// out: whoever begins to watch waits for the next one, and a snapshot too.
const leastKey = 0.5

// enough is the part of the asked rate that is as good as all of it: rates are
// measured from intervals that jitter.
const enough = 0.99

// Rates are the pictures a second of a stream, 0 = not known.
type Rates struct{ All, Reference, Key float64 }

// SkipFor picks the level for a camera of which fps pictures a second are
// analysed (0 = all of them) and nobody else uses any.
func SkipFor(fps float64, r Rates) Skip {
	switch {
	case fps <= 0:
		return SkipNothing
	case r.Key >= enough*max(fps, leastKey):
		return SkipNonKey
	case r.Reference >= enough*fps && r.Reference < r.All:
		return SkipNonReference
	}
	return SkipNothing
}
