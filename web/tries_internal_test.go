package web

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

type hand struct{ t time.Time }

func (h *hand) now() time.Time { return h.t }

func TestTriesPerAddress(t *testing.T) {
	h := &hand{time.Unix(1000, 0)}
	tr := newTries(h.now)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i := range triesPerAddress {
		if wait := tr.take(a); wait != 0 {
			t.Fatalf("try %d waits %v", i, wait)
		}
	}
	if wait := tr.take(a); wait != tryEvery {
		t.Errorf("one more waits %v, want %v", wait, tryEvery)
	}
	if wait := tr.take(b); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	h.t = h.t.Add(tryEvery)
	if wait := tr.take(a); wait != 0 {
		t.Errorf("after %v: waits %v", tryEvery, wait)
	}
	if wait := tr.take(a); wait == 0 {
		t.Error("two tries for one")
	}
	tr.forgive(a)
	if wait := tr.take(a); wait != 0 {
		t.Errorf("after a right password: waits %v", wait)
	}
}

// One IPv6 subscriber has 2^64 addresses.
func TestTriesPerNetwork(t *testing.T) {
	cases := []struct {
		a, b string
		same bool
	}{
		{"2001:db8::1", "2001:db8::ffff:2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
	}
	for _, tc := range cases {
		if got := network(netip.MustParseAddr(tc.a)) == network(netip.MustParseAddr(tc.b)); got != tc.same {
			t.Errorf("%s and %s: one network %v, want %v", tc.a, tc.b, got, tc.same)
		}
	}
	if got := network(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("requests without an address are counted by %v, want all by one", got)
	}
}

func TestTriesTogetherInBoundedMemory(t *testing.T) {
	h := &hand{time.Unix(1000, 0)}
	tr := newTries(h.now)
	passed := 0
	for i := range 10 * maxAddresses {
		if tr.take(netip.MustParseAddr(fmt.Sprintf("10.%d.%d.1", i/256, i%256))) == 0 {
			passed++
		}
	}
	if passed != triesTogether {
		t.Errorf("%d tries at once, want %d", passed, triesTogether)
	}
	if len(tr.byAddr) > maxAddresses {
		t.Errorf("%d addresses are kept, want at most %d", len(tr.byAddr), maxAddresses)
	}
	h.t = h.t.Add(tryTogether)
	if wait := tr.take(netip.MustParseAddr("192.0.2.1")); wait != 0 {
		t.Errorf("after %v: waits %v", tryTogether, wait)
	}
}

// An address cannot get its tries back by making others be kept in its place.
func TestTriesKeepTheWorstAddress(t *testing.T) {
	h := &hand{time.Unix(1000, 0)}
	tr := newTries(h.now)
	bad := netip.MustParseAddr("192.0.2.1")
	for range triesPerAddress {
		tr.take(bad)
	}
	for i := range 3 * maxAddresses {
		tr.take(netip.MustParseAddr(fmt.Sprintf("10.%d.%d.1", i/256, i%256)))
	}
	if wait := tr.take(bad); wait < tryTogether+1 {
		t.Errorf("the address that failed waits %v, want its own limit", wait)
	}
}
