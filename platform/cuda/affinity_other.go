//go:build !linux

package cuda

// stayOn does nothing here.
func stayOn([]int) error { return nil }
