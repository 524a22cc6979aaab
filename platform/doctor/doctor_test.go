package doctor_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"strings"
	"testing"

	"edgecam/internal/testkit"
	"edgecam/platform"
	"edgecam/platform/doctor"
	"edgecam/platform/onnxruntime"
)

var update = flag.Bool("update", false, "write the golden files anew")

// server is a machine with a GPU where everything is right.
func server() platform.Platform {
	return platform.Platform{
		Kind: platform.KindDiscrete, Why: "NVIDIA H200 with memory of its own on PCIe 5 x16",
		GPUs: []platform.GPU{{
			UUID: "GPU-aaaaaaaa-0000-1111-2222-333344445555", Name: "NVIDIA H200", ComputeCapability: "9.0", MemoryBytes: 150754820096,
			PCIe: platform.PCIe{Gen: 1, Width: 16, MaxGen: 5, MaxWidth: 16}, NUMANode: 1, BAR1Bytes: 256 << 30,
		}},
		Driver: "580.95.05", CUDA: "13.0", Library: "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05",
		CPU:    platform.CPU{Model: "Intel Xeon", Cores: 128, Quota: 16, ISA: []string{"avx2", "avx512_vnni"}},
		Memory: platform.Memory{TotalBytes: 2 << 40, AvailableBytes: 1900 << 30, CgroupBytes: 128 << 30, MemlockBytes: -1, HugePageBytes: 2 << 20, HugePagesTotal: 512, HugePagesFree: 500, TransparentHuge: "always"},
		Nodes:  2, Problems: []platform.Problem{},
	}
}

// box is a small machine where much is wrong.
func box() platform.Platform {
	return platform.Platform{
		Kind: platform.KindCPU, Why: "there is an NVIDIA GPU at 0000:01:00.0, but libcuda.so.1 cannot be opened",
		CPU:    platform.CPU{Model: "Celeron", Cores: 2, Quota: 0.5, ISA: []string{"sse4_2"}},
		Memory: platform.Memory{TotalBytes: 4 << 30, AvailableBytes: 3 << 30, CgroupBytes: 512 << 20, MemlockBytes: 8 << 20},
		Nodes:  1,
		Problems: []platform.Problem{{
			What: "there is an NVIDIA GPU at 0000:01:00.0, but libcuda.so.1 cannot be opened: no such file",
			Hint: "install NVIDIA's driver and reboot",
		}},
	}
}

func orin() platform.Platform {
	return platform.Platform{
		Kind: platform.KindJetson, Why: "the GPU Orin of NVIDIA Jetson AGX Orin Developer Kit shares its DRAM",
		GPUs: []platform.GPU{{UUID: "GPU-0c8b7a1e", Name: "Orin", ComputeCapability: "8.7", MemoryBytes: 32 << 30, Integrated: true, NUMANode: -1}},
		CUDA: "12.6", Driver: "540.4.0", Library: "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1",
		Jetson: &platform.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", SoC: "tegra234", Family: "Orin", L4T: "36.4.3", JetPack: "6.2", PowerMode: "MAXN", IOCoherent: true, Stack: platform.JetsonStack{
			CUDA: "12.6.68", CuDNN: "9.3.0", TensorRT: "10.3.0", Decoder: "/usr/lib/aarch64-linux-gnu/nvidia/libnvv4l2.so",
		}},
		CPU:    platform.CPU{Model: "Arm Cortex-A78AE", Cores: 12, ISA: []string{"asimd", "asimddp"}},
		Memory: platform.Memory{TotalBytes: 32 << 30, AvailableBytes: 28 << 30, CgroupBytes: -1, MemlockBytes: 512 << 20, TransparentHuge: "madvise"},
		Nodes:  1,
	}
}

// A card in a slot of few lanes works, and the report says what it misses.
func TestNarrowSlot(t *testing.T) {
	p := server()
	p.GPUs[0].PCIe = platform.PCIe{Gen: 4, Width: 4, MaxGen: 4, MaxWidth: 16}
	r := doctor.Examine(p, good())
	for _, c := range r.Checks {
		if c.Name != "gpu 0" {
			continue
		}
		if c.Status != doctor.Warn || !strings.Contains(c.Detail, "PCIe 4 x4; x16 is possible, BAR1 256 GiB") || c.Fix == "" {
			t.Errorf("%+v", c)
		}
		return
	}
	t.Errorf("no line for the card: %+v", r.Checks)
}

func good() doctor.Probes {
	names := []string{"h264", "hevc", "mjpeg"}
	return doctor.Probes{
		Version: "1.0", BudgetBytes: 90 << 30, BudgetWhy: "89.6 GiB, 70 % of 128 GiB (cgroup)",
		FFmpeg:  doctor.FFmpeg{Version: "59.37.100", Asked: names, Decoders: names},
		Runtime: doctor.Runtime{Path: "/usr/local/lib/edgecam/libonnxruntime.so.1", Version: "1.30.0"},
		Model:   doctor.Model{Name: "builtin:nanodet-g", Precision: "int8", Provider: "cpu", Labels: 80, ProbeMS: 17.42},
		Listen:  doctor.Listen{Address: "127.0.0.1:8080"},
	}
}

// onJetson is good with these decoders and the board's GPU at work, which is no
// card that decodes.
func onJetson(decoders ...string) doctor.Probes {
	p := good()
	p.FFmpeg.Decoders = decoders
	p.GPU = doctor.GPU{
		Tried: true, Cards: []doctor.Card{{
			Provider: "cuda", Precision: "fp16", ProbeMS: 9.1, Strategy: "shared", StrategyWhy: "the GPU reads the same DRAM",
			NoDecoder: "libnvcuvid.so.1: no such file",
		}}, Libraries: build("1.31.1"),
	}
	return p
}

