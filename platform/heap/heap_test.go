package heap_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"edgecam/platform/heap"
)

// resident is the memory that the process holds, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestTrim(t *testing.T) {
	const size = 256 << 20
	b := make([]byte, size)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	full := resident(t)
	if b[4096] != 1 {
		t.Fatal()
	}
	b = nil //nolint:ineffassign,wastedassign // the last reference goes
	heap.Trim()
	if left := resident(t); left > full-size/2 {
		t.Errorf("%d MB of %d MB are still held", left>>20, full>>20)
	}
}
