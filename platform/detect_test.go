package platform_test

import (
	"errors"
	"reflect"
	"testing"
	"testing/fstest"

	"edgecam/platform"
)

var (
	errNoLibrary = &platform.UnavailableError{
		Lib: "libcuda.so.1", Hint: "install NVIDIA's driver",
		Err: errors.New("libcuda.so.1: cannot open shared object file: No such file or directory"),
	}
	errNoDevice = &platform.DriverError{
		Call: "cuInit", Code: 100, Name: "CUDA_ERROR_NO_DEVICE", Text: "no CUDA-capable device is detected", Hint: "run nvidia-smi",
	}
	errMismatch = &platform.DriverError{
		Call: "cuInit", Code: 803, Name: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
		Text: "system has unsupported display driver / cuda driver combination",
	}
	errUnknown = &platform.DriverError{Call: "cuInit", Code: 999, Name: "CUDA_ERROR_UNKNOWN", Text: "unknown error", Hint: "look at dmesg"}
)

const (
	uuidA = "GPU-aaaaaaaa-0000-1111-2222-333344445555"
	uuidB = "GPU-aaaabbbb-0000-1111-2222-333344445555"
)

func TestDetect(t *testing.T) {
	orinGPU := integrated("Orin", "8.7", true)
	for _, c := range []struct {
		name, machine string
		driver        *fakeDriver // nil = not asked
		kind          platform.Kind
		why           string
		module, cuda  string
		problems      []platform.Problem
	}{
		{
			name: "orin", machine: "orin",
			driver: &fakeDriver{path: "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1", version: 12060, gpus: []platform.GPU{orinGPU}},
			kind:   platform.KindJetson, why: "the GPU Orin of NVIDIA Jetson AGX Orin Developer Kit shares its DRAM",
			module: "540.4.0", cuda: "12.6",
		},
		{
			name: "xavier", machine: "xavier",
			driver: &fakeDriver{version: 11040, gpus: []platform.GPU{integrated("Xavier", "7.2", true)}},
			kind:   platform.KindJetson, why: "the GPU Xavier of NVIDIA Jetson Xavier NX Developer Kit shares its DRAM",
			cuda: "11.4",
		},
		{
			name: "nano", machine: "nano",
			driver: &fakeDriver{version: 10020, gpus: []platform.GPU{integrated("NVIDIA Tegra X1", "5.3", false)}},
			kind:   platform.KindCPU,
			why:    "NVIDIA Jetson Nano Developer Kit: JetPack 4.6.x is the last for this board: its CUDA 10.2 and glibc 2.27 are too old for the inference libraries",
			cuda:   "10.2",
			problems: []platform.Problem{
				{
					What: "NVIDIA Jetson Nano Developer Kit: JetPack 4.6.x is the last for this board: its CUDA 10.2 and glibc 2.27 are too old for the inference libraries",
					Hint: "inference runs on the CPU here; use an Orin or newer with JetPack 6 or 7 for the GPU",
				},
				{
					What: "NVIDIA Jetson Nano Developer Kit has no I/O coherency: memory pinned for its GPU is uncached for the CPU",
					Hint: "frames stay in ordinary cached memory here; nothing to do",
				},
			},
		},
		{
			name: "thor", machine: "thor",
			driver: &fakeDriver{version: 13000, gpus: []platform.GPU{integrated("NVIDIA Thor", "11.0", true)}},
			kind:   platform.KindJetson, why: "the GPU NVIDIA Thor of NVIDIA Jetson AGX Thor Developer Kit shares its DRAM",
			module: "580.00", cuda: "13.0",
		},
		{
			name: "orin whose user may not reach the GPU", machine: "orin", driver: &fakeDriver{err: errUnknown},
			kind: platform.KindCPU, why: "the NVIDIA driver refuses: unknown error", module: "540.4.0",
			problems: []platform.Problem{{
				What: "call cuInit: CUDA_ERROR_UNKNOWN (999): unknown error",
				Hint: "the user of the service must be in the groups video and render; otherwise look at dmesg for messages of nvgpu or nvidia",
			}},
		},
		{
			name: "orin nano whose service is in no group", machine: "orin-nano", driver: &fakeDriver{err: errUnknown},
			kind: platform.KindCPU, why: "the NVIDIA driver refuses: unknown error", module: "540.4.0",
			problems: []platform.Problem{{
				What: "call cuInit: CUDA_ERROR_UNKNOWN (999): unknown error",
				Hint: "sudo usermod -aG video,render edgecam, then start the program anew",
			}},
		},
		{
			name: "orin with a PC's driver beside its own", machine: "orin-shadow", driver: &fakeDriver{err: errNoDevice},
			kind: platform.KindCPU, why: "the NVIDIA driver refuses: no CUDA-capable device is detected", module: "540.4.0",
			problems: []platform.Problem{{
				What: "call cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected",
				Hint: "sudo apt-get remove 'libnvidia-compute-*' (a driver for PCs, which knows no GPU of a Jetson)",
			}},
		},
		{
			name: "container on an orin without the runtime", machine: "orin-container", driver: &fakeDriver{err: errNoLibrary},
			kind: platform.KindCPU, why: "there is the GPU of NVIDIA Jetson AGX Orin Developer Kit, but libcuda.so.1 cannot be opened",
			problems: []platform.Problem{{
				What: "there is the GPU of NVIDIA Jetson AGX Orin Developer Kit, but libcuda.so.1 cannot be opened: libcuda.so.1: cannot open shared object file: No such file or directory",
				Hint: "start the container with NVIDIA's runtime, which brings the board's devices and driver: docker run --runtime nvidia",
			}},
		},
		{
			name: "xavier on jetpack 4", machine: "xavier-jp4",
			driver: &fakeDriver{version: 10020, gpus: []platform.GPU{integrated("Xavier", "7.2", false)}},
			kind:   platform.KindCPU, cuda: "10.2",
			why: "NVIDIA Jetson Xavier NX Developer Kit: JetPack 4.6.x has CUDA 10.2 and glibc 2.27, which are too old for the inference libraries",
			problems: []platform.Problem{{
				What: "NVIDIA Jetson Xavier NX Developer Kit: JetPack 4.6.x has CUDA 10.2 and glibc 2.27, which are too old for the inference libraries",
				Hint: "inference runs on the CPU here; flash the board with JetPack 5.1 or newer for the GPU",
			}},
		},
		{
			name: "a board of the future", machine: "unknown",
			driver: &fakeDriver{version: 15000, gpus: []platform.GPU{integrated("NVIDIA Next", "12.3", true)}},
			kind:   platform.KindJetson, why: "the GPU NVIDIA Next of NVIDIA Jetson Next Developer Kit shares its DRAM", cuda: "15.0",
		},
		{
			name: "one rtx", machine: "rtx",
			driver: &fakeDriver{version: 12040, gpus: []platform.GPU{discrete(0, uuidA, "NVIDIA GeForce RTX 4070", "8.9", "0000:01:00.0")}},
			kind:   platform.KindDiscrete, why: "NVIDIA GeForce RTX 4070 with memory of its own on PCIe 4 x16",
			module: "550.163.01", cuda: "12.4",
		},
		{
			name: "two gpus, one in a narrow slot", machine: "twogpus",
			driver: &fakeDriver{version: 13000, gpus: []platform.GPU{
				discrete(0, uuidA, "NVIDIA RTX A4000", "8.6", "0000:17:00.0"),
				discrete(1, uuidB, "NVIDIA RTX A2000", "8.6", "0000:b3:00.0"),
			}},
			kind: platform.KindDiscrete, why: "NVIDIA RTX A4000 with memory of its own on PCIe 4 x16, the first of 2 GPUs",
			module: "580.95.05", cuda: "13.0",
			problems: []platform.Problem{{
				What: "GPU 1 (NVIDIA RTX A2000) has 4 of its 16 PCIe lanes",
				Hint: "put the card into a wider slot, or see the mainboard's manual for lanes shared with M.2",
			}},
		},
		{
			name: "h200 in a container", machine: "h200",
			driver: &fakeDriver{version: 13000, gpus: []platform.GPU{discrete(0, uuidA, "NVIDIA H200", "9.0", "0000:19:00.0")}},
			kind:   platform.KindDiscrete, why: "NVIDIA H200 with memory of its own on PCIe 5 x16",
			module: "580.95.05", cuda: "13.0",
		},
		{
			name: "card but nouveau", machine: "nodriver", driver: &fakeDriver{err: errNoLibrary},
			kind: platform.KindCPU, why: "there is an NVIDIA GPU at 0000:01:00.0, but libcuda.so.1 cannot be opened",
			problems: []platform.Problem{{
				What: "there is an NVIDIA GPU at 0000:01:00.0, but libcuda.so.1 cannot be opened: libcuda.so.1: cannot open shared object file: No such file or directory",
				Hint: "the card runs on nouveau: install NVIDIA's driver (Debian: nvidia-driver; Ubuntu: ubuntu-drivers install) and reboot",
			}},
		},
		{
			name: "kernel module but no library", machine: "rtx", driver: &fakeDriver{err: errNoLibrary},
			kind: platform.KindCPU, why: "there is an NVIDIA GPU at 0000:01:00.0, but libcuda.so.1 cannot be opened", module: "550.163.01",
			problems: []platform.Problem{{
				What: "there is an NVIDIA GPU at 0000:01:00.0, but libcuda.so.1 cannot be opened: libcuda.so.1: cannot open shared object file: No such file or directory",
				Hint: "the kernel module is loaded: install its library of the same version (Debian: libcuda1; Ubuntu: libnvidia-compute)",
			}},
		},
		{
			name: "driver and library differ", machine: "mismatch", driver: &fakeDriver{err: errMismatch, path: "/usr/lib/x86_64-linux-gnu/libcuda.so.550.163.01"},
			kind: platform.KindCPU, why: "the NVIDIA kernel module and libcuda are of different versions", module: "550.54.14",
			problems: []platform.Problem{{
				What: "the NVIDIA kernel module and libcuda are of different versions: the loaded kernel module is 550.54.14, libcuda is 550.163.01",
				Hint: "the driver was updated while it was in use: reboot, or stop everything that uses the GPU and run modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia",
			}},
		},
		{
			name: "container without device files, library in the image", machine: "container", driver: &fakeDriver{err: errNoDevice},
			kind: platform.KindCPU, why: "there is an NVIDIA GPU at 0000:19:00.0, but no /dev/nvidia* to reach it", module: "550.54.14",
			problems: []platform.Problem{{
				What: "there is an NVIDIA GPU at 0000:19:00.0, but no /dev/nvidia* to reach it",
				Hint: "start the container with the NVIDIA runtime and the GPU: docker run --gpus all, podman run --device nvidia.com/gpu=all",
			}},
		},
		{
			name: "container without anything of the driver", machine: "container", driver: &fakeDriver{err: errNoLibrary},
			kind: platform.KindCPU, why: "there is an NVIDIA GPU at 0000:19:00.0, but libcuda.so.1 cannot be opened", module: "550.54.14",
			problems: []platform.Problem{{
				What: "there is an NVIDIA GPU at 0000:19:00.0, but libcuda.so.1 cannot be opened: libcuda.so.1: cannot open shared object file: No such file or directory",
				Hint: "start the container with the NVIDIA runtime and the GPU: docker run --gpus all, podman run --device nvidia.com/gpu=all",
			}},
		},
		{
			name: "all GPUs hidden by the environment", machine: "rtx", driver: &fakeDriver{err: errNoDevice},
			kind: platform.KindCPU, why: "the NVIDIA driver refuses: no CUDA-capable device is detected", module: "550.163.01",
			problems: []platform.Problem{{
				What: "call cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected",
				Hint: "is CUDA_VISIBLE_DEVICES set to nothing or to a GPU that is not there? Otherwise run nvidia-smi",
			}},
		},
		{
			name: "a query fails after a good start", machine: "rtx", driver: &fakeDriver{version: 12040, listErr: errUnknown},
			kind: platform.KindCPU, why: "the NVIDIA driver refuses: unknown error", module: "550.163.01", cuda: "12.4",
			problems: []platform.Problem{{What: "call cuInit: CUDA_ERROR_UNKNOWN (999): unknown error", Hint: "look at dmesg"}},
		},
		{
			name: "no gpu, no library: nothing is wrong", machine: "cpu", driver: &fakeDriver{err: errNoLibrary},
			kind: platform.KindCPU, why: "no NVIDIA GPU and no driver for one in this machine",
		},
		{
			name: "no gpu, library in the image: nothing is wrong", machine: "cpu", driver: &fakeDriver{err: errNoDevice},
			kind: platform.KindCPU, why: "libcuda is installed, but there is no NVIDIA GPU in this machine",
		},
		{
			name: "gpu switched off", machine: "rtx",
			kind: platform.KindCPU, why: "the GPU is not used", module: "550.163.01",
		},
		{
			name: "a driver that shows nothing", machine: "rtx", driver: &fakeDriver{version: 12040},
			kind: platform.KindCPU, why: "the driver shows no GPU", module: "550.163.01", cuda: "12.4",
			problems: []platform.Problem{{
				What: "the NVIDIA driver works but shows no GPU",
				Hint: "is CUDA_VISIBLE_DEVICES set to nothing? Otherwise run nvidia-smi",
			}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := platform.Options{Root: machine(t, c.machine)}
			if c.driver != nil {
				o.Driver = c.driver
			}
			p := platform.Detect(o)
			if p.Kind != c.kind || p.Why != c.why {
				t.Errorf("kind %q, why %q\nwant %q, why %q", p.Kind, p.Why, c.kind, c.why)
			}
			if p.Driver != c.module || p.CUDA != c.cuda {
				t.Errorf("driver %q, cuda %q; want %q, %q", p.Driver, p.CUDA, c.module, c.cuda)
			}
			if len(p.Problems)+len(c.problems) > 0 && !reflect.DeepEqual(p.Problems, c.problems) {
				t.Errorf("problems:\n%q\nwant:\n%q", p.Problems, c.problems)
			}
			for _, problem := range p.Problems {
				if problem.Hint == "" {
					t.Errorf("problem without a hint: %q", problem.What)
				}
			}
		})
	}
}

