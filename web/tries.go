package web

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Logins that may fail: five at once and then one in ten seconds from one
// network, ten at once and then two a second from all together. A network is
// an IPv4 address or an IPv6 /64, which one subscriber has whole.
const (
	triesPerAddress = 5
	tryEvery        = 10 * time.Second
	triesTogether   = 10
	tryTogether     = 500 * time.Millisecond
	maxAddresses    = 1024
)

// tries limits failed logins in bounded memory. Safe for concurrent use.
type tries struct {
	now func() time.Time

	mu     sync.Mutex
	all    *rate.Limiter
	byAddr map[netip.Prefix]*rate.Limiter
}

func newTries(now func() time.Time) *tries {
	return &tries{
		now:    now,
		all:    rate.NewLimiter(rate.Every(tryTogether), triesTogether),
		byAddr: make(map[netip.Prefix]*rate.Limiter),
	}
}

// take counts one try and returns 0, or how long to wait for the next.
func (t *tries) take(from netip.Addr) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, key := t.now(), network(from)
	l := t.byAddr[key]
	if l == nil {
		if len(t.byAddr) >= maxAddresses {
			t.evictLocked(now)
		}
		l = rate.NewLimiter(rate.Every(tryEvery), triesPerAddress)
		t.byAddr[key] = l
	}
	// The address first: one that is out of tries does not use up everybody's.
	if wait := untilToken(l, now); wait > 0 {
		return wait
	}
	if wait := untilToken(t.all, now); wait > 0 {
		return wait
	}
	l.AllowN(now, 1)
	t.all.AllowN(now, 1)
	return 0
}

// forgive gives an address all its tries back: somebody there knows the password.
func (t *tries) forgive(from netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byAddr, network(from))
}

// evictLocked forgets the addresses that have all their tries, and if none
// has, the one that has most: it has been quiet longest.
func (t *tries) evictLocked(now time.Time) {
	var victim netip.Prefix
	most := math.Inf(-1)
	for key, l := range t.byAddr {
		tokens := l.TokensAt(now)
		if tokens >= triesPerAddress {
			delete(t.byAddr, key)
		}
		if tokens > most {
			victim, most = key, tokens
		}
	}
	delete(t.byAddr, victim)
}

// untilToken returns how long until l has a token; 0 if it has one.
func untilToken(l *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - l.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing/float64(l.Limit())*float64(time.Second)), 1)
}

// network returns what tries are counted by.
func network(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: all such share one count
	}
	return p
}
