package framepool_test

import (
	"math"
	"sync"
	"testing"

	"edgecam/framepool"
)

func TestBudget(t *testing.T) {
	b := framepool.NewBudget(100)
	for _, n := range []int64{60, 0, 40} {
		if err := b.Reserve(n); err != nil {
			t.Fatal(err)
		}
	}
	want := "reserve 8.0 EiB: 100 B of 100 B are in use: give frames more memory or run fewer or smaller cameras"
	if err := b.Reserve(math.MaxInt64); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := b.Reserve(1); err == nil {
		t.Error("over the limit")
	}
	b.Release(70)
	if b.Used() != 30 || b.HighWater() != 100 || b.Limit() != 100 {
		t.Errorf("used %d, high %d, limit %d", b.Used(), b.HighWater(), b.Limit())
	}
	if free := framepool.NewBudget(-1); free.Reserve(1<<60) != nil || free.Limit() != 0 {
		t.Error("a budget without limit refuses")
	}
}

func TestBudgetHoldsUnderContention(t *testing.T) {
	const limit = 1000
	b := framepool.NewBudget(limit)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				n := int64((g*31+i*17)%400 + 1)
				if b.Reserve(n) != nil {
					continue
				}
				if u := b.Used(); u > limit || u < n {
					t.Errorf("%d in use with %d mine", u, n)
				}
				b.Release(n)
			}
		})
	}
	wg.Wait()
	if b.Used() != 0 || b.HighWater() > limit {
		t.Errorf("used %d, high %d", b.Used(), b.HighWater())
	}
}
