package platform_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"edgecam/platform"
	"edgecam/platform/doctor"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ubuntu are the decoders of the distribution's FFmpeg, nvidia those of the one in
// NVIDIA's repository for Jetsons.
var (
	ubuntu = []string{"h264", "h264_v4l2m2m", "hevc", "hevc_v4l2m2m", "mjpeg"}
	nvidia = []string{"h264", "h264_nvv4l2dec", "hevc", "hevc_nvv4l2dec", "mjpeg"}
)

// TestDoctorOnJetsons compares the whole report of each board with what it should
// say: what is missing, and the command that helps.
func TestDoctorOnJetsons(t *testing.T) {
	noRuntime := doctor.GPU{Tried: true, Err: errors.New("no GPU build of ONNX Runtime")}
	found := []doctor.Library{{Name: "libonnxruntime.so.1.23.0", Path: "/opt/edgecam/venv/lib/python3.10/site-packages/onnxruntime/capi/libonnxruntime.so.1.23.0"}}
	serves := func(noDecoder string) doctor.GPU {
		return doctor.GPU{Tried: true, Libraries: found, Cards: []doctor.Card{{
			Provider: "tensorrt", Precision: "fp16", ProbeMS: 2.5, Strategy: "shared", StrategyWhy: "the GPU reads the same DRAM", NoDecoder: noDecoder,
		}}}
	}
	driver := func(version int, name, cc string) *fakeDriver {
		dir := "nvidia"
		if version < 12000 {
			dir = "tegra"
		}
		return &fakeDriver{path: "/usr/lib/aarch64-linux-gnu/" + dir + "/libcuda.so.1.1", version: version, gpus: []platform.GPU{integrated(name, cc, version > 11000)}}
	}
	const without = "libnvcuvid.so.1: cannot open shared object file"
	for _, c := range []struct {
		machine  string
		driver   *fakeDriver
		decoders []string
		gpu      doctor.GPU
		status   doctor.Status
	}{
		{"orin", driver(12060, "Orin", "8.7"), nvidia, serves(without), doctor.OK},
		{"orin-nano", driver(12060, "Orin", "8.7"), ubuntu, noRuntime, doctor.Warn},
		{"orin-nx", driver(12060, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"orin-jp5", driver(11040, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"orin-jp72", driver(13020, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"orin-shadow", driver(12060, "Orin", "8.7"), ubuntu, serves(without), doctor.Warn},
		{"orin-container", &fakeDriver{err: errNoLibrary}, ubuntu, doctor.GPU{}, doctor.Warn},
		{"orin-runtime", driver(12060, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"xavier", driver(11040, "Xavier", "7.2"), nvidia, serves(without), doctor.OK},
		{"xavier-agx", driver(11040, "Xavier", "7.2"), ubuntu, noRuntime, doctor.Warn},
		{"xavier-jp4", driver(10020, "Xavier", "7.2"), nil, doctor.GPU{}, doctor.Warn},
		{"thor", driver(13000, "NVIDIA Thor", "11.0"), ubuntu, noRuntime, doctor.Warn},
		{"thor-jp72", driver(13020, "NVIDIA Thor", "11.0"), ubuntu, serves(""), doctor.OK},
		{"nano", driver(10020, "NVIDIA Tegra X1", "5.3"), nil, doctor.GPU{}, doctor.Warn},
		{"tx1", driver(10020, "NVIDIA Tegra X1", "5.3"), nil, doctor.GPU{}, doctor.Warn},
		{"tx2", driver(10020, "NVIDIA Tegra X2", "6.2"), nil, doctor.GPU{}, doctor.Warn},
		{"unknown", driver(15000, "NVIDIA Next", "12.3"), nvidia, noRuntime, doctor.Warn},
	} {
		t.Run(c.machine, func(t *testing.T) {
			probes := doctor.Probes{Version: "1.0", GPU: c.gpu}
			if c.decoders != nil {
				probes.FFmpeg = doctor.FFmpeg{Version: "58.134.100", Asked: []string{"h264", "hevc", "mjpeg"}, Decoders: c.decoders}
			}
			r := doctor.Examine(platform.Detect(platform.Options{Root: machine(t, c.machine), Driver: c.driver}), probes)
			if r.Status != c.status {
				t.Errorf("status %s, want %s", r.Status, c.status)
			}
			for _, check := range r.Checks {
				if (check.Status == doctor.OK) != (check.Fix == "") {
					t.Errorf("check %s is %s with the fix %q: whatever is not ok needs one, and only that", check.Name, check.Status, check.Fix)
				}
			}
			var text bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("doctor/testdata/jetson", c.machine+".golden.txt"), text.Bytes())
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}
