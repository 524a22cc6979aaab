package web_test

import (
	"testing"

	"github.com/alexedwards/argon2id"

	"edgecam/web"
)

const (
	theUser     = "viewer"
	thePassword = "correct horse"
)

// auth returns the login of the tests, with the cheapest hash that is taken.
func auth(t testing.TB) *web.Auth {
	t.Helper()
	h, err := argon2id.CreateHash(thePassword, &argon2id.Params{Memory: 8 << 10, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	if err != nil {
		t.Fatal(err)
	}
	return &web.Auth{User: theUser, Hash: h}
}
