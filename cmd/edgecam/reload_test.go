package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A hangup at any moment reads the file again and ends nothing, least of all
// one that comes while the model is still being loaded.
func TestHangup(t *testing.T) {
	config := func(cameras string) string {
		return fmt.Sprintf("version: 1\nserver: {listen: %q}\ncameras: {%s}\n", freePort(t), cameras)
	}
	const a, b = "a: {url: 'rtsp://127.0.0.1:1/a'}", "b: {url: 'rtsp://127.0.0.1:1/b'}"
	file := write(t, "edgecam.yaml", config(a+", "+b))
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startProgram(t, nil, "run", "--config", file)
	hangup := func() {
		t.Helper()
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	p.line(t, "starting") // the model comes after it
	hangup()
	p.line(t, "msg=reloaded")

	for _, broken := range []string{"", "version: 1\ncameras: {a: {url: 'rts", "version: 1\nsever: {}\n"} {
		rewrite(broken)
		hangup()
		p.line(t, "the running configuration stays")
	}
	for range 50 {
		hangup()
	}
	p.line(t, "the running configuration stays")
	rewrite(config(a))
	hangup()
	if l := p.line(t, "msg=reloaded"); !strings.Contains(l, "removed=[b]") {
		t.Errorf("got %s, want camera b removed", l)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

// A file is read when its writer has finished, not between two lines of it.
func TestSettle(t *testing.T) {
	file := write(t, "edgecam.yaml", "version: 1\n")
	touched := func(ago time.Duration) time.Duration {
		t.Helper()
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			at := time.Now().Add(-ago)
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			settle(t.Context(), file, settleTime)
			took = time.Since(start)
		})
		return took
	}
	for _, tt := range []struct{ ago, want time.Duration }{
		{0, settleTime},
		{settleTime / 4, settleTime * 3 / 4},
		{settleTime, 0},
		{-time.Hour, 0}, // the clock was set back
	} {
		if got := touched(tt.ago); got != tt.want {
			t.Errorf("written %v ago: waited %v, want %v", tt.ago, got, tt.want)
		}
	}
	settle(t.Context(), file+".gone", settleTime)
}
