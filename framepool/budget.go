package framepool

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Budget is the sum of bytes that pools have reserved, under a limit. One
// serves the whole process. It is safe for concurrent use.
type Budget struct {
	limit  int64
	warned atomic.Bool // the refusal to lock has been logged

	mu   sync.Mutex
	used int64 // guarded by mu
	high int64 // guarded by mu
}

// NewBudget makes a budget of limit bytes; a limit of 0 or less only counts.
func NewBudget(limit int64) *Budget { return &Budget{limit: max(limit, 0)} }

// BudgetError is a reservation that would pass the limit.
type BudgetError struct {
	Want, Used, Limit int64 // bytes
}

// Error gives the sums and what to do.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("reserve %s: %s of %s are in use: give frames more memory or run fewer or smaller cameras",
		FormatBytes(e.Want), FormatBytes(e.Used), FormatBytes(e.Limit))
}

// Reserve takes n bytes or gives a *BudgetError and takes nothing.
func (b *Budget) Reserve(n int64) error {
	if n < 0 {
		panic(fmt.Sprintf("framepool: reserve %d bytes", n))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && n > b.limit-b.used {
		return &BudgetError{Want: n, Used: b.used, Limit: b.limit}
	}
	b.used += n
	b.high = max(b.high, b.used)
	return nil
}

// Release gives n reserved bytes back. More than is reserved panics.
func (b *Budget) Release(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n < 0 || n > b.used {
		panic(fmt.Sprintf("framepool: release %d bytes of a budget that has %d in use", n, b.used))
	}
	b.used -= n
}

// Used is the number of bytes reserved now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// HighWater is the largest number of bytes that was ever reserved at once.
func (b *Budget) HighWater() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.high
}

// Limit is the limit in bytes, 0 for none.
func (b *Budget) Limit() int64 { return b.limit }

// firstWarning is true once: pools of one budget warn of refused locking
// together, not each.
func (b *Budget) firstWarning() bool { return b == nil || !b.warned.Swap(true) }

// FormatBytes writes a number of bytes for people: 512 B, 4.0 KiB, 1.5 GiB.
func FormatBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, units := float64(n)/1024, "KMGTPE"
	i := 0
	for f >= 1023.95 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}