func TestDetectPlacesGPUs(t *testing.T) {
	h := platform.Detect(platform.Options{Root: machine(t, "h200"), Driver: &fakeDriver{gpus: []platform.GPU{discrete(0, uuidA, "H200", "9.0", "0000:19:00.0")}}})
	if g := h.GPUs[0]; g.BAR1Bytes != 256<<30 || g.PCIe.Gen != 5 || !h.Container {
		t.Errorf("h200: BAR1 %d, %+v, container %v", g.BAR1Bytes, g.PCIe, h.Container)
	}
	p := platform.Detect(platform.Options{Root: machine(t, "twogpus"), Driver: &fakeDriver{gpus: []platform.GPU{
		discrete(0, uuidA, "A", "8.6", "0000:17:00.0"),
		discrete(1, uuidB, "B", "8.6", "0000:b3:00.0"),
	}}})
	if p.Nodes != 2 {
		t.Errorf("%d NUMA nodes, want 2", p.Nodes)
	}
	for i, want := range []platform.GPU{
		{NUMANode: 0, BAR1Bytes: 32 << 30, PCIe: platform.PCIe{Gen: 4, Width: 16, MaxGen: 4, MaxWidth: 16}},
		{NUMANode: 1, BAR1Bytes: 256 << 20, PCIe: platform.PCIe{Gen: 4, Width: 4, MaxGen: 4, MaxWidth: 16}},
	} {
		g := p.GPUs[i]
		if g.NUMANode != want.NUMANode || g.BAR1Bytes != want.BAR1Bytes || g.PCIe != want.PCIe || !g.IOCoherent {
			t.Errorf("gpu %d: node %d, BAR1 %d, %+v, coherent %v", i, g.NUMANode, g.BAR1Bytes, g.PCIe, g.IOCoherent)
		}
	}
}

