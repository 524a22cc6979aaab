package main

import (
	"encoding/json"
	"strings"
	"testing"

	"edgecam/internal/testkit"
)

func TestDoctorCapacity(t *testing.T) {
	t.Setenv(asProgram, "1") // the simulator is this binary
	t.Setenv("EDGECAM_ONNXRUNTIME", testkit.ONNXRuntime(t))
	code, out, errs := run(t, "doctor", "--capacity", "--json", "--size", "4k", "--detect-fps", "1")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var r capacityReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r.Cameras == 0 || !r.Simulated || r.CamerasMore == nil || r.LimitedBy == "" || r.Kind.Width != 3840 || r.Kind.DetectFPS != 1 ||
		r.Shares.CPU == nil || *r.Shares.CPU <= 0 || r.Shares.Memory == nil || r.Shares.NVDEC != nil {
		t.Errorf("%s\n%s", out, errs)
	}
	var text strings.Builder
	if err := r.write(&text, false); err != nil || !strings.Contains(text.String(), "more cameras fit, of 3840x2160") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestDoctorCapacityUsage(t *testing.T) {
	for _, args := range []string{"--size big", "--fps -1", "--codec vp9"} {
		if code, _, errs := run(t, append([]string{"doctor", "--capacity"}, strings.Fields(args)...)...); code != exitUsage {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}
