//go:build (amd64 || arm64) && !purego && !noasm

package infer

// scanVector is the loop of scan over the first n numbers: the OR of all with lift
// added, of which only the top bit counts, and of all as they are.
func scanVector(row []float32, lift uint32) (above, any uint32, n int) {
	const step = 8
	n = len(row) &^ (step - 1)
	if n == 0 || !haveVectors() {
		return 0, 0, 0
	}
	above, any = scanRow(&row[0], n, lift)
	return above, any, n
}

// scanRow is for n numbers, a multiple of 8 and not 0.
//
//go:noescape
func scanRow(row *float32, n int, lift uint32) (above, any uint32)