func TestDetectCoherency(t *testing.T) {
	for _, c := range []struct {
		cc   string
		want bool
	}{{"5.3", false}, {"6.2", false}, {"7.2", true}, {"8.7", true}, {"10.1", true}, {"11.0", true}, {"", false}} {
		p := platform.Detect(platform.Options{Root: machine(t, "cpu"), Driver: &fakeDriver{gpus: []platform.GPU{integrated("x", c.cc, true)}}})
		if p.GPUs[0].IOCoherent != c.want {
			t.Errorf("integrated GPU of compute capability %q: coherent %v, want %v", c.cc, p.GPUs[0].IOCoherent, c.want)
		}
		if p.Kind != platform.KindJetson || p.Why != "the GPU x of the machine shares its DRAM" {
			t.Errorf("integrated GPU without a device tree: %q, %q", p.Kind, p.Why)
		}
	}
}

func TestDetectMemory(t *testing.T) {
	for _, c := range []struct {
		machine string
		want    platform.Memory
		quota   float64
	}{
		{"h200", platform.Memory{
			TotalBytes: 2113388544 << 10, AvailableBytes: 2000000000 << 10, CgroupBytes: 128 << 30, MemlockBytes: -1,
			HugePageBytes: 2 << 20, HugePagesTotal: 512, HugePagesFree: 500, TransparentHuge: "always",
		}, 16},
		{"cpu", platform.Memory{ // a parent's limit is the smaller one
			TotalBytes: 16384000 << 10, AvailableBytes: 12288000 << 10, CgroupBytes: 4 << 30, MemlockBytes: 8 << 20,
			HugePageBytes: 2 << 20, TransparentHuge: "madvise",
		}, 1.5},
		{"rtx", platform.Memory{
			TotalBytes: 16384000 << 10, AvailableBytes: 12288000 << 10, CgroupBytes: -1, MemlockBytes: 8 << 20,
			HugePageBytes: 2 << 20, TransparentHuge: "madvise",
		}, 0},
		{"twogpus", platform.Memory{ // the same limit, but with CAP_IPC_LOCK
			TotalBytes: 16384000 << 10, AvailableBytes: 12288000 << 10, CgroupBytes: -1, MemlockBytes: -1,
			HugePageBytes: 2 << 20, TransparentHuge: "madvise",
		}, 0},
	} {
		t.Run(c.machine, func(t *testing.T) {
			p := platform.Detect(platform.Options{Root: machine(t, c.machine)})
			if p.Memory != c.want {
				t.Errorf("got  %+v\nwant %+v", p.Memory, c.want)
			}
			if p.CPU.Quota != c.quota {
				t.Errorf("quota %v, want %v", p.CPU.Quota, c.quota)
			}
		})
	}
}

