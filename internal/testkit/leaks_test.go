package testkit_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"edgecam/framepool"
	"edgecam/internal/testkit"
)

// TestMain checks this package with its own means. In the child of
// TestLeaksFailThePackage it has something to find.
func TestMain(m *testing.M) { testkit.CheckFrames(m) }

func frame() *framepool.Frame {
	m := framepool.Meta{Camera: "gate", Seq: 7, Format: framepool.Gray8, Width: 2, Height: 1, Stride: [3]int{2}}
	return framepool.NewHeapFrame(m, [][]byte{{1, 2}})
}

func TestReportFrames(t *testing.T) {
	var b bytes.Buffer
	if !testkit.ReportFrames(&b) || b.Len() != 0 {
		t.Fatalf("nothing is live, report: %s", b.String())
	}
	f := frame()
	if testkit.ReportFrames(&b) {
		t.Error("live frame not reported")
	}
	if want := "testkit: 1 frame handles are not released\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("report %q, want it to start with %q", b.String(), want)
	}
	f.Release()
}

// TestLeave leaves things behind when the parent test asks for it.
func TestLeave(t *testing.T) {
	switch os.Getenv("TESTKIT_LEAVE") {
	case "frame":
		frame()
	case "goroutine":
		go func() { select {} }()
	default:
		t.Skip("only in the child of TestLeaksFailThePackage")
	}
}

func TestLeaksFailThePackage(t *testing.T) {
	for leave, want := range map[string]string{
		"nothing":   "",
		"frame":     "testkit: 1 frame handles are not released",
		"goroutine": "found unexpected goroutines",
	} {
		t.Run(leave, func(t *testing.T) {
			cmd := testkit.Self(t, "-test.run=^TestLeave$")
			cmd.Env = append(os.Environ(), "TESTKIT_LEAVE="+leave)
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != (want != "") || !strings.Contains(string(out), want) {
				t.Errorf("exit %v, want output with %q:\n%s", err, want, out)
			}
		})
	}
}
