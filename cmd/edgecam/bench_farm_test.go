package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"edgecam/internal/pipeline/bench/farm"
	"edgecam/internal/testkit"
)

// Half a minute of the farm with the program itself: what leaks would leak here
// too. Times are not judged, as the machine may be busy with other tests.
func TestBenchFarm(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "bench", "farm", "--duration", "30s", "--warm-up", "10s", "--period", "3s",
		"--flapping", "16", "--healthy", "2", "--seed", "7", "--json", "--library", testkit.ONNXRuntime(t))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run() // fails where a time was not kept
	var r farm.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v, %v\n%s", err, runErr, errs.String())
	}
	if r.Seconds < 29 || r.Flapping != 16 || r.Attempts < 18 || r.Frames == 0 || r.Before.ResidentBytes == 0 {
		t.Errorf("little was measured: %+v", r)
	}
	if r.After.Goroutines > r.Before.Goroutines || r.After.Descriptors > r.Before.Descriptors || r.SlotsLeft != 0 || r.PoolBytesLeft != 0 {
		t.Errorf("left behind: before %+v, after %+v, %d slots, %d bytes", r.Before, r.After, r.SlotsLeft, r.PoolBytesLeft)
	}
	if r.HealthySessions != 2 || r.HealthyFrames < 100 {
		t.Errorf("healthy cameras: %d sessions, %d pictures; problems: %v", r.HealthySessions, r.HealthyFrames, r.Problems)
	}
	if r.Returns > 0 && r.BackMax > 15 {
		t.Errorf("a camera that came back was seen after %v s", r.BackMax)
	}
	if r.StopSeconds > 10 {
		t.Errorf("the end took %v s", r.StopSeconds)
	}
	var table bytes.Buffer
	if err := r.Table(&table); err != nil || !bytes.Contains(table.Bytes(), []byte("resident MiB")) {
		t.Errorf("table: %v\n%s", err, table.String())
	}
}

func TestBenchFarmRefuses(t *testing.T) {
	for _, args := range [][]string{{"--flapping", "0"}, {"--duration", "1s"}, {"--warm-up", "30m"}, {"--period", "1ms"}} {
		if code, _, _ := run(t, append([]string{"bench", "farm"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
