package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"edgecam/internal/pipeline/bench/cameras"
	"edgecam/internal/testkit"
)

// The whole: cameras in another process, and a search that adds and takes them
// out. What a busy machine reaches is not judged.
func TestBenchCameras(t *testing.T) {
	t.Setenv(asProgram, "1") // the simulator is this binary
	code, out, errs := run(t, "bench", "cameras", "--clip", "builtin", "--library", testkit.ONNXRuntime(t),
		"--detect-fps", "2", "--count", "1", "--find-max", "--most", "2", "--duration", "2s", "--p95", "5s", "--json")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var r cameras.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := r.Trials[0]
	if first.Cameras != 1 || first.AnalysedFPS <= 0 || first.DecodedFPS <= first.AnalysedFPS || first.Stages[3].P95 <= 0 ||
		first.SlotsMost == 0 || first.ResidentBytes == 0 || r.Provider != "cpu" {
		t.Errorf("report %s\n%s", out, errs)
	}
	if len(r.Trials) == 2 && r.Trials[1].Cameras != 2 {
		t.Errorf("second trial with %d cameras", r.Trials[1].Cameras)
	}
}

func TestBenchCamerasUsage(t *testing.T) {
	for _, args := range []string{
		"--count 0", "--find-max --count 9 --most 8", "--duration 1ms", "--p95 0s", "--fps 0", "--detect-fps -1",
		"--codec av1", "--size huge", "--bitrate fast", "--bitrate 4Q",
		"--lose 1", "--lose x@5s", "--lose -1@5s", "--lose 1@5s:bang", "--lose 1@50s", "--lose 1@5s:trap --find-max",
	} {
		code, _, errs := run(t, append([]string{"bench", "cameras"}, strings.Fields(args)...)...)
		if code != exitUsage {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}

func TestBenchCamerasOverloadUsage(t *testing.T) {
	for _, args := range []string{
		"--overload 1", "--overload 0.5", "--overload -2", "--overload 8.1", "--overload NaN", "--overload abc", "--overload 2 --lose 1@5s",
		"--overload 2 --url rtsp://127.0.0.1/a,rtsp://127.0.0.1/b --count 2", "--overload 2 --find-max --url rtsp://127.0.0.1/a --count 1",
	} {
		code, _, errs := run(t, append([]string{"bench", "cameras"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(errs, "--overload") {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}

func TestBenchCamerasOverloadNumber(t *testing.T) {
	for _, c := range []struct {
		f    camerasFlags
		want int
	}{
		{camerasFlags{count: 12}, 12},
		{camerasFlags{count: 12, overload: 2}, 24},
		{camerasFlags{count: 10, overload: 1.1}, 11}, // and not 12, of 11.000000000000002
		{camerasFlags{count: 1, overload: 1.5}, 2},
		{camerasFlags{count: 4, most: 20, findMax: true, overload: 2}, 40},
		{camerasFlags{count: 1, overload: 2, urls: make([]string, 3)}, 3},
	} {
		if err := c.f.checkOverload(); err != nil || c.f.number() != c.want {
			t.Errorf("%+v: %d cameras, want %d, %v", c.f, c.f.number(), c.want, err)
		}
	}
}

func TestBenchCamerasLose(t *testing.T) {
	for text, want := range map[string]camerasFlags{
		"":            {},
		"1@5s":        {loseGPU: 1, loseAfter: 5 * time.Second},
		"0@1.5s:trap": {loseAfter: 1500 * time.Millisecond, loseByTrap: true},
	} {
		f := camerasFlags{lose: text, duration: 10 * time.Second}
		if err := f.checkLose(); err != nil || f.loseGPU != want.loseGPU || f.loseAfter != want.loseAfter || f.loseByTrap != want.loseByTrap {
			t.Errorf("%q: GPU %d after %s, trap %v, error %v", text, f.loseGPU, f.loseAfter, f.loseByTrap, err)
		}
	}
}
