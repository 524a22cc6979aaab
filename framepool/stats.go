package framepool

// Stats is a snapshot of one pool.
type Stats struct {
	Name      string
	Slots     int
	InUse     int    // slots with a reference, whoever holds it
	HighWater int    // most slots seen in use at once
	Acquired  uint64 // leases since the pool was made, by Go and by decoders
	Exhausted uint64 // TryGet calls that found no free slot
	Bytes     int64  // of the whole mapping, as reserved from the budget
	Pinned    bool   // the pages are locked in RAM
	HugePages bool   // at least one 2 MiB page is in the mapping
	HugeBytes int64  // bytes that lie in 2 MiB pages
	Node      int    // NUMA node of the first page, -1 where not known
	Device    bool   // a GPU sees the region
	Closed    bool   // no more lending; the region goes with the last reference
}

// Stats counts the slots now. Of a pool whose region is given back the sums are
// those of its end.
func (p *Pool) Stats() Stats {
	r := p.region
	s := Stats{
		Name: p.name, Slots: p.slots, Exhausted: p.exhausted.Load(), Bytes: int64(r.bytes()),
		Pinned: r.locked || p.onDevice, HugePages: r.hugeBytes > 0, HugeBytes: int64(r.hugeBytes), Node: r.node,
		Device: p.onDevice, Closed: p.closed.Load(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Acquired = p.acquired
	if !p.gone {
		p.markLocked()
		s.InUse = int(p.inUseLocked())
		s.Acquired = p.acquiredLocked()
	}
	s.HighWater = int(p.highWater.Load())
	return s
}

// acquiredLocked sums the generations: each lease of a slot raises its own.
func (p *Pool) acquiredLocked() (n uint64) {
	for i := range p.slots {
		gen, _ := unpack(p.region.word(i).Load())
		n += uint64(gen)
	}
	return n
}
