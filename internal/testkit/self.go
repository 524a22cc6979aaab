package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Self is the test's own program with other arguments. Where the tests are for
// another processor than the machine's, EDGECAM_TEST_RUNNER holds the emulator's
// command: the kernel alone would refuse the file.
func Self(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	words := append(strings.Fields(os.Getenv("EDGECAM_TEST_RUNNER")), os.Args[0])
	words = append(words, args...)
	return exec.CommandContext(tb.Context(), words[0], words[1:]...)
}

// Emulated says whether an emulator runs this program: the kernel then names
// another file as the one that the thread executes. (Of the process as a whole
// QEMU fakes the name, of a thread it does not.)
func Emulated() bool {
	real, err := os.Readlink("/proc/thread-self/exe")
	if err != nil {
		return false
	}
	own, err := os.Executable()
	return err == nil && real != own
}
