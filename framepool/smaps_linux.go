//go:build linux && !race

package framepool

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
)

// transparentHuge is the number of bytes of [base, base+size) that the kernel
// holds in huge pages, from /proc/self/smaps: asking for them is no proof.
func transparentHuge(base uintptr, size int) int {
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0
	}
	inside, sum := false, 0
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		line := sc.Text()
		if from, to, ok := mapRange(line); ok {
			inside = from < base+uintptr(size) && to > base
			continue
		}
		if rest, ok := strings.CutPrefix(line, "AnonHugePages:"); ok && inside {
			kb, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(rest, "kB")))
			sum += kb << 10
		}
	}
	return min(sum, size)
}

// mapRange reads the addresses of a mapping's first line, "from-to perms …".
func mapRange(line string) (from, to uintptr, ok bool) {
	addr, _, _ := strings.Cut(line, " ")
	a, b, ok := strings.Cut(addr, "-")
	if !ok {
		return 0, 0, false
	}
	f, err1 := strconv.ParseUint(a, 16, 64)
	t, err2 := strconv.ParseUint(b, 16, 64)
	return uintptr(f), uintptr(t), err1 == nil && err2 == nil
}
