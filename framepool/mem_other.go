//go:build !linux || race

package framepool

// allocate takes the memory from Go's heap: other systems lack the calls, and
// the race detector sees races in no other memory.
func (p regionPlan) allocate(o regionOptions) (*region, error) {
	if o.lock && o.firstWarning() {
		o.log.Debug("frame pools lie in unlocked heap memory in this build", "pool", o.name)
	}
	return heapRegion(p), nil
}
