package cameras

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Simulator is a process with simulated cameras.
type Simulator struct {
	URLs []string

	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// stopWait is how long the process may take to end by itself.
const stopWait = 5 * time.Second

// StartSimulator runs `edgecam sim` from the binary with so many cameras that
// play the clip ("" = the built-in one), and waits until they are there. Each has an
// address of its own: sessions with one host are opened a few at a time.
func StartSimulator(ctx context.Context, binary string, cameras int, clip string) (*Simulator, error) {
	s := &Simulator{}
	s.cmd = exec.CommandContext(ctx, binary, "sim", "--listen", "127.0.0.1:0", "--apart", "--cameras", strconv.Itoa(cameras), "--clip", clip)
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = stopWait
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start simulated cameras: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start simulated cameras: %w", err)
	}
	lines := bufio.NewScanner(out)
	for len(s.URLs) < cameras && lines.Scan() {
		s.URLs = append(s.URLs, strings.TrimSpace(lines.Text()))
	}
	if len(s.URLs) < cameras {
		s.Stop()
		return nil, fmt.Errorf("start simulated cameras: %w", errors.New(strings.TrimSpace(s.stderr.String())))
	}
	return s, nil
}

// Stop ends the process.
func (s *Simulator) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = s.cmd.Wait()                          // its end by a signal is no news
}

// CPU is the processor time that the process has taken.
func (s *Simulator) CPU() time.Duration { return processCPU(strconv.Itoa(s.cmd.Process.Pid)) }

// hertz is the unit of processor times in /proc, the same on every Linux.
const hertz = 100

// processCPU is the processor time of a process by its number or "self"; 0 where
// /proc does not tell.
func processCPU(pid string) time.Duration {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, after, ok := strings.Cut(string(data), ") ") // the name before may hold anything
	fields := strings.Fields(after)
	if !ok || len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+system) * (time.Second / hertz)
}

// statusOf gives the memory and the threads of a process; 0 where /proc
// does not tell.
func statusOf(pid string) (residentBytes int64, threads int) {
	data, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil:
		case key == "VmRSS":
			residentBytes = n << 10
		case key == "Threads":
			threads = int(n)
		}
	}
	return residentBytes, threads
}
