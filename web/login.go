package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alexedwards/argon2id"
)

// Auth is the one user of the dashboard and the API.
type Auth struct {
	User string
	Hash string // argon2id in PHC form, as HashPassword makes it; never logged
}

// Limits of what a person or a program may send.
const (
	maxUserBytes     = 256
	maxPasswordBytes = 1024
)

// HashPassword returns the argon2id hash of a password in PHC form, for Auth.
// It takes a fraction of a second and 64 MiB.
func HashPassword(password string) (string, error) {
	if password == "" || len(password) > maxPasswordBytes {
		return "", fmt.Errorf("hash password: it must have 1 to %d bytes", maxPasswordBytes)
	}
	// RFC 9106 section 4, second recommended option, on one core: logins are
	// rare and cameras need the others.
	h, err := argon2id.CreateHash(password, &argon2id.Params{Memory: 64 << 10, Iterations: 3, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	return h, nil
}

// check finds what would make every login fail, or one login cost too much.
// Its errors do not hold the hash.
func (a Auth) check() error {
	switch {
	case a.User == "" || len(a.User) > maxUserBytes:
		return fmt.Errorf("server.auth.user: it must have 1 to %d bytes", maxUserBytes)
	case strings.ContainsFunc(a.User, func(r rune) bool { return r < ' ' || r == 0x7f || r == ':' }):
		return errors.New("server.auth.user: it must hold no colon and no control characters")
	}
	const hint = "make one with `edgecam hash-password`"
	p, _, _, err := argon2id.DecodeHash(a.Hash)
	switch {
	case err != nil:
		return errors.New("server.auth.password_hash: not an argon2id hash: " + hint)
	case p.Memory < 8<<10 || p.Memory > 1<<20 || p.Iterations < 1 || p.Iterations > 64 || p.Parallelism < 1:
		return errors.New("server.auth.password_hash: its cost is outside of 8 MiB to 1 GiB and 1 to 64 passes: " + hint)
	case p.SaltLength < 8 || p.SaltLength > 64 || p.KeyLength < 16 || p.KeyLength > 64:
		return errors.New("server.auth.password_hash: salt or key has an unusual length: " + hint)
	}
	return nil
}

// login checks passwords and keeps sessions. Safe for concurrent use.
type login struct {
	auth     Auth
	sessions *sessions
	tries    *tries

	// busy holds one token a running hash: each takes 64 MiB.
	busy chan struct{}
	// known is a keyed digest of the credentials that passed last as HTTP
	// Basic, so that a scraper costs one hash and not one a scrape. There is
	// one user, so one digest is all there can be.
	known atomic.Pointer[[sha256.Size]byte]
	key   [32]byte
}

func newLogin(a Auth, now func() time.Time) (*login, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	l := &login{auth: a, sessions: newSessions(now), tries: newTries(now), busy: make(chan struct{}, 1)}
	_, _ = rand.Read(l.key[:]) // never fails: it ends the program where there is no randomness
	return l, nil
}

// result of a try to log in.
type result struct {
	ok         bool
	retryAfter time.Duration // above 0: not tried, too many tries failed
}

// verify checks user and password. It counts the try against the address
// before the work, so that tries sent at once are counted, too.
func (l *login) verify(ctx context.Context, from netip.Addr, user, password string) result {
	if wait := l.tries.take(from); wait > 0 {
		return result{retryAfter: wait}
	}
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return result{}
	}
	if len(user) > maxUserBytes || len(password) > maxPasswordBytes {
		return result{}
	}
	// The password is checked for a wrong user as well: the answer takes as
	// long and says the same.
	match, _, err := argon2id.CheckHash(password, l.auth.Hash)
	given, want := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(l.auth.User))
	if subtle.ConstantTimeCompare(given[:], want[:]) != 1 || !match || err != nil {
		return result{}
	}
	l.tries.forgive(from)
	return result{ok: true}
}

// basic checks HTTP Basic credentials, those that passed before without hashing.
func (l *login) basic(ctx context.Context, from netip.Addr, user, password string) result {
	digest := l.digest(user, password)
	if known := l.known.Load(); known != nil && subtle.ConstantTimeCompare(known[:], digest[:]) == 1 {
		return result{ok: true}
	}
	res := l.verify(ctx, from, user, password)
	if res.ok {
		l.known.Store(&digest)
	}
	return res
}

// digest of credentials under a key that lives as long as the process.
func (l *login) digest(user, password string) (out [sha256.Size]byte) {
	m := hmac.New(sha256.New, l.key[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(user)))
	m.Write(n[:])
	m.Write([]byte(user))
	m.Write([]byte(password))
	m.Sum(out[:0])
	return out
}

// clientAddr returns the address that the connection comes from. Forwarded-For
// headers are not believed: anyone can write one.
func clientAddr(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