// build is a GPU build of ONNX Runtime that lacks nothing.
func build(release string) onnxruntime.Survey {
	return onnxruntime.Survey{Arch: "amd64", Builds: []*onnxruntime.Build{{
		Path: "/opt/ort/libonnxruntime.so", Core: release,
		Components: []onnxruntime.Component{
			{Name: "libonnxruntime.so", Path: "/opt/ort/libonnxruntime.so", ByLoader: true},
			{Name: "libcudnn.so.9", Path: "/usr/lib/libcudnn.so.9", Version: "9.14.0", ByLoader: true},
			{Name: "libonnxruntime_providers_cuda.so", Path: "/opt/ort/libonnxruntime_providers_cuda.so", ByLoader: true},
			{Name: "libonnxruntime_providers_tensorrt.so"},
		},
	}}}
}

func bad() doctor.Probes {
	return doctor.Probes{
		Version: "1.0",
		FFmpeg:  doctor.FFmpeg{Version: "59.37.100", Asked: []string{"h264", "hevc", "mjpeg"}, Decoders: []string{"mjpeg"}},
		Runtime: doctor.Runtime{Err: errors.New("open libonnxruntime.so: no such file")},
		Model:   doctor.Model{Name: "/models/x.onnx", Err: errors.New("read model: unexpected end of file")},
		Listen:  doctor.Listen{Address: "127.0.0.1:8080", Err: errors.New("listen 127.0.0.1:8080: address already in use")},
	}
}

func TestExamine(t *testing.T) {
	for _, c := range []struct {
		name     string
		platform platform.Platform
		probes   doctor.Probes
		status   doctor.Status
		warns    int
		fails    int
	}{
		{"server", server(), good(), doctor.OK, 0, 0},
		{"orin", orin(), onJetson("h264", "h264_v4l2m2m", "h264_nvv4l2dec", "hevc", "hevc_nvv4l2dec", "mjpeg"), doctor.OK, 0, 0},
		{"orin-plain", orin(), onJetson("h264", "h264_cuvid", "hevc", "mjpeg"), doctor.Warn, 1, 0},
		{"box", box(), bad(), doctor.Fail, 5, 3},
		{"bare", box(), doctor.Probes{Version: "1.0"}, doctor.Warn, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := doctor.Examine(c.platform, c.probes)
			if r.Status != c.status || r.Count(doctor.Warn) != c.warns || r.Count(doctor.Fail) != c.fails {
				t.Errorf("status %s with %d warnings and %d failures; want %s, %d, %d", r.Status, r.Count(doctor.Warn), r.Count(doctor.Fail), c.status, c.warns, c.fails)
			}
			for _, check := range r.Checks {
				if (check.Status == doctor.OK) != (check.Fix == "") {
					t.Errorf("check %s is %s with the fix %q: whatever is not ok needs one, and only that", check.Name, check.Status, check.Fix)
				}
			}
			var text, js bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			testkit.Golden(t, "testdata/"+c.name+".golden.txt", text.Bytes(), *update)
			if err := r.WriteJSON(&js); err != nil {
				t.Fatal(err)
			}
			var back doctor.Report
			if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Status != r.Status || len(back.Checks) != len(r.Checks) {
				t.Errorf("JSON does not read back: %v\n%s", err, js.String())
			}
		})
	}
}

func TestExamineBudget(t *testing.T) {
	for bytes, want := range map[int64]doctor.Status{64 << 20: doctor.OK, 64<<20 - 1: doctor.Warn} {
		r := doctor.Examine(server(), doctor.Probes{BudgetBytes: bytes, BudgetWhy: "as configured"})
		if r.Status != want {
			t.Errorf("%d bytes: %s, want %s", bytes, r.Status, want)
		}
	}
}

func TestExamineVerdicts(t *testing.T) {
	ok := server()
	for _, c := range []struct {
		name   string
		change func(*platform.Platform)
		check  string
		want   doctor.Status
	}{
		{"two GPUs' node unknown", func(p *platform.Platform) { p.GPUs[0].NUMANode = -1 }, "numa", doctor.Warn},
		{"nodes but no GPU", func(p *platform.Platform) { p.GPUs = nil }, "numa", doctor.OK},
		{"x86 without AVX2", func(p *platform.Platform) { p.CPU.ISA = []string{"sse4_2", "avx"} }, "cpu", doctor.Warn},
		{"arm without dot products", func(p *platform.Platform) { p.CPU.ISA = []string{"asimd"} }, "cpu", doctor.OK},
		{"little memory", func(p *platform.Platform) { p.Memory.TotalBytes = 900 << 20; p.Memory.CgroupBytes = -1 }, "memory", doctor.Warn},
		{"just enough lock", func(p *platform.Platform) { p.Memory.MemlockBytes = 256 << 20 }, "memory lock", doctor.OK},
		{"too little lock", func(p *platform.Platform) { p.Memory.MemlockBytes = 64 << 10 }, "memory lock", doctor.Warn},
		{"no huge pages", func(p *platform.Platform) { p.Memory.HugePagesTotal = 0; p.Memory.TransparentHuge = "" }, "huge pages", doctor.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ok
			p.GPUs = append([]platform.GPU(nil), ok.GPUs...)
			c.change(&p)
			for _, check := range doctor.Examine(p, doctor.Probes{}).Checks {
				if check.Name == c.check {
					if check.Status != c.want {
						t.Errorf("%s: %s, want %s (%s)", c.check, check.Status, c.want, check.Detail)
					}
					return
				}
			}
			t.Errorf("no check named %s", c.check)
		})
	}
}
