package testkit

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// RequireProgram gives the path of a program, or fails the test and says how to
// install it: a skipped test proves nothing.
func RequireProgram(t testing.TB, name, packages string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test needs %s: apt install %s", name, packages)
	}
	return path
}

// RequireGStreamer fails the test where GStreamer's RTSP server cannot be run
// from Python. It gives Python's path.
func RequireGStreamer(t testing.TB) string {
	t.Helper()
	const packages = "python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-rtsp gstreamer1.0-plugins-good gstreamer1.0-plugins-bad"
	// Debian's modules belong to Debian's Python, and another may come first.
	python := RequireProgram(t, "/usr/bin/python3", packages)
	check := exec.CommandContext(t.Context(), python, "-c",
		"import gi; gi.require_version('Gst','1.0'); gi.require_version('GstRtspServer','1.0'); from gi.repository import Gst, GstRtspServer; Gst.init(None); "+
			"import sys; sys.exit(0 if all(Gst.ElementFactory.find(e) for e in ('qtdemux','h264parse','rtph264pay')) else 1)")
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("this test needs GStreamer's RTSP server: apt install %s\n%v\n%s", packages, err, out)
	}
	return python
}

// startPeer starts a program that is killed, with its children, when the test ends.
// What it says on its error output is shown if the test fails.
func startPeer(t testing.TB, cmd *exec.Cmd, said *Journal) {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended by itself
		_ = cmd.Wait()                                      // killed: an error is what we expect
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), said)
		}
	})
}

// asNobody makes a program run without privileges where the test has them:
// VLC refuses to run as root. home becomes its home.
func asNobody(t testing.TB, cmd *exec.Cmd, home string) {
	t.Helper()
	cmd.Env = append(cmd.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+home)
	if os.Geteuid() != 0 {
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatalf("run %s without privileges: %v", cmd.Path, err)
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
