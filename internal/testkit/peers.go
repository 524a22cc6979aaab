package testkit

import (
	"bufio"
	_ "embed" // the script that drives GStreamer
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

//go:embed testdata/gst_rtsp_server.py
var gstScript string

// PublicDir is a directory of the test that other users can read, too.
func PublicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "edgecam-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// FreePort gives a TCP port of loopback that nobody listens on just now.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port
}

// GStreamerCamera has GStreamer's RTSP server play an MP4 file with H.264
// until the test ends; user "" asks for no login, else for a digest one. It
// gives the URL, without the login.
func GStreamerCamera(t testing.TB, clip, user, password string) string {
	t.Helper()
	python := RequireGStreamer(t)
	said := &Journal{}
	cmd := exec.CommandContext(t.Context(), python, "-u", "-c", gstScript, clip, user, password)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	startPeer(t, cmd, said)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("start GStreamer's RTSP server: %v\n%s", err, said)
	}
	return strings.TrimSpace(line)
}

// VLCCamera has VLC play a file over and over as an RTSP server until the test
// ends. It gives the URL. VLC answers 404 until it has opened the file.
func VLCCamera(t testing.TB, clip string) string {
	t.Helper()
	vlc := RequireProgram(t, "cvlc", "vlc-bin vlc-plugin-base")
	url := fmt.Sprintf("rtsp://127.0.0.1:%d/x", FreePort(t))
	cmd := exec.CommandContext(t.Context(), vlc, "-I", "dummy", "--no-audio", "--loop", "--sout-keep",
		"--sout", "#rtp{sdp="+url+"}", clip)
	asNobody(t, cmd, PublicDir(t))
	startPeer(t, cmd, &Journal{})
	return url
}
