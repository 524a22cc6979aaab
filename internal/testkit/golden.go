package testkit

import (
	"bytes"
	"os"
	"testing"
)

// Golden compares a text with that of a file, or writes the file anew with update.
func Golden(tb testing.TB, path string, got []byte, update bool) {
	tb.Helper()
	if update {
		if err := os.WriteFile(path, got, 0o644); err != nil { //nolint:gosec // a file of the source tree
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		tb.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}