// An empty tree, and this machine itself, must give an answer too.
func TestDetectAnywhere(t *testing.T) {
	p := platform.Detect(platform.Options{Root: fstest.MapFS{}, Driver: &fakeDriver{err: errNoLibrary}})
	if p.Kind != platform.KindCPU || p.CPU.Model != "unknown" || p.Nodes != 1 || p.Memory.MemlockBytes != -1 {
		t.Errorf("empty tree: %+v", p)
	}
	here := platform.Detect(platform.Options{})
	if here.CPU.Cores < 1 || here.Memory.TotalBytes <= 0 {
		t.Errorf("this machine: %+v", here)
	}
}

func TestSelect(t *testing.T) {
	p := platform.Platform{GPUs: []platform.GPU{{Index: 0, UUID: uuidA}, {Index: 1, UUID: uuidB}, {Index: 2, UUID: "MIG-1234"}}}
	for _, c := range []struct {
		device string
		want   int
		err    string
	}{
		{"0", 0, ""},
		{" 1 ", 1, ""},
		{uuidB, 1, ""},
		{"gpu-AAAABBBB", 1, ""},
		{"MIG-1234", 2, ""},
		{"3", 0, `select gpu "3": no such device; there are 0 (` + uuidA + `), 1 (` + uuidB + `) and 2 (MIG-1234)`},
		{"-1", 0, `select gpu "-1": no such device; there are 0 (` + uuidA + `), 1 (` + uuidB + `) and 2 (MIG-1234)`},
		{"GPU-", 0, `select gpu "GPU-": no such device; there are 0 (` + uuidA + `), 1 (` + uuidB + `) and 2 (MIG-1234)`},
		{"GPU-aaaa", 0, `select gpu "GPU-aaaa": no such device; there are 0 (` + uuidA + `), 1 (` + uuidB + `) and 2 (MIG-1234)`},
	} {
		g, err := p.Select(c.device)
		if c.err != "" {
			var de *platform.DeviceError
			if !errors.As(err, &de) || err.Error() != c.err {
				t.Errorf("select %q: error %v, want %s", c.device, err, c.err)
			}
		} else if err != nil || g.Index != c.want {
			t.Errorf("select %q: gpu %d, error %v; want %d", c.device, g.Index, err, c.want)
		}
	}
	if _, err := (platform.Platform{}).Select("0"); err == nil || err.Error() != `select gpu "0": no usable GPU in this machine` {
		t.Errorf("select on a machine without: %v", err)
	}
}
