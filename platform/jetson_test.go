package platform_test

import (
	"reflect"
	"testing"
	"testing/fstest"

	"edgecam/platform"
)

func TestDetectJetson(t *testing.T) {
	const (
		lib = "/usr/lib/aarch64-linux-gnu/"
		opt = "/opt/nvidia/l4t-gpu-libs/"
	)
	full := platform.JetsonStack{
		CUDA: "12.6.68", CuDNN: "9.3.0", TensorRT: "10.3.0",
		Driver: lib + "nvidia/libcuda.so.1", Decoder: lib + "nvidia/libnvv4l2.so",
	}
	only := func(dir string) platform.JetsonStack { // what comes with Jetson Linux
		return platform.JetsonStack{Driver: lib + dir + "/libcuda.so.1", Decoder: lib + dir + "/libnvv4l2.so"}
	}
	five := only("tegra")
	five.CUDA, five.CuDNN, five.TensorRT = "11.4.298", "8.6.0", "8.5.2"
	noNN := only("nvidia")
	noNN.CUDA = "12.6.68"
	shadow := full
	shadow.Shadow = lib + "libcuda.so.535.309.01"
	next := only("nvidia")
	next.CUDA, next.CuDNN, next.TensorRT = "15.0.12", "11.0.1", "12.0.0"
	const (
		nanoKit = "NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super"
		thorKit = "NVIDIA Jetson AGX Thor Developer Kit"
		last    = "JetPack 4.6.x is the last for this board: its CUDA 10.2 and glibc 2.27 are too old for the inference libraries"
	)
	groups := []string{"video", "render"}
	for _, c := range []struct {
		machine string
		want    platform.Jetson
		modes   int
		fastest string
		isa     string // that decides on int8 on the processor
	}{
		{"orin", platform.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", Module: "p3701-0005", SoC: "tegra234", Family: "Orin", L4T: "36.4.3", JetPack: "6.2", PowerMode: "MAXN", IOCoherent: true, Stack: full}, 4, "MAXN", "asimddp"},
		{"orin-nano", platform.Jetson{Model: nanoKit, Module: "p3767-0005", SoC: "tegra234", Family: "Orin", L4T: "36.4.3", JetPack: "6.2", PowerMode: "25W", IOCoherent: true, Stack: only("nvidia"), MissingGroups: groups}, 4, "MAXN_SUPER", "asimddp"},
		{"orin-nx", platform.Jetson{Model: "Acme EdgeBox NX16 (Jetson Orin)", Module: "p3767-0000", SoC: "tegra234", Family: "Orin", L4T: "36.4.4", JetPack: "6.2.1", PowerMode: "15W", IOCoherent: true, Stack: noNN}, 4, "MAXN", "asimddp"},
		{"orin-jp5", platform.Jetson{Model: "Jetson AGX Orin Developer Kit", Module: "p3701-0000", SoC: "tegra234", Family: "Orin", L4T: "35.4.1", JetPack: "5.1.2", PowerMode: "MODE_30W", IOCoherent: true, Stack: five}, 4, "MAXN", "asimddp"},
		{"orin-jp72", platform.Jetson{
			Model: nanoKit, Module: "p3767-0005", SoC: "tegra234", Family: "Orin", L4T: "39.2.1", JetPack: "7.2.1", PowerMode: "MAXN_SUPER", IOCoherent: true,
			Stack: platform.JetsonStack{CUDA: "13.2.75", CuDNN: "9.20.0", Driver: opt + "nvgpu/libcuda.so.1.1", Decoder: lib + "nvidia/libnvv4l2.so"},
		}, 4, "MAXN_SUPER", "asimddp"},
		{"orin-shadow", platform.Jetson{Model: nanoKit, Module: "p3767-0005", SoC: "tegra234", Family: "Orin", L4T: "36.4.7", JetPack: "6.2.1", PowerMode: "MAXN_SUPER", IOCoherent: true, Stack: shadow}, 4, "MAXN_SUPER", "asimddp"},
		{"orin-container", platform.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", SoC: "tegra234", Family: "Orin", IOCoherent: true, MissingDevices: []string{"/dev/nvmap", "/dev/nvgpu/igpu0/ctrl"}}, 0, "", "asimddp"},
		{"orin-runtime", platform.Jetson{Model: "NVIDIA Jetson AGX Orin Developer Kit", SoC: "tegra234", Family: "Orin", IOCoherent: true, Stack: only("nvidia")}, 0, "", "asimddp"},
		{"xavier", platform.Jetson{Model: "NVIDIA Jetson Xavier NX Developer Kit", Module: "p3668-0000", SoC: "tegra194", Family: "Xavier", L4T: "35.4.1", JetPack: "5.1.2", PowerMode: "MODE_20W_6CORE", IOCoherent: true, Stack: five}, 9, "MODE_20W_6CORE", ""},
		{"xavier-agx", platform.Jetson{Model: "Jetson-AGX", Module: "p2888-0001", SoC: "tegra194", Family: "Xavier", L4T: "35.6.0", JetPack: "5.1.4", PowerMode: "MODE_15W", IOCoherent: true, Stack: only("tegra"), MissingGroups: groups}, 8, "MAXN", ""},
		{"xavier-jp4", platform.Jetson{
			Model: "NVIDIA Jetson Xavier NX Developer Kit", Module: "p3668-0000", SoC: "tegra194", Family: "Xavier", L4T: "32.7.1", JetPack: "4.6.x", PowerMode: "MODE_15W_6CORE", IOCoherent: true, Stack: only("tegra"),
			Unsupported: "JetPack 4.6.x has CUDA 10.2 and glibc 2.27, which are too old for the inference libraries",
		}, 9, "MODE_20W_6CORE", ""},
		{"thor", platform.Jetson{Model: thorKit, Module: "p3834-0008", SoC: "tegra264", Family: "Thor", L4T: "38.2.0", JetPack: "7.0", PowerMode: "120W", IOCoherent: true, Stack: only("nvidia")}, 4, "MAXN", "i8mm"},
		{"thor-jp72", platform.Jetson{
			Model: thorKit, Module: "p3834-0008", SoC: "tegra264", Family: "Thor", L4T: "39.2.1", JetPack: "7.2.1", PowerMode: "MAXN", IOCoherent: true,
			Stack: platform.JetsonStack{CUDA: "13.2.75", CuDNN: "9.20.0", TensorRT: "10.16.2", Driver: opt + "openrm/libcuda.so.1.1", Decoder: lib + "nvidia/libnvv4l2.so"},
		}, 4, "MAXN", "i8mm"},
		{"nano", platform.Jetson{Model: "NVIDIA Jetson Nano Developer Kit", Module: "p3448-0000", SoC: "tegra210", Family: "Nano or TX1", L4T: "32.7.4", JetPack: "4.6.x", PowerMode: "MAXN", Stack: only("tegra"), Unsupported: last}, 2, "MAXN", ""},
		{"tx1", platform.Jetson{Model: "jetson_tx1", SoC: "tegra210", Family: "Nano or TX1", L4T: "32.7.4", JetPack: "4.6.x", Stack: only("tegra"), Unsupported: last}, 0, "", ""},
		{"tx2", platform.Jetson{Model: "quill (Jetson TX2)", Module: "p3310-1000", SoC: "tegra186", Family: "TX2", L4T: "32.7.1", JetPack: "4.6.x", Stack: only("tegra"), Unsupported: last}, 0, "", ""},
		{"unknown", platform.Jetson{Model: "NVIDIA Jetson Next Developer Kit", SoC: "tegra299", L4T: "45.1.0", PowerMode: "120W", IOCoherent: true, Stack: next}, 4, "MAXN", "i8mm"},
	} {
		t.Run(c.machine, func(t *testing.T) {
			p := platform.Detect(platform.Options{Root: machine(t, c.machine)})
			if p.Jetson == nil {
				t.Fatal("not told as a Jetson")
			}
			got := *p.Jetson
			if len(got.PowerModes) != c.modes {
				t.Errorf("power modes %+v, want %d", got.PowerModes, c.modes)
			}
			if best, _ := got.Fastest(); best.Name != c.fastest {
				t.Errorf("fastest power mode %+v, want %q", best, c.fastest)
			}
			got.PowerModes = nil
			if len(c.want.L4T) > 0 { // containers have no users of their hosts
				c.want.User = "edgecam"
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if fast := p.CPU.FastInt8(); fast != (c.isa != "") || fast && !p.CPU.Has(c.isa) {
				t.Errorf("fast int8 %v by %q, want by %q", fast, p.CPU.ISA, c.isa)
			}
		})
	}
}

// Machines that are no Jetsons must not be told as such.
func TestNoJetson(t *testing.T) {
	for _, name := range []string{"h200", "rtx", "cpu", "container", "twogpus"} {
		if p := platform.Detect(platform.Options{Root: machine(t, name)}); p.Jetson != nil {
			t.Errorf("%s: %+v", name, p.Jetson)
		}
	}
	pi := fstest.MapFS{"proc/device-tree/compatible": {Data: []byte("raspberrypi,5-model-b\x00brcm,bcm2712\x00")}, "sys/devices/soc0/family": {Data: []byte("Snapdragon\n")}}
	if p := platform.Detect(platform.Options{Root: pi}); p.Jetson != nil {
		t.Errorf("another ARM board: %+v", p.Jetson)
	}
}

func TestJetPackOfL4T(t *testing.T) {
	for l4t, want := range map[string]string{
		"39.2.1": "7.2.1", "39.2.0": "7.2", "39.2": "7.2", "39.3.0": "7.x", "38.4.0": "7.1", "38.2.2": "7.0",
		"36.5.2": "6.2.3", "36.5.0": "6.2.2", "36.4.7": "6.2.1", "36.4.4": "6.2.1", "36.4.3": "6.2", "36.4.0": "6.1", "36.4.9": "6.x", "36.3.0": "6.0", "36.40.1": "6.x",
		"35.6.0": "5.1.4", "35.6.1": "5.1.5", "35.6.4": "5.1.x", "35.5.0": "5.1.3", "35.2.1": "5.1", "34.1.1": "5.x",
		"32.7.6": "4.6.x", "32.3.1": "4.x", "45.1.0": "",
	} {
		root := fstest.MapFS{"var/lib/dpkg/status": {Data: []byte("Package: nvidia-l4t-core\nStatus: install ok installed\nVersion: " + l4t + "-20260101000000\n")}}
		j := platform.Detect(platform.Options{Root: root}).Jetson
		if j == nil || j.L4T != l4t || j.JetPack != want {
			t.Errorf("L4T %s: %+v, want JetPack %q", l4t, j, want)
		}
	}
	removed := fstest.MapFS{"var/lib/dpkg/status": {Data: []byte("Package: nvidia-l4t-core\nStatus: deinstall ok config-files\nVersion: 36.4.3-20250107174145\n")}}
	if j := platform.Detect(platform.Options{Root: removed}).Jetson; j != nil {
		t.Errorf("a package that was removed: %+v", j)
	}
}

func TestJetsonLibcuda(t *testing.T) {
	for _, c := range []struct {
		machine string
		want    []string
		desktop string
	}{
		{"orin", []string{"/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1"}, ""},
		{"orin-shadow", []string{"/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1"}, "/usr/lib/aarch64-linux-gnu/libcuda.so.535.309.01"},
		{"orin-jp72", []string{"/opt/nvidia/l4t-gpu-libs/nvgpu/libcuda.so.1.1"}, ""},
		{"thor-jp72", []string{"/opt/nvidia/l4t-gpu-libs/openrm/libcuda.so.1.1"}, ""},
		{"xavier", []string{"/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1"}, ""},
		{"orin-container", nil, ""},
		{"rtx", nil, ""},
	} {
		root := machine(t, c.machine)
		if got := platform.JetsonLibcuda(root); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.machine, got, c.want)
		}
		if got := platform.DesktopLibcuda(root); got != c.desktop {
			t.Errorf("%s: desktop's %q, want %q", c.machine, got, c.desktop)
		}
	}
}

// A user is told what is missing for itself, root for the service's user.
func TestJetsonGroups(t *testing.T) {
	base := machine(t, "orin-nano")
	for _, c := range []struct {
		name, status, passwd string
		user                 string
		missing              []string
	}{
		{"root", "Uid:\t0\t0\t0\t0\nGroups:\t0 44 104\n", "", "edgecam", []string{"video", "render"}},
		{"root before the package is there", "Uid:\t0\t0\t0\t0\n", "root:x:0:0::/root:/bin/sh\n", "", nil},
		{"a user in one of them", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t44\n", "", "nvidia", []string{"render"}},
		{"the service, by its unit", "Uid:\t997\t997\t997\t997\nGid:\t997\t997\t997\t997\nGroups:\t44 104 997\n", "", "edgecam", nil},
		{"a user without a name", "Uid:\t4242\t4242\t4242\t4242\n", "", "", nil},
	} {
		root := fstest.MapFS{}
		for k, v := range base {
			root[k] = v
		}
		root["proc/self/status"] = &fstest.MapFile{Data: []byte(c.status)}
		if c.passwd != "" {
			root["etc/passwd"] = &fstest.MapFile{Data: []byte(c.passwd)}
		}
		j := platform.Detect(platform.Options{Root: root}).Jetson
		if j.User != c.user || !reflect.DeepEqual(j.MissingGroups, c.missing) {
			t.Errorf("%s: %q is not in %q, want %q, %q", c.name, j.User, j.MissingGroups, c.user, c.missing)
		}
	}
}

func TestOfSeries(t *testing.T) {
	for _, c := range []struct {
		version, series string
		want            bool
	}{
		{"12.6.68", "12.6", true},
		{"12.8.1", "12.6", true},
		{"12.2.140", "12.6", false},
		{"13.0.1", "12.6", false},
		{"9.20.0", "9", true},
		{"8.9.4", "9", false},
		{"10.3.0", "10", true},
		{"10.3.0", "1", false},
	} {
		if got := platform.OfSeries(c.version, c.series); got != c.want {
			t.Errorf("%s of %s: %v", c.version, c.series, got)
		}
	}
}
