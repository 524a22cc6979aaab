package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// libraries are those that were built in this process, by command: compiling
// takes longer than many a test.
var libraries struct { //nolint:gochecknoglobals // it only saves time
	sync.Mutex

	content map[string][]byte
}

// Library builds a shared library at path with a compiler and its arguments. The
// same command is run once in a process; every path gets a copy, since the loader
// gives each file its own state.
func Library(tb testing.TB, path, compiler string, args ...string) {
	tb.Helper()
	command := compiler + " " + strings.Join(args, " ")
	l := &libraries
	l.Lock()
	defer l.Unlock()
	content, ok := l.content[command]
	if !ok {
		out := filepath.Join(tb.TempDir(), "library.so")
		all := append([]string{"-shared", "-fPIC", "-o", out}, args...)
		if text, err := exec.CommandContext(tb.Context(), compiler, all...).CombinedOutput(); err != nil {
			tb.Fatalf("%s %q: %v\n%s", compiler, all, err, text)
		}
		var err error
		if content, err = os.ReadFile(out); err != nil {
			tb.Fatal(err)
		}
		if l.content == nil {
			l.content = map[string][]byte{}
		}
		l.content[command] = content
	}
	if err := os.WriteFile(path, content, 0o700); err != nil { //nolint:gosec // programs are loaded from it
		tb.Fatal(err)
	}
}
