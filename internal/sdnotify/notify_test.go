package sdnotify

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// systemd listens on a socket of its own as the service manager does, and
// sets the environment that it would give to a service.
func systemd(t *testing.T, watchdog time.Duration) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_PID", "")
	t.Setenv("WATCHDOG_USEC", "")
	if watchdog > 0 {
		t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	}
	return c
}

func receive(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, err := c.Read(b)
	if err != nil {
		t.Fatalf("read from the notify socket: %v", err)
	}
	return string(b[:n])
}

// drain reads up to the last message of a Run.
func drain(t *testing.T, c *net.UnixConn) []string {
	t.Helper()
	var got []string
	for len(got) == 0 || got[len(got)-1] != "STOPPING=1" {
		got = append(got, receive(t, c))
	}
	return got
}

// started is a Run whose ticks the test gives by hand. A second tick is taken
// only when the first has been dealt with.
type started struct {
	tick   chan time.Time
	period time.Duration
	cancel context.CancelFunc
	done   chan error
	log    *bytes.Buffer // to be read after stop
}

func start(o Options) *started {
	s := &started{tick: make(chan time.Time), done: make(chan error, 1), log: &bytes.Buffer{}}
	o.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	o.ticks = func(d time.Duration) (<-chan time.Time, func()) {
		s.period = d
		return s.tick, func() {}
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	go func() { s.done <- Run(ctx, o) }()
	return s
}

func (s *started) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	if err := <-s.done; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestRunTellsReadyBeatAndStop(t *testing.T) {
	c := systemd(t, 30*time.Second)
	lines := make(chan string) // one for each time that the status is asked for
	s := start(Options{Alive: func() bool { return true }, Status: func() string { return <-lines }})
	lines <- "2 cameras\nlive"
	for _, line := range []string{"2 cameras live", "1 camera live"} { // the first is no news
		s.tick <- time.Time{}
		lines <- line
	}
	s.stop(t)
	got := drain(t, c)
	want := []string{"STATUS=2 cameras live", "READY=1", "WATCHDOG=1", "WATCHDOG=1", "STATUS=1 camera live", "STOPPING=1"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if s.period != 10*time.Second {
		t.Errorf("beats every %v, want a third of 30 s", s.period)
	}
}

func TestRunWithholdsBeatWhenWorkStands(t *testing.T) {
	c := systemd(t, 3*time.Second)
	var alive atomic.Bool
	lines := make(chan string)
	s := start(Options{Alive: alive.Load, Status: func() string { return <-lines }})
	lines <- "2 cameras"
	for _, a := range []bool{true, false, false, true} {
		alive.Store(a)
		s.tick <- time.Time{}
		lines <- "2 cameras" // taken after the beat of this tick
	}
	s.stop(t)
	got := drain(t, c)
	want := []string{
		"STATUS=2 cameras", "READY=1",
		"WATCHDOG=1",
		"STATUS=stands still; 2 cameras",
		"WATCHDOG=1", "STATUS=2 cameras",
		"STOPPING=1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	log := s.log.String()
	if strings.Count(log, "work stands still") != 1 || strings.Count(log, "work goes on again") != 1 {
		t.Errorf("log does not tell each change once:\n%s", log)
	}
}

func TestRunWithoutWatchdog(t *testing.T) {
	c := systemd(t, 0)
	s := start(Options{Alive: func() bool { return true }})
	s.tick <- time.Time{}
	s.tick <- time.Time{}
	s.stop(t)
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		if got := receive(t, c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if s.period != statusPeriod {
		t.Errorf("period %v", s.period)
	}
}

func TestRunForAnotherProcess(t *testing.T) {
	c := systemd(t, 3*time.Second)
	t.Setenv("WATCHDOG_PID", "1") // a parent's heartbeat is not ours to give
	s := start(Options{Alive: func() bool { return true }})
	s.tick <- time.Time{}
	s.stop(t)
	if a, b := receive(t, c), receive(t, c); a != "READY=1" || b != "STOPPING=1" {
		t.Errorf("got %q, %q", a, b)
	}
}

func TestRunWithBadWatchdog(t *testing.T) {
	systemd(t, 0)
	t.Setenv("WATCHDOG_USEC", "soon")
	s := start(Options{Alive: func() bool { return true }})
	s.tick <- time.Time{}
	s.stop(t)
	if !strings.Contains(s.log.String(), "systemd's settings cannot be read") {
		t.Errorf("log: %s", s.log)
	}
}

func TestRunWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	s := start(Options{Alive: func() bool { return true }, Status: func() string { return "x" }})
	s.tick <- time.Time{}
	s.stop(t)
	if s.log.Len() != 0 {
		t.Errorf("log: %s", s.log)
	}
}

func TestRunSurvivesDeadSocket(t *testing.T) {
	systemd(t, 0).Close()
	s := start(Options{Alive: func() bool { return true }})
	s.tick <- time.Time{}
	s.stop(t)
	if !strings.Contains(s.log.String(), `msg="notify systemd" state="READY=1"`) {
		t.Errorf("log: %s", s.log)
	}
}

func TestReloading(t *testing.T) {
	c := systemd(t, 0)
	clock := func() int64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return now.Nano() / 1000
	}
	before := clock()
	Reloading(slog.New(slog.DiscardHandler))
	Ready(slog.New(slog.DiscardHandler))
	m := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=(\d+)$`).FindStringSubmatch(receive(t, c))
	if m == nil {
		t.Fatal("no reload message in the form of sd_notify(3)")
	}
	if at, err := strconv.ParseInt(m[1], 10, 64); err != nil || at < before || at > clock() {
		t.Errorf("monotonic time %s is not between %d and now", m[1], before)
	}
	if got := receive(t, c); got != "READY=1" {
		t.Errorf("got %q", got)
	}
}

// The real ticker, for real: two beats come by themselves.
func TestRunBeatsByItself(t *testing.T) {
	c := systemd(t, 15*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Alive: func() bool { return true }, Logger: slog.New(slog.DiscardHandler)})
	}()
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := receive(t, c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
