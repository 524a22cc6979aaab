package platform_test

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/doctor"
	"edgecam/platform/onnxruntime"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ubuntu are the decoders of boards in the distribution's FFmpeg, nvidia those in the
// one of NVIDIA's repository for Jetsons.
var (
	ubuntu = []string{"h264_v4l2m2m", "hevc_v4l2m2m"}
	nvidia = []string{"h264_nvv4l2dec", "hevc_nvv4l2dec"}
)

// buildFor is a GPU build of ONNX Runtime on a board that lacks nothing for it.
func buildFor(cuda int) onnxruntime.Survey {
	const environment = "/opt/edgecam/venv"
	const capi = environment + "/lib/python3.10/site-packages/onnxruntime/capi/"
	const system = "/usr/lib/aarch64-linux-gnu/"
	version := map[int]string{11: "1.18.1", 12: "1.23.0", 13: "1.27.0"}[cuda]
	cudnn, nvinfer := map[int]string{11: "8", 12: "9", 13: "9"}[cuda], map[int]string{11: "8", 12: "10", 13: "10"}[cuda]
	const provider = "libonnxruntime_providers_cuda.so"
	const engines = "libonnxruntime_providers_tensorrt.so"
	return onnxruntime.Survey{Arch: "arm64", Builds: []*onnxruntime.Build{{
		Path: capi + "libonnxruntime.so." + version, Environment: environment, Core: version, Provider: version, CUDA: cuda,
		Components: []onnxruntime.Component{
			{Name: "libonnxruntime.so." + version, Path: capi + "libonnxruntime.so." + version, Version: version},
			{Name: "libcudnn.so." + cudnn, Path: system + "libcudnn.so." + cudnn, NeededBy: provider, ByLoader: true},
			{Name: provider, Path: capi + provider},
			{Name: "libnvinfer.so." + nvinfer, Path: system + "libnvinfer.so." + nvinfer, NeededBy: engines, ByLoader: true},
			{Name: engines, Path: capi + engines},
		},
	}}}
}

// TestDoctorOnJetsons compares the whole report of each board with what it should
// say: what is missing, and the command that helps.
func TestDoctorOnJetsons(t *testing.T) {
	noRuntime := doctor.GPU{Tried: true, Err: errors.New("no GPU build of ONNX Runtime")}
	serves := func(cuda int, noDecoder string) doctor.GPU {
		return doctor.GPU{Tried: true, Libraries: buildFor(cuda), Cards: []doctor.Card{{
			Provider: "tensorrt", Precision: "fp16", ProbeMS: 2.5, Strategy: "shared", StrategyWhy: "the GPU reads the same DRAM",
			NoDecoder: noDecoder,
		}}}
	}
	const without = "libnvcuvid.so.1: cannot open shared object file"
	driver := func(version int, name, cc string) *fakeDriver {
		dir := "nvidia"
		if version < 12000 {
			dir = "tegra"
		}
		return &fakeDriver{path: "/usr/lib/aarch64-linux-gnu/" + dir + "/libcuda.so.1.1", version: version, gpus: []platform.GPU{integrated(name, cc, version > 11000)}}
	}
	for _, c := range []struct {
		machine  string
		driver   *fakeDriver
		decoders []string
		gpu      doctor.GPU
		status   doctor.Status
	}{
		{"orin", driver(12060, "Orin", "8.7"), nvidia, serves(12, without), doctor.OK},
		{"orin-nano", driver(12060, "Orin", "8.7"), ubuntu, noRuntime, doctor.Warn},
		{"orin-nx", driver(12060, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"orin-jp5", driver(11040, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"orin-jp72", driver(13020, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"orin-shadow", driver(12060, "Orin", "8.7"), ubuntu, serves(12, without), doctor.Warn},
		{"orin-container", &fakeDriver{err: errNoLibrary}, ubuntu, doctor.GPU{}, doctor.Warn},
		{"orin-runtime", driver(12060, "Orin", "8.7"), nvidia, noRuntime, doctor.Warn},
		{"xavier", driver(11040, "Xavier", "7.2"), nvidia, serves(11, without), doctor.OK},
		{"xavier-agx", driver(11040, "Xavier", "7.2"), ubuntu, noRuntime, doctor.Warn},
		{"xavier-jp4", driver(10020, "Xavier", "7.2"), nil, doctor.GPU{}, doctor.Warn},
		{"thor", driver(13000, "NVIDIA Thor", "11.0"), ubuntu, noRuntime, doctor.Warn},
		{"thor-jp72", driver(13020, "NVIDIA Thor", "11.0"), ubuntu, serves(13, ""), doctor.OK},
		{"nano", driver(10020, "NVIDIA Tegra X1", "5.3"), nil, doctor.GPU{}, doctor.Warn},
		{"tx1", driver(10020, "NVIDIA Tegra X1", "5.3"), nil, doctor.GPU{}, doctor.Warn},
		{"tx2", driver(10020, "NVIDIA Tegra X2", "6.2"), nil, doctor.GPU{}, doctor.Warn},
		{"unknown", driver(15000, "NVIDIA Next", "12.3"), nvidia, noRuntime, doctor.Warn},
	} {
		t.Run(c.machine, func(t *testing.T) {
			probes := doctor.Probes{Version: "1.0", GPU: c.gpu}
			if c.decoders != nil {
				own := []string{"h264", "hevc", "mjpeg"}
				probes.FFmpeg = doctor.FFmpeg{Version: "59.37.100", Asked: own, Decoders: own, System: c.decoders, SystemPath: "/usr/lib/aarch64-linux-gnu/libavcodec.so.58"}
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
			testkit.Golden(t, "doctor/testdata/jetson/"+c.machine+".golden.txt", text.Bytes(), *update)
		})
	}
}
