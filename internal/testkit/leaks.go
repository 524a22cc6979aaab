package testkit

import (
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"testing"

	"go.uber.org/goleak"

	"edgecam/framepool"
)

// CheckFrames runs a package's tests and fails them where they leave a
// goroutine running or a frame handle unreleased. It is the body of TestMain:
//
//	func TestMain(m *testing.M) { testkit.CheckFrames(m) }
//
// It exits the process. Options are goleak's, for goroutines of libraries that
// have no end.
func CheckFrames(m *testing.M, options ...goleak.Option) {
	goleak.VerifyTestMain(m, append(options, goleak.Cleanup(func(code int) {
		if !ReportFrames(os.Stderr) && code == 0 {
			code = 1
		}
		os.Exit(code)
	}))...)
}

// ReportFrames says whether all frame handles of the process are released, and
// writes those that are not to w: with stacks in builds with the tag
// framedebug, else their number.
func ReportFrames(w io.Writer) bool {
	n := framepool.Live()
	if n == 0 {
		return true
	}
	fmt.Fprintf(w, "testkit: %d frame handles are not released\n", n)
	p := pprof.Lookup("edgecam/framepool.Frame")
	if p == nil {
		fmt.Fprintln(w, "testkit: run with -tags framedebug to see where they were made")
		return false
	}
	if err := p.WriteTo(w, 1); err != nil {
		fmt.Fprintf(w, "testkit: write profile: %v\n", err)
	}
	return false
}
